"""``python -m testbed``, or ``testbed``: the command line."""

import sys


def main() -> int:
    """Import all commands and run one; Ctrl-C while they are being imported is met here."""
    try:
        from testbed.cli import main as run_command

        return run_command()
    except KeyboardInterrupt:
        print("testbed: interrupted", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
