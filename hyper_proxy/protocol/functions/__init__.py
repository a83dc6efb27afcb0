"""Protocols of six functions, HTTP and those of plug-ins: the interface that one implements, and the session that
serves all of them.

Pure as the other protocols: the functions get bytes and return bytes. May use the session that all protocols share, the
records of the configuration, the counters' classes and the key-value storage; must never know a protocol by name, nor
touch a socket.
"""
