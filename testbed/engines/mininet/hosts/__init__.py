"""The hosts: one process each, and who starts, supervises, harms and counts them."""
