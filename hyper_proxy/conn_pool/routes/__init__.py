"""Routes: what stands in the place of one server where a request may go to one of several, or to all of them.

A route has the lanes that a server would have; what is handed to one of them goes on to the lanes of its children, and
the answer comes back the same way. So a child is a server or another route, and nobody above sees a difference.
A kind of route is one file here, and one row in `table.py`. Must never look into the bytes of a request or an answer:
what a route has to know of them is said by its Speech (speech.py).
"""
