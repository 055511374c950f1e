"""The testbed: experiments, engines that run them, the oracle that checks them.

    from testbed import results
    results.load("runs/overlay-vs-timestamp/latest").messages

``testbed.protocols`` and ``testbed.topologies`` are the folders of those names at the top of a
checkout; in a wheel they are inside this package.
"""

from types import ModuleType

from testbed.compiled import install

__version__ = "0.2.0"
install()


def __getattr__(name: str) -> ModuleType:
    if name != "results":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from testbed.runs import results

    return results
