"""The classes of commands: requests and their latency are counted by them, in every protocol."""

from __future__ import annotations

READ = 0
IDEMPOTENT = 1  # a write that may safely be sent twice
WRITE = 2
ADMIN = 3
CLASSES = ("read", "idempotent", "write", "admin")
