"""Hostile input: a corpus, files drawn from the schema, and signals at any moment."""
