"""The live view of `hyper-proxy top`: reads /stats again and again, and shows what changed in between.

Rates are differences of counters, percentiles those of differences of histograms.
Must never order anything of the fleet.
"""
