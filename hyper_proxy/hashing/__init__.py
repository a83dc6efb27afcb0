"""Layer 4: key to shard: hash functions, distributions, hash tags, ring names.

Pure functions of the key and the list of servers, bit for bit those of the systems they are named after.
Must never know whether a server is alive.
"""
