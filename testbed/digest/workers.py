"""What Spark's Python workers import for a digest, once for all of them.

Arrow imports pandas when it first meets a value of Python or NumPy, to ask whether it is one of
pandas', which takes as long as all other imports together. In a digest none is, so here Arrow finds
no pandas.
"""

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from types import ModuleType

import pyarrow as pa

import testbed.digest.pipeline  # noqa: F401 (all steps)


class NoPandas(MetaPathFinder):
    """Says that there is none."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> None:
        """Refuse it, and leave others to others."""
        if fullname == "pandas":
            raise ModuleNotFoundError(fullname)


if "pandas" not in sys.modules:
    sys.meta_path.insert(0, NoPandas())
    pa.scalar(0)
    sys.meta_path.pop(0)
