"""The session in view: none yet, the one that this app writes, or a file that the user opened.

The app follows a file that another process still writes. Reading a long file takes a second, so a thread does it. An
engine process reads a profile from elsewhere into a new session in a temporary folder, which is deleted when the app
ends; `jaxprof open --keep` keeps such a session.
"""

from __future__ import annotations

import atexit
import contextlib
from collections.abc import Callable, Sequence
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

from jaxprof.base.errors import FileRefusedError
from jaxprof.tui import clock

if TYPE_CHECKING:
    from jaxprof.events import Event
    from jaxprof.runner.scheduler import Scheduler
    from jaxprof.session import Follower, Session


CLOCKS_APART_SECONDS = 5.0
"""Most seconds that the wall and monotonic clocks of one machine may drift apart."""
LOOK_SECONDS = 2.0
"""Seconds between checks of whether the writer of a followed session still holds its lock."""
SILENCE_SECONDS = 30.0
"""A writer without a visible lock counts as gone after this many seconds without an event."""


class OpenedSession:
    """The session in view, and what keeps it up to date. Used on the UI thread only."""

    def __init__(self) -> None:
        self._session: Session | None = None
        self._follower: Follower[Session] | None = None
        self.path: Path | None = None
        self.profile: Path | None = None
        """The profile that the session was made from, in a temporary folder; None for other sessions."""
        self.clock_shift_seconds = 0.0
        """Seconds that the writer's monotonic clock is ahead of ours; clocks of two machines start at different times.
        """
        self._same_clock = True
        self._locked = False
        self._heard_seconds = 0.0
        """When the writer's last event arrived, by our monotonic clock."""
        self._heard_wall_seconds = 0.0
        """When the writer's last event arrived, by the wall clock, which goes on while the machine sleeps."""
        self._looked_seconds = 0.0
        self._gone = False

    @property
    def session(self) -> Session:
        """The session in view; an empty one before anything is run or opened."""
        if self._session is None:
            from jaxprof.session import Session

            self._session = Session()
        return self._session

    @property
    def run_ids(self) -> frozenset[str]:
        """Ids of the runs of the session in view. Without one, this does not import the types of its events."""
        return frozenset(self._session.runs) if self._session is not None else frozenset()

    @property
    def followed(self) -> bool:
        """Whether another process still seems to write the session, so that clocks may run on."""
        return self._follower is not None and not self._gone

    @property
    def silent_since(self) -> str:
        """`no activity since 12:31:05` if the session is followed and its writer seems gone; else empty."""
        if self._follower is None or not self._gone:
            return ""
        moment = clock.strftime("%H:%M:%S", clock.localtime(self._heard_wall_seconds))
        return f"no activity since {moment}"

    def show(self, session: Session, path: Path | None, follower: Follower[Session] | None = None) -> None:
        if self._follower is not None and self._follower is not follower:
            self._follower.finish()
        if session is not self._session:
            from jaxprof.hlo.stages import release

            release()
        self._session, self.path, self._follower, self.profile = session, path, follower, None
        self.clock_shift_seconds, self._gone, self._same_clock = 0.0, False, True
        if follower is not None and path is not None:
            self._begin(session, path)

    def _begin(self, session: Session, path: Path) -> None:
        """Determine whose clock the session uses, and whether its writer is visible from here."""
        from jaxprof.session.lines import is_live

        now = clock.monotonic()
        self._locked = is_live(path)
        self._heard_seconds = self._looked_seconds = now
        self._heard_wall_seconds = clock.unix_seconds()
        header = session.header
        apart = (self._heard_wall_seconds - header.wall_seconds) - (now - header.monotonic_seconds)
        self._same_clock = abs(apart) < CLOCKS_APART_SECONDS and session.last_seconds <= now
        if not self._same_clock:
            self.clock_shift_seconds = session.last_seconds - now
        with contextlib.suppress(OSError):
            written = path.stat().st_mtime
            if not self._locked and clock.unix_seconds() - written > SILENCE_SECONDS:
                self._heard_wall_seconds, self._gone = written, True

    def poll(self) -> tuple[frozenset[str], bool]:
        """Read what another process has written since the last call; return the runs that changed, and whether the
        writer has come or gone."""
        if self._follower is None:
            return frozenset(), False
        events = self._follower.poll()
        before, now = self._gone, clock.monotonic()
        if events:
            self._heard_seconds, self._heard_wall_seconds, self._gone = now, clock.unix_seconds(), False
            if not self._same_clock:  # the event with the least delay gives the best estimate
                self.clock_shift_seconds = max(self.clock_shift_seconds, self.session.last_seconds - now)
        elif not self._gone and self.path is not None and now - self._looked_seconds >= LOOK_SECONDS:
            from jaxprof.session.lines import is_live

            self._looked_seconds = now
            locked = is_live(self.path)
            # a writer that sends nothing may be gone, and one that released the lock without closing the session is
            self._gone = not locked and (self._locked or now - self._heard_seconds > SILENCE_SECONDS)
            self._locked = locked
        if self._follower.session.complete:
            self._follower.finish()
            self._follower = None
        return frozenset(event.run for event in events if event.run), self._gone != before


