"""What scripts/bench runs: the same load through this project and through twemproxy, and what it costs in CPU time.

Ratios of one run count; absolute times are those of one machine and its neighbours.
"""
