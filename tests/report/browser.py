"""Chromium without a window, spoken to through a pair of pipes in its DevTools protocol."""

import fcntl
import json
import os
import select
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any, Self

PATIENCE_S = 60.0
OPTIONS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--hide-scrollbars",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--remote-debugging-pipe",
)


def _pipe() -> tuple[int, int]:
    """A pipe whose descriptors are neither of those that the protocol is fixed to."""
    ends = os.pipe()
    high = tuple(fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10) for end in ends)
    for end in ends:
        os.close(end)
    return high[0], high[1]


class Browser:
    """One browser with one page. ``problems`` are what the page complained of, ``requests`` what it
    asked for."""

    def __init__(self, width: int = 1280, height: int = 900) -> None:
        self.problems: list[str] = []
        self.requests: list[str] = []
        self._size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self._sent = 0
        self._buffer = b""

    def __enter__(self) -> Self:
        self._profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        self._read, back = _pipe()
        there, self._write = _pipe()
        command = ["chromium", *OPTIONS, f"--user-data-dir={self._profile.name}", "about:blank"]
        # The protocol is fixed to descriptors 3 and 4.
        self._process = subprocess.Popen(
            ["bash", "-c", f'exec "$@" 3<&{there} 4>&{back}', "bash", *command],
            pass_fds=(there, back),
            stderr=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
        )
        os.close(there)
        os.close(back)
        targets = self._call("Target.getTargets")["targetInfos"]
        page = next(target["targetId"] for target in targets if target["type"] == "page")
        self._session: str | None = None
        self._session = self._call("Target.attachToTarget", targetId=page, flatten=True)[
            "sessionId"
        ]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self._call(f"{domain}.enable")
        self._call("Emulation.setDeviceMetricsOverride", **self._size)
        return self

    def __exit__(self, *_: object) -> None:
        # Without its pipe the browser ends by itself, and its helpers with it.
        os.close(self._write)
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._read)
        self._profile.cleanup()

    def open(self, file: Path, fragment: str = "") -> None:
        """Load a file and wait until its diagrams are drawn."""
        self.visit(file.resolve().as_uri() + fragment)

    def visit(self, address: str) -> None:
        """Load a page and wait until it says that it is ready."""
        self.problems.clear()
        self.requests.clear()
        self._call("Page.navigate", url="about:blank")
        self._call("Page.navigate", url=address)
        self.wait_for("document.documentElement?.dataset.ready === 'yes'")

    def wait_for(self, condition: str) -> None:
        """Wait until an expression is true in the page."""
        deadline = time.monotonic() + PATIENCE_S
        while not self.evaluate(condition):
            assert time.monotonic() < deadline, f"{condition}: still not; {self.problems}"
            time.sleep(0.02)

    def evaluate(self, expression: str) -> Any:
        """The value of an expression in the page; a promise is waited for."""
        answer = self._call(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def emulate(self, media: str, width: int) -> None:
        """From now on the page is of this width, on "screen" or in "print"."""
        self._call("Emulation.setEmulatedMedia", media=media)
        self._call("Emulation.setDeviceMetricsOverride", **{**self._size, "width": width})

    def text(self, selector: str) -> str:
        """What a person reads in the first element that is meant."""
        return str(self.evaluate(f"document.querySelector({json.dumps(selector)}).innerText"))

    def mouse(self, kind: str, x: float, y: float, **more: Any) -> None:
        """A real event of the mouse: "mouseMoved", "mousePressed", "mouseReleased", "mouseWheel"."""
        self._call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    def click(self, x: float, y: float) -> None:
        """Press and release the button."""
        for kind in ("mousePressed", "mouseReleased"):
            self.mouse(kind, x, y, button="left", clickCount=1)

    def key(self, key: str) -> None:
        """Press and release a key."""
        text = {"text": key} if len(key) == 1 else {}
        self._call("Input.dispatchKeyEvent", type="keyDown", key=key, **text)
        self._call("Input.dispatchKeyEvent", type="keyUp", key=key)

    def _call(self, method: str, **parameters: Any) -> Any:
        self._sent += 1
        session = getattr(self, "_session", None)
        message = {"id": self._sent, "method": method, "params": parameters}
        message |= {"sessionId": session} if session else {}
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._receive()
            if answer.get("id") == self._sent:
                assert "error" not in answer, f"{method}: {answer['error']}"
                return answer["result"]
            self._note(answer)

    def _note(self, event: dict[str, Any]) -> None:
        match event.get("method"):
            case "Runtime.exceptionThrown" | "Runtime.consoleAPICalled":
                self.problems.append(json.dumps(event["params"]))
            case "Log.entryAdded":
                self.problems.append(event["params"]["entry"]["text"])
            case "Network.requestWillBeSent":
                self.requests.append(event["params"]["request"]["url"])

    def _receive(self) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._read], [], [], PATIENCE_S)
            assert ready, "the browser does not answer"
            chunk = os.read(self._read, 1 << 20)
            assert chunk, "the browser has ended; is chromium installed?"
            self._buffer += chunk
        message, _, self._buffer = self._buffer.partition(b"\0")
        found: dict[str, Any] = json.loads(message)
        return found
