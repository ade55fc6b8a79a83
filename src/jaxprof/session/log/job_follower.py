"""The sessions of a job's folder, read as they grow: a poll reads only what has been added since the last one.

No file stays open between polls, so that a job of a thousand processes does not take as many descriptors.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Final, Generic, TypeVar

from jaxprof.errors import FileRefusedError
from jaxprof.session.fold import Session
from jaxprof.session.log.entry import is_live
from jaxprof.session.log.job_folder import JobMember, RecordedJob, job_sessions, recorded_job
from jaxprof.session.log.reader import Follower

SILENCE_SECONDS: Final = 30.0
"""A writer on another host, whose lock is not seen here, counts as gone after this long without an event."""

S = TypeVar("S", bound=Session)


class JobFollower(Generic[S]):
    """Each session is folded into a `kind`. One thread at a time may use it."""

    def __init__(self, folder: Path, kind: type[S]) -> None:
        self.folder = folder
        self._kind = kind
        self._host = socket.gethostname()
        self._followers: dict[int, Follower[S]] = {}
        self._members: dict[int, JobMember[S]] = {}
        self._sizes: dict[Path, int] = {}
        """In bytes, at the last reading."""
        self._refused: dict[Path, str] = {}
        self._notices: list[str] = []

    def poll(self, progress: Callable[[int, int], object] = lambda done, count: None) -> frozenset[int]:
        """Reads what has come since the last call; returns the processes of which something has changed. `progress`
        hears how many sessions were looked at, of how many.

        Raises FileRefusedError if the folder cannot be read; what was read of it before stays.
        """
        sessions, self._notices = job_sessions(self.folder)
        changed = set()
        for done, (index, path) in enumerate(sessions):
            progress(done, len(sessions))
            if self._read(index, path):
                changed.add(index)
        there = {path for _, path in sessions}
        self._refused = {path: what for path, what in self._refused.items() if path in there}
        for member in self._members.values():
            if member.path not in there:
                self._notices.append(f"{member.path.name} was deleted; what was read of it is shown")
        return frozenset(changed)

    @property
    def job(self) -> RecordedJob[S]:
        """The job as far as it was read. Raises FileRefusedError if there is no session in it that can be read."""
        return recorded_job(self.folder, self._members, [*self._refused.values(), *self._notices])

    @property
    def live(self) -> bool:
        """Whether a process of it still seems to run."""
        return any(member.live for member in self._members.values())

    def _read(self, index: int, path: Path) -> bool:
        """Reads what one session has more; whether anything of it has changed."""
        try:
            size = path.stat().st_size
        except OSError:
            return False  # deleted meanwhile
        before, known = self._members.get(index), self._sizes.get(path)
        grown = known != size
        if grown:
            self._sizes[path] = size
            if not self._take(index, path):
                return True
        member = self._members.get(index)
        if member is None or member.path != path:
            return False
        self._members[index] = replace(member, live=self._is_live(member))
        return grown or before is None or self._members[index].live != before.live

    def _take(self, index: int, path: Path) -> bool:
        """Folds the new events; False for a session that is refused."""
        follower = self._followers.get(index)
        try:
            if follower is None or follower.path != path:
                follower = Follower(path, self._kind)
            for _ in follower.take():
                pass
            follower.rest()
        except FileRefusedError as error:
            self._refused[path] = error.what
            return False
        self._refused.pop(path, None)
        self._followers[index] = follower
        self._members[index] = JobMember(index, path, follower.session, live=False)
        return True

    def _is_live(self, member: JobMember[S]) -> bool:
        """A lock is seen on its own host only; on others a session counts as written while it grows."""
        if member.session.complete:
            return False
        if is_live(member.path):
            return True
        try:
            silent = time.time() - member.path.stat().st_mtime
        except OSError:
            return False
        return member.session.header.host != self._host and silent < SILENCE_SECONDS
