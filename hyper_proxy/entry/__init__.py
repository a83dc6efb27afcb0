"""Layer 1: listeners and client connections; the only client-side I/O.

One greenlet a connection: it reads, hands the bytes to the protocol, writes what comes back.
Must never look inside the bytes, and never talk to a storage server.
"""
