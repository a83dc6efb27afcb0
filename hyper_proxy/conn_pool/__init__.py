"""Layer 7: nodes and their connections; the only server-side I/O.

Pipelines every client's requests on few connections, matches replies in order, notices sick servers.
Must never give a connection with an unanswered request to another request.
"""
