"""The reproduction of Baldoni, Friedman & van Renesse 1996: its points, its claims, and its command."""
