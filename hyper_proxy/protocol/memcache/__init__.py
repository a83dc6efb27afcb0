"""The memcache front: memcached's text and meta protocol, in the words of memcached 1.6.18.

framing.py finds and checks a request, session.py sends it to its shard, questions.py holds the answer against it,
fanout.py splits reads of many keys. Must never touch a socket, nor forward a request whose number of answers is not
certain.
"""
