"""Causal clusters on gossip (Gidenstam et al. 2011): ``gossip``, ``causality``, ``tickets``."""

from .cluster import Cluster

__all__ = ["Cluster"]
