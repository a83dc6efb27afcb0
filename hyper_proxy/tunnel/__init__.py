"""Layer 5: split, map, reduce.

Splits a request by shard, sends every part, waits once, merges the parts by the client's positions.
Must never know a socket; a child may be a server or a whole level.
"""
