"""The session that is shown: none yet, the one that this app writes, or a file that was opened to be looked at.

A file that another process still writes is followed. Reading a long one takes a second, so it is done in a thread.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from jaxprof.errors import JaxprofError
from jaxprof.tui.messages import Failed, SessionOpened

if TYPE_CHECKING:
    from jaxprof.session import Session
    from jaxprof.store import Follower


CLOCKS_APART_SECONDS = 5.0
"""How much two clocks of one machine may have been set apart."""
LOOK_SECONDS = 2.0
"""How often it is looked whether the writer of a followed session still holds its lock."""
SILENCE_SECONDS = 30.0
"""A writer that holds no lock that can be seen from here, and says nothing for so long, is taken for gone."""


class Opened:
    """The session in view, and what it needs to stay true."""

    def __init__(self, clock: Callable[[], float] = time.monotonic, wall: Callable[[], float] = time.time) -> None:
        self._clock, self._wall = clock, wall
        self._session: Session | None = None
        self._follower: Follower[Session] | None = None
        self.path: Path | None = None
        self.clock_shift_seconds = 0.0
        """What the writer's monotonic clock is ahead of ours: another machine's began at another time."""
        self._same_clock = True
        self._locked = False
        self._heard_seconds = 0.0
        """When something was heard of the writer, by our clock."""
        self._heard_wall_seconds = 0.0
        self._looked_seconds = 0.0
        self._gone = False

    @property
    def session(self) -> Session:
        """The session in view; an empty one before anything was run or opened."""
        if self._session is None:
            from jaxprof.session import Session

            self._session = Session()
        return self._session

    @property
    def followed(self) -> bool:
        """Whether another process still writes it, as far as can be told: clocks may run on."""
        return self._follower is not None and not self._gone

    @property
    def silent_since(self) -> str:
        """`no sign of its writer since 12:31:05`, where it is followed and its writer seems gone; else empty."""
        if self._follower is None or not self._gone:
            return ""
        moment = time.strftime("%H:%M:%S", time.localtime(self._heard_wall_seconds))
        return f"no sign of its writer since {moment}"

    def show(self, session: Session, path: Path | None, follower: Follower[Session] | None = None) -> None:
        """Shows another session; `follower` where another process still writes it."""
        if self._follower is not None and self._follower is not follower:
            self._follower.finish()
        self._session, self.path, self._follower = session, path, follower
        self.clock_shift_seconds, self._gone, self._same_clock = 0.0, False, True
        if follower is not None and path is not None:
            self._begin(session, path)

    def _begin(self, session: Session, path: Path) -> None:
        """Whose clock the session goes by, and whether its writer can be seen from here."""
        from jaxprof.store.library import is_live

        now = self._clock()
        self._locked = is_live(path)
        self._heard_seconds = self._looked_seconds = now
        self._heard_wall_seconds = self._wall()
        header = session.header
        ours = abs((self._wall() - header.wall_seconds) - (now - header.monotonic_seconds)) < CLOCKS_APART_SECONDS
        self._same_clock = ours and session.last_seconds <= now
        if not self._same_clock:
            self.clock_shift_seconds = session.last_seconds - now
        with contextlib.suppress(OSError):
            written = path.stat().st_mtime
            if not self._locked and self._wall() - written > SILENCE_SECONDS:
                self._heard_wall_seconds, self._gone = written, True

    def poll(self) -> tuple[frozenset[str], bool]:
        """Takes in what another process has written meanwhile; gives the runs that it concerned, and whether the
        writer has come or gone."""
        if self._follower is None:
            return frozenset(), False
        events = self._follower.poll()
        before = self._gone
        if events:
            self._hear()
        else:
            self._listen()
        if self._follower.session.complete:
            self._follower.finish()
            self._follower = None
        return frozenset(event.run for event in events if event.run), self._gone != before

    def _hear(self) -> None:
        now = self._clock()
        self._heard_seconds, self._heard_wall_seconds, self._gone = now, self._wall(), False
        if not self._same_clock:  # the event that came fastest tells best
            self.clock_shift_seconds = max(self.clock_shift_seconds, self.session.last_seconds - now)

    def _listen(self) -> None:
        """Nothing has come: whether that means something."""
        now = self._clock()
        if self._gone or self.path is None or now - self._looked_seconds < LOOK_SECONDS:
            return
        from jaxprof.store.library import is_live

        self._looked_seconds = now
        locked = is_live(self.path)
        if self._locked and not locked:
            self._gone = True  # it held the lock until just now, and did not close the session
        elif not locked and now - self._heard_seconds > SILENCE_SECONDS:
            self._gone = True
        self._locked = locked


def read(path: Path, go: str, post: Callable[[SessionOpened | Failed], object], *, follow: bool = False) -> None:
    """Reads a session file, or a profile as one, and posts it, or why it cannot be opened. For threads.

    `follow`: it is followed even where no writer can be seen from here, as over a folder that another host writes to.
    """
    from jaxprof.session import Session
    from jaxprof.store import Follower
    from jaxprof.store.library import is_live
    from jaxprof.tui.profile_file import as_session
    from jaxprof.worker import is_profile

    try:
        if is_profile(path):
            path = as_session(path)
        follower = Follower(path, Session)
        follower.poll()
        written = not follower.session.complete and (follow or is_live(path))
        if not written:
            follower.finish()
    except JaxprofError as error:
        post(Failed(error))
        return
    post(SessionOpened(follower, path, written=written, go=go))
