"""HTTP in front of a key space, one resource a key: six functions (hyper_proxy/protocol/functions), served as those of
plug-ins are.

Turns requests into operations of a key-value storage (hyper_proxy/storage/keyvalue.py), and results into responses. May
use the interface of the six functions, but not their session. Must never parse HTTP itself, which httptools does, and
never read from or write to a socket.
"""
