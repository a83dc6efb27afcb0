"""Protocols of six functions, HTTP and those of plug-ins: the interface that one implements, and the session that
serves all of them.

Pure as the other protocols: the functions get bytes and return bytes. Must never touch a socket.
"""
