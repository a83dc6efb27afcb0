"""A worker's life: birth, heartbeat, prepare and commit, drain, death.

Runs the layers of hyper_proxy in one gevent process; speaks with the master over one pipe.
Must never fork and never block on the pipe.
"""
