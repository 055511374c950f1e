"""One process: the protocol and the application above it, what is logged and what is measured."""

from testbed.node.node import Node

__all__ = ["Node"]
