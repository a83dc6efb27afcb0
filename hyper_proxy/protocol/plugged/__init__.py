"""Protocols of plug-ins: the interface that one implements, and the session that serves all of them.

Pure as the other protocols: a plug-in's functions get bytes and return bytes. Must never touch a socket.
"""
