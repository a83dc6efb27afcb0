"""Layer 2: bytes to requests, and replies to bytes; one folder a protocol.

A session holds what one client has said (its database, its name, its transaction) and walks its requests in order.
Must never touch a socket; what must wait is asked of the tunnel.
"""
