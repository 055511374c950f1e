"""Spark as a scheduler: sessions, and work that is spread over their cores."""

from testbed.errors import require

require("digest")  # before a module of this room imports PySpark
