"""Hostile input: a corpus, drawn files, changed logs, bad protocols, and signals at any moment."""
