"""Spark as a scheduler: sessions, and work that is spread over their cores."""

from testbed.errors import require

require("digest")  # before a module of this room imports PySpark

IMPORTS = "TESTBED_IMPORTS"  # names, for Python workers, the modules to be imported once for all
