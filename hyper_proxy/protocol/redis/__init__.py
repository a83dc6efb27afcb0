"""The redis protocol: RESP2 and RESP3, the command table, a client's session."""
