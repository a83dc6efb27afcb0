"""Distributions, one family per file; each is a function from a Recipe to a Placement and a row of tables.py."""
