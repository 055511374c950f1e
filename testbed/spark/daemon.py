"""The process from which Spark forks its Python workers, which has imported what they need.

Spark's own one imports next to nothing, and each worker then the same things: PySpark among them, from
an archive, where Python compiles every module anew. And a worker collects garbage after every task,
in all that it has imported, unless that is frozen.
"""

import gc
import os
import sys
from importlib import import_module

from testbed.spark import IMPORTS


def main() -> None:
    """Import, then fork a worker whenever Spark asks for one."""
    sys.path.sort(key=lambda place: place.endswith(".zip"))  # as installed, if it is, comes first
    for module in ("pyspark.worker", *os.environ.get(IMPORTS, "").split()):
        import_module(module)
    gc.freeze()
    import_module("pyspark.daemon").manager()


if __name__ == "__main__":
    main()
