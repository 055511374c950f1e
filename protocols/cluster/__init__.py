"""Causal clusters on gossip (Gidenstam et al. 2011): ``gossip``, ``causality``, ``tickets``."""

from .cluster import Cluster
from .clusters import Clusters

__all__ = ["Cluster", "Clusters"]
