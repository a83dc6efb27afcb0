"""What every folder may use: errors, the gather that a greenlet waits on, logging, the shared segment.

May import the standard library and gevent only; must never import another folder of hyper_proxy.
"""
