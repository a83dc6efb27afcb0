"""Counting: histograms, an instance's counters, the table of all statistics, and how those of many workers are merged.

Counting on the request's path is an integer addition: no lock, no system call, no allocation.
Must never be read to decide anything; control state lives elsewhere.
"""
