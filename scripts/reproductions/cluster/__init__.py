"""What ``scripts/reproduce gidenstam`` is made of."""
