"""Servers that are not listed but found out, and change: masters that move, with their replicas.

A group is a master with its replicas, and stands at the shards that the master has; its lanes hand requests on to the
servers of the moment, and follow when an answer says that another server has the key now. What such answers mean is
said by the storage (hyper_proxy/storage/redis_topology*.py).
"""
