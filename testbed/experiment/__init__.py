"""What is to be run: the experiment file, and all that follows from it and its seed."""

from testbed.experiment.document import (
    ENGINES,
    Experiment,
    fits,
    key_types,
    load,
    naming_key,
    parse,
    read_document,
)

__all__ = [
    "ENGINES",
    "Experiment",
    "fits",
    "key_types",
    "load",
    "naming_key",
    "parse",
    "read_document",
]
