"""Draws the figure: what KS attaches, in per cent of n², over the number of processes.

    python figure.py runs/figure/sweep-…

It shows the points. A figure for a paper has axes with units, error bars, the paper's own points beside
yours, and a caption that can be read alone: that part is yours.
"""

import sys

import matplotlib.pyplot as plt

from testbed import results

points = results.load(sys.argv[1]).points
points["percent"] = (
    100 * points["control_integers"] / points["control_copies"] / points["nodes"] ** 2
)
print(points[["nodes", "seed", "percent"]].to_string(index=False))
print(points.groupby("nodes")["percent"].agg(["mean", "std"]))
plt.plot(points["nodes"], points["percent"], "o")
plt.savefig("figure.png")
