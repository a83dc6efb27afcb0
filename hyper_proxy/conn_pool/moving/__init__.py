"""Live resharding: keys go from the servers of one pool to those of another while they are used.

Who is asked for a key first makes its old home hand it over, in one step of that server, then asks its new home.
"""
