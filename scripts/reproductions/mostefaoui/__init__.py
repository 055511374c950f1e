"""The reproduction of Mostefaoui & Raynal 1993: its points, its claims, and its command."""
