"""The redis protocol: RESP2 and RESP3, the command table, a client's session.

framing.py finds requests, session.py sends those of one key to its shard, fanout.py splits those of several keys and
merging.py merges their replies; treat.py has a way for each other treatment. Must never touch a socket, nor send a
command that its row in the table does not let through.
"""
