"""Layer 6: what each kind of storage understands.

Turns a request into that storage's own words, and its answer back; one file a kind.
Must never keep a client's state and never decide where a key lives.
"""
