"""A headless Chromium under test: a page is opened, asked and clicked, and whatever it complains about is kept.

It is spoken to in the DevTools protocol over a pipe (`--remote-debugging-pipe`: messages that end with NUL, in on file
descriptor 3 and out on 4), which needs no library and opens no port.
"""

import json
import os
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from subprocess import DEVNULL
from typing import Any

from waiting import SLOWER

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "headless_shell")
VARIABLE = "JAXPROF_TEST_CHROMIUM"
MISSING = f"there is no Chromium here: apt-get install chromium, or name one in {VARIABLE}"
PATIENCE_SECONDS = 60.0 * SLOWER
_START = """
import fcntl, os, sys
reads, writes = (fcntl.fcntl(int(number), fcntl.F_DUPFD, 10) for number in sys.argv[1:3])
os.dup2(reads, 3)
os.dup2(writes, 4)
os.execv(sys.argv[3], sys.argv[3:])
"""


def executable() -> str | None:
    """The browser of this machine; None if it has none."""
    return os.environ.get(VARIABLE) or next((path for name in NAMES if (path := shutil.which(name))), None)


class Page:
    """A tab."""

    def __init__(self, process, to, back):
        self._process, self._to, self._back = process, to, back
        self._buffer = b""
        self._number = 0
        self._session = ""
        self.complaints: list[str] = []
        """Exceptions, errors and warnings of the console, what the policy refused: a line each."""
        self.requests: list[str] = []
        """Every address that was asked for."""
        self._loads = 0
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """The result of a command. Raises RuntimeError if it fails, TimeoutError if it does not come."""
        self._number += 1
        number = self._number
        message = {"id": number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        for answer in self._messages(f"{method} {parameters}"):
            if answer.get("id") == number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return dict(answer["result"])
        raise AssertionError("the messages never end")

    def _messages(self, waited_for):
        end = time.monotonic() + PATIENCE_SECONDS
        while True:
            while b"\0" in self._buffer:
                whole, _, self._buffer = self._buffer.partition(b"\0")
                message = json.loads(whole)
                self._note(message.get("method", ""), message.get("params", {}))
                yield message
            ready, _, _ = select.select([self._back], [], [], max(0.0, end - time.monotonic()))
            if not ready:
                raise TimeoutError(f"no answer to {waited_for[:200]}; so far: {self.complaints}")
            read = os.read(self._back, 1 << 20)
            if not read:
                raise RuntimeError(f"the browser ended with {self._process.poll()} before {waited_for[:200]}")
            self._buffer += read

    def _note(self, method, event):
        if method == "Runtime.exceptionThrown":
            details = event["exceptionDetails"]
            self.complaints.append(str(details.get("exception", {}).get("description") or details["text"]))
        elif method == "Runtime.consoleAPICalled" and event["type"] in ("error", "warning", "assert"):
            self.complaints.append(" ".join(str(argument.get("value")) for argument in event["args"]))
        elif method == "Log.entryAdded" and event["entry"]["level"] in ("error", "warning"):
            self.complaints.append(f"{event['entry']['text']} {event['entry'].get('url', '')}")
        elif method == "Network.requestWillBeSent":
            self.requests.append(event["request"]["url"])
        elif method == "Page.loadEventFired":
            self._loads += 1

    def open(self, address: str) -> None:
        """Load an address, and wait until all of it is there."""
        before = self._loads
        self.call("Page.navigate", url=address)
        if self._loads == before:
            for _ in self._messages(f"the load of {address}"):
                if self._loads > before:
                    break

    def ask(self, expression: str) -> Any:
        """The value of a JavaScript expression; of a promise, what it resolves to. Raises RuntimeError if it throws."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            details = answer["exceptionDetails"]
            raise RuntimeError(details.get("exception", {}).get("description") or details["text"])
        return answer["result"].get("value")

    def until(self, condition: str) -> None:
        """Wait until an expression holds. Raises TimeoutError."""
        self.ask(f"(async () => {{ while (!({condition})) await new Promise((go) => setTimeout(go, 20)); }})()")

    def resize(self, width: int, height: int = 800, *, mobile: bool = False) -> None:
        """The size of the window, in CSS pixels."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=mobile)

    def emulate(self, *, dark: bool = False, media: str = "") -> None:
        """The colour scheme, and the medium: `print`, or empty for a screen."""
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", media=media, features=[scheme])

    def mouse(self, kind: str, x: float, y: float, **more: Any) -> None:
        """An event of the mouse: `mousePressed`, `mouseReleased`, `mouseMoved`, `mouseWheel`."""
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)


@contextmanager
def chromium(folder: Path, program: str) -> Iterator[Callable[[], Page]]:
    """What opens a tab in a browser whose profile is in `folder`."""
    to_child, write = os.pipe()
    read, from_child = os.pipe()
    flags = [
        "--headless=new",
        "--no-sandbox",  # root has no other way, and the pages are our own
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--remote-debugging-pipe",
        f"--user-data-dir={folder}",
    ]
    given = [sys.executable, "-c", _START, str(to_child), str(from_child), program, *flags]
    process = subprocess.Popen(given, pass_fds=(to_child, from_child), stdin=DEVNULL, stdout=DEVNULL, stderr=DEVNULL)
    os.close(to_child)
    os.close(from_child)
    try:
        yield lambda: Page(process, write, read)
    finally:
        os.close(write)  # which ends it
        os.close(read)
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
