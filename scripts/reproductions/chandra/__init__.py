"""The reproduction of Chandra, Gambhire & Kshemkalyani 2004: its points, its claims, its chapter."""
