"""The reproduction of Gidenstam et al. 2011: its points, its claims, and its command."""
