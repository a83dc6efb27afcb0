"""Two rooms of servers that stand in for each other, node by node (docs/rooms.md).

A Pair is two nodes, one of each room, of which one serves. Its Heart asks both for signs of life beside the requests;
its RoomLanes hand requests to the one that serves, and writes to both where that is configured. Which one serves is a
word on the Board that all workers share. Nothing here waits on a request's way, except for a verdict about a write.
"""
