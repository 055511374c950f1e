"""Spark as a scheduler: sessions, and work that is spread over their cores."""
