"""Causal clusters on gossip (Gidenstam et al. 2011): dissemination, causality layer, tickets."""

from .cluster import Cluster

__all__ = ["Cluster"]
