"""HTTP in front of a key space: one resource a key.

Turns requests into operations of a key-value storage (hyper_proxy/storage/keyvalue.py), and results into responses.
Must never parse HTTP itself, and never read from or write to a socket.
"""