def read(
    path: Path, *, follow: bool = False, reading: ProfileReading | None = None
) -> tuple[Follower[Session], Path, bool] | None:
    """Read a session file, or the profile of `reading`: return what follows its file, its path, and whether another
    process still writes it; None if the reading was stopped. For threads. Raises JaxprofError. `follow`: follow the
    session even if no writer is visible from here, as in a folder that another host writes to."""
    from jaxprof.session import Follower, Session
    from jaxprof.session.lines import is_live

    try:
        if reading is not None:
            path = reading.as_session()
        follower = Follower(path, Session)
        follower.poll()
    except FileRefusedError:
        if reading is not None and reading.stopped:
            return None
        raise
    finally:
        if reading is not None:
            reading.end()
    written = not follower.session.complete and (follow or is_live(path))
    if not written:
        follower.finish()
    return follower, path, written


class ProfileReading:
    """A profile that is being read. One thread works on it; any thread may look at it and stop it."""

    def __init__(self, path: Path, changed: Callable[[ProfileReading], object] = lambda reading: None) -> None:
        """The reading thread calls `changed` at each progress report and at the end."""
        self.path = path
        from jaxprof.events import ProgressMade

        self.progress = ProgressMade()
        self.over = self.stopped = False
        self._changed = changed
        self._lock = Lock()
        """Guards `stopped` and `_scheduler`: a reading that is stopped before it begins never begins."""
        self._scheduler: Scheduler | None = None

    def as_session(self) -> Path:
        """Return the session file made from the profile. Blocks: for threads. Raises JaxprofError if it is not a
        profile or cannot be written, and FileRefusedError if it was stopped."""
        from jaxprof.base.reaper import TemporaryFolder
        from jaxprof.runner.profiles import session_name, session_of_profile

        folder = TemporaryFolder("profile")
        atexit.register(folder.close)
        target = folder.path / session_name(self.path)
        try:
            session_of_profile(self.path, target, self._take, self._begin)
        finally:
            with self._lock:
                self._scheduler = None
        return target

    def _begin(self, scheduler: Scheduler) -> None:
        with self._lock:
            self._scheduler = scheduler
            if self.stopped:
                scheduler.cancel_all()

    def _take(self, events: Sequence[Event]) -> None:
        from jaxprof.events import ProgressMade

        reports = [event for event in events if isinstance(event, ProgressMade)]
        if reports:
            self.progress = reports[-1]
            self._changed(self)

    def stop(self) -> None:
        with self._lock:
            self.stopped = True
            if self._scheduler is not None:
                self._scheduler.cancel_all()
                self._scheduler.cancel_all()  # the second call waits less: the child has nothing to clean up

    def end(self) -> None:
        self.over = True
        self._changed(self)
