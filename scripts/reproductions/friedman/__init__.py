"""The reproduction of Friedman & Manor 2004: its points, its claims, its chapter."""
