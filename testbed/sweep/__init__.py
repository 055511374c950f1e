"""Sweeps: every combination of the values that a file lists, run on all cores and averaged."""
