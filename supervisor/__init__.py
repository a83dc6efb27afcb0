"""The master: binds the sockets, forks, reaps, reloads.

One thread, no gevent; imports only hyper_proxy's config, common and stats.
Must never serve a request itself.
"""
