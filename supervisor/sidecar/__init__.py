"""The sidecar: a Flask application that shows statistics and passes commands to the master.

Forked by the master, restarted with it; its death never touches traffic.
Must never talk to a worker except through the master's pipe.
"""
