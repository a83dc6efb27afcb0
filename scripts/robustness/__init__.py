"""Proofs that take minutes: fuzzing, verified requests before sick nodes, reloads under load; the suite has shares."""
