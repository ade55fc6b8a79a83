"""`jaxprof open --browser`: serve the page of a session to a browser on this machine, and follow a session that grows.

Whoever reads the page must know a random token, which is the first part of every path, so that other users of the
machine and pages in the reader's browser cannot. A request under another host's name is refused, or a page elsewhere
could point its own name at 127.0.0.1 (DNS rebinding) and read what comes back. No request changes anything.
"""

from __future__ import annotations

import hmac
import secrets
import sys
import threading
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from jaxprof.errors import JaxprofError
from jaxprof.report.page.document import to_page
from jaxprof.session import Session
from jaxprof.session.log.reader import Follower, is_live

ADDRESS = "127.0.0.1"
_OWN_NAMES = frozenset({ADDRESS, "localhost"})
_IDLE_SECONDS = 30.0


class FollowedPage:
    """The page of a session file that may grow. Several requests may ask for it at once."""

    def __init__(self, path: Path, name: str) -> None:
        """Raises FileRefusedError if the file is not a session."""
        self._path, self._name = path, name
        self._follower = Follower(path, Session)
        self._lock = threading.RLock()
        self._events = 0
        self._shown: tuple[str, str] = ("", "")

    def state(self) -> str:
        """Return a text that changes with the session; it ends with ` over` once nothing more can come."""
        with self._lock:
            # Ask first: what is written until the writer lets go is then read below.
            over = not is_live(self._path)
            self._events += sum(1 for _ in self._follower.take())
            return f"{self._events} over" if over or self._follower.session.complete else str(self._events)

    def html(self, follow: str) -> str:
        """Return the page of the session as it is now, which asks at `follow` for its state; remade only if something
        has been added."""
        with self._lock:
            state = self.state()
            if state != self._shown[0]:
                self._follower.session.desert(deserted=state.endswith(" over"))
                self._shown = state, to_page(self._follower.session, self._name, follow=follow)
            return self._shown[1]


class PageServer(ThreadingHTTPServer):
    """Serves one page at `http://127.0.0.1:PORT/TOKEN/`."""

    daemon_threads = True
    block_on_close = False

    def __init__(self, page: FollowedPage, port: int = 0) -> None:
        """Listen on `port`, or on any free port if it is 0. Raises OSError if the port is taken."""
        self.page = page
        self.token = secrets.token_urlsafe(24)
        super().__init__((ADDRESS, port), _Requests)

    @property
    def port(self) -> int:
        """The port that the server listens on."""
        return int(self.server_address[1])

    @property
    def address(self) -> str:
        """URL of the page."""
        return f"http://{ADDRESS}:{self.port}/{self.token}/"

    def handle_error(self, request: object, client_address: object) -> None:
        """Ignore a reader that has gone, which is no error; print the traceback of anything else, which is a fault."""
        if not isinstance(sys.exception(), ConnectionError | TimeoutError):
            super().handle_error(request, client_address)  # type: ignore[arg-type]


class _Requests(BaseHTTPRequestHandler):
    server: PageServer
    timeout = _IDLE_SECONDS
    server_version = "jaxprof"
    sys_version = ""

    def do_GET(self) -> None:
        """Answer with the page, or with its state."""
        if self._hostname() not in _OWN_NAMES:
            self._answer(HTTPStatus.FORBIDDEN, "This page is served to this machine alone.\n")
            return
        token, _, rest = self.path.removeprefix("/").partition("?")[0].partition("/")
        if not hmac.compare_digest(token.encode(), self.server.token.encode()):
            self._answer(HTTPStatus.FORBIDDEN, "The address lacks its token: take the whole line that was printed.\n")
        elif rest not in ("", "state"):
            self._answer(HTTPStatus.NOT_FOUND, "There is only one page here.\n")
        else:
            try:
                text = self.server.page.state() if rest else self.server.page.html(f"/{token}/state")
            except JaxprofError as error:
                self._answer(HTTPStatus.INTERNAL_SERVER_ERROR, f"{error.what}\n{error.hint}\n")
            else:
                self._answer(HTTPStatus.OK, text, "text/plain" if rest else "text/html")

    def do_HEAD(self) -> None:
        """Answer like `do_GET`, without the text."""
        self.do_GET()

    def _hostname(self) -> str:
        """Return the host name of the request. Its port may be another one, that of a tunnel."""
        return (self.headers.get("Host") or "").rpartition(":")[0] or (self.headers.get("Host") or "")

    def _answer(self, status: HTTPStatus, text: str, kind: str = "text/plain") -> None:
        content = text.encode("utf-8", "replace")
        self.send_response(status)
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(content)))
        self.send_header("Cache-Control", "no-store")
        self.send_header("Content-Security-Policy", "frame-ancestors 'none'")
        self.send_header("Cross-Origin-Resource-Policy", "same-origin")
        self.send_header("Referrer-Policy", "no-referrer")
        self.send_header("X-Content-Type-Options", "nosniff")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def log_message(self, format: str, *arguments: object) -> None:
        """Log nothing, because the token would be in the log."""
