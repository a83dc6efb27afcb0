"""Layer 3: who asks, and may they.

Decides from the instance's configuration alone; an answer is yes or a typed error.
Must never do I/O and never change a request's meaning.
"""
