"""Runs on disk: the run directory, the event logs in it, and the results read back from it."""
