"""``testbed live``: step through a run in the browser, and interfere with it."""

import argparse
import webbrowser
from pathlib import Path
from typing import Any

from testbed.commands.terminal import console
from testbed.errors import UserError
from testbed.plugins import find_protocol, reference


def add_parser(commands: Any) -> None:
    """Declare the command."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "live",
        description="Simulate an experiment and open it in the browser, at the step before the first "
        "violation if there is one: step forwards and backwards, see every process's state and every "
        "message on its way; drop, delay or duplicate a message, crash or pause a process, cut a link, "
        "and see what the protocol makes of it. What was done is saved as an experiment file, which "
        "`testbed run` repeats on every engine. A run directory can be stepped through as well.",
    )
    parser.add_argument("file", type=Path, help="experiment file (TOML), or run directory")
    parser.add_argument(
        "--protocol",
        action="append",
        metavar="NAME",
        help="this protocol instead of the file's, with default settings; also ./mine.py:Mine",
    )
    parser.add_argument("--seed", type=int, help="use this seed instead of the file's")
    parser.add_argument(
        "--port", type=int, default=0, help="of the page (default: any that is free)"
    )
    parser.add_argument(
        "--no-open", dest="open", action="store_false", help="only print the page's address"
    )
    parser.set_defaults(command=command)


def command(options: argparse.Namespace) -> int:
    """Serve the page until Ctrl-C."""
    with _server(options) as server:
        console().print(f"{server.address}\nCtrl-C ends it.", soft_wrap=True)
        if options.open:
            webbrowser.open(server.address)
        try:
            server.serve_forever()
        except KeyboardInterrupt as signal:
            if type(signal) is not KeyboardInterrupt:  # SIGTERM, say
                raise
    return 0


def _server(options: argparse.Namespace) -> Any:
    from testbed.live.server import Server

    try:
        return Server(_session(options), options.port)
    except (OSError, OverflowError) as error:
        raise UserError(f"--port {options.port}: cannot be listened on ({error})") from None


def _session(options: argparse.Namespace) -> Any:
    from testbed.live.log_session import LogSession
    from testbed.live.session import Session

    if options.file.is_dir():
        return LogSession(options.file)
    instead = [{"name": reference(find_protocol(name))} for name in options.protocol or ()]
    return Session(options.file, seed=options.seed, protocol=instead or None)
