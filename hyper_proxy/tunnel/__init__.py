"""Layer 5: split, map, reduce.

A batch holds the parts of a client's requests: sends each to its lane, waits once, merges by the client's positions.
Must never know a socket; a lane may be a server or a whole level.
"""
