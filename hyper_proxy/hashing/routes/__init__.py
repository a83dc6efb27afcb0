"""Placements over several pools: one placement that is made of those of the pools.

The shards are numbered as hyper_proxy/config/routes.py `spots` says. A route by which each key belongs to one pool is
one file here and one row in `build.py`.
"""
