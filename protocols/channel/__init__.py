"""The reliable channel: segments, streams, acknowledgements, beneath any protocol."""

from .reliable import Reliable

__all__ = ["Reliable"]
