"""What a person runs: reproductions, benchmarks, long searches. The product imports nothing of it."""

from argparse import ArgumentParser


def parser(command: str, doc: str) -> ArgumentParser:
    """The parser of ``scripts/COMMAND``, described by the first line of its module."""
    return ArgumentParser(prog=f"scripts/{command}", description=doc.splitlines()[0])
