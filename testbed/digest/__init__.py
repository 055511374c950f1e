"""The digest: what captures and event logs of runs amount to, computed by Spark."""

from testbed.digest.session import session

__all__ = ["session"]
