"""The session that is shown: none yet, the one that this app writes, or a file that was opened to be looked at.

A file that another process still writes is followed. Reading a long one takes a second, so it is done in a thread.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from jaxprof.errors import JaxprofError
from jaxprof.tui.messages import Failed, SessionOpened

if TYPE_CHECKING:
    from jaxprof.session import Session
    from jaxprof.store import Follower


class Opened:
    """The session in view, and what it needs to stay true."""

    def __init__(self) -> None:
        self._session: Session | None = None
        self._follower: Follower[Session] | None = None
        self.path: Path | None = None

    @property
    def session(self) -> Session:
        """The session in view; an empty one before anything was run or opened."""
        if self._session is None:
            from jaxprof.session import Session

            self._session = Session()
        return self._session

    @property
    def followed(self) -> bool:
        """Whether another process still writes it."""
        return self._follower is not None

    def show(self, session: Session, path: Path | None, follower: Follower[Session] | None = None) -> None:
        """Shows another session; `follower` where another process still writes it."""
        if self._follower is not None and self._follower is not follower:
            self._follower.finish()
        self._session, self.path, self._follower = session, path, follower

    def poll(self) -> frozenset[str]:
        """Takes in what another process has written meanwhile; gives the runs that it concerned."""
        if self._follower is None:
            return frozenset()
        events = self._follower.poll()
        if self._follower.session.complete:
            self._follower.finish()
            self._follower = None
        return frozenset(event.run for event in events if event.run)


def read(path: Path, go: str, post: Callable[[SessionOpened | Failed], object]) -> None:
    """Reads a session file, and posts it, or why it cannot be opened. For threads."""
    from jaxprof.session import Session
    from jaxprof.store import Follower
    from jaxprof.store.library import is_live

    try:
        follower = Follower(path, Session)
        follower.poll()
        written = not follower.session.complete and is_live(path)
        if not written:
            follower.finish()
    except JaxprofError as error:
        post(Failed(error))
        return
    post(SessionOpened(follower, path, written=written, go=go))
