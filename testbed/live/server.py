"""Shows a session to a browser on this machine, and to nobody else.

It listens on 127.0.0.1 only. Whoever asks must know the token of the page's address, which only the
terminal shows, and must have asked for this very host, so that no other page can ask in a person's
name. The page loads nothing from anywhere else, and may not.
"""

import json
import secrets
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, HTTPServer
from importlib.resources import files
from string import Template
from typing import Any, Protocol
from urllib.parse import parse_qs, urlsplit

from typing_extensions import override

from testbed.errors import UserError

LONGEST_REQUEST = 1 << 20


class Shown(Protocol):
    """What can be shown."""

    def run(self, protocol: int, faults: list[dict[str, Any]]) -> dict[str, Any]:
        """All that a page needs to know of a run with these faults."""

    def save(self, protocol: int, faults: list[dict[str, Any]]) -> Any:
        """Write it as an experiment file; its path."""


class Server(HTTPServer):
    """One person's page; one request at a time, in the thread that serves."""

    def __init__(self, session: Shown, port: int = 0) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        self.session = session
        self.token = secrets.token_urlsafe(16)

    @property
    def host(self) -> str:
        """The host that a browser must have asked for."""
        return f"127.0.0.1:{self.server_address[1]}"

    @property
    def address(self) -> str:
        """The address of the page."""
        return f"http://{self.host}/?token={self.token}"

    def answers(self) -> dict[str, Callable[[dict[str, Any]], Any]]:
        """What is answered to which request."""
        return {
            "/run": lambda asked: self.session.run(int(asked["protocol"]), asked["faults"]),
            "/save": lambda asked: {
                "path": str(self.session.save(int(asked["protocol"]), asked["faults"]))
            },
        }


class _Handler(BaseHTTPRequestHandler):
    server: Server
    server_version = "testbed"

    def do_GET(self) -> None:
        """The page itself, for whoever has its whole address."""
        asked = urlsplit(self.path)
        token = parse_qs(asked.query).get("token", [""])[0]
        if asked.path != "/":
            self._answer(HTTPStatus.NOT_FOUND, b"there is nothing here", "text/plain")
        elif self._is_allowed(token):
            nonce = secrets.token_urlsafe(16)
            self._answer(HTTPStatus.OK, page(nonce, self.server.token), "text/html", nonce)

    def do_POST(self) -> None:
        """What the page asks for, as JSON."""
        answer = self.server.answers().get(self.path)
        if answer is None:
            self._answer(HTTPStatus.NOT_FOUND, b"there is nothing here", "text/plain")
        elif self._is_allowed(self.headers.get("X-Token", "")):
            try:
                size = min(LONGEST_REQUEST, int(self.headers.get("Content-Length", "0")))
                self._answer_json(HTTPStatus.OK, answer(json.loads(self.rfile.read(size))))
            except UserError as error:
                self._answer_json(HTTPStatus.BAD_REQUEST, {"error": str(error)})
            except (ValueError, KeyError, TypeError) as error:
                self._answer_json(HTTPStatus.BAD_REQUEST, {"error": f"no such request: {error}"})

    @override
    def log_message(self, format: str, *args: Any) -> None:
        """Requests are nobody's business."""

    def _is_allowed(self, token: str) -> bool:
        known = secrets.compare_digest(token.encode(), self.server.token.encode())
        if known and self.headers.get("Host") == self.server.host:
            return True
        refusal = b"open the address that the terminal shows, with its token"
        self._answer(HTTPStatus.FORBIDDEN, refusal, "text/plain")
        return False

    def _answer_json(self, status: HTTPStatus, content: Any) -> None:
        self._answer(status, json.dumps(content).encode(), "application/json")

    def _answer(self, status: HTTPStatus, body: bytes, kind: str, nonce: str = "") -> None:
        self.send_response(status)
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-store")
        self.send_header("Referrer-Policy", "no-referrer")
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header(
            "Content-Security-Policy",
            f"default-src 'none'; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; "
            "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
        )
        self.end_headers()
        self.wfile.write(body)


def page(nonce: str, token: str) -> bytes:
    """The page, in one piece."""
    parts = files(__package__)
    scripts = ("drawing.js", "live.js")
    text = Template(parts.joinpath("live.html").read_text("utf-8")).substitute(
        nonce=nonce,
        token=token,
        style=parts.joinpath("live.css").read_text("utf-8"),
        script="\n".join(parts.joinpath(name).read_text("utf-8") for name in scripts),
    )
    return text.encode()
