"""Says, while a job runs, that it stands still or that a process has failed, as its sessions grow.

What is new in them is searched for the few words that begin such a state, which costs next to nothing; only then the
job is read, and seldom again while that state lasts.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from jaxprof.base.errors import JaxprofError
from jaxprof.base.files import open_regular
from jaxprof.session.files import EXTENSION

LOOK_SECONDS = 5.0
LONGEST_SECONDS, LONGEST_UNSAID_SECONDS = 300.0, 20.0
"""The pause between two readings of a job doubles up to this, as long as they find the same, or nothing yet."""
_BEGIN = re.compile(rb'"type":"(standstill_seen|silence_seen|program_ended)"')
_SAID = ("process_standstill", "process_awaited", "process_failed")


class JobWatch:
    """Follows the folder of one job in a thread of its own, from `start` to `stop`."""

    def __init__(self, folder: Path, say: Callable[[str], object]) -> None:
        """`say` is called with a line for people, in that thread."""
        self._folder, self._say = folder, say
        self._offsets: dict[Path, int] = {}
        self._begun = False
        """Whether a session has got a word that begins such a state since the job was last read."""
        self._over = threading.Event()
        self._said: tuple[object, ...] = ()
        self._pause, self._due = LOOK_SECONDS, 0.0
        self._thread = threading.Thread(target=self._run, name="jaxprof-watch", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """End it; what it is about to say is not said any more."""
        self._over.set()
        self._thread.join(LOOK_SECONDS)

    def _run(self) -> None:
        now = 0.0
        while not self._over.wait(LOOK_SECONDS):
            now += LOOK_SECONDS
            with suppress(OSError, JaxprofError):  # the end of the job reports what is wrong with its folder
                self.look(now)

    def look(self, now: float) -> None:
        """Say what is new, at `now` seconds by any clock. Raises OSError, and FileRefusedError for a folder without
        a session."""
        # A session may have got such a word since the last look, or a state that was said may be over.
        begun = bool(self._said)
        for path in self._folder.glob(f"*{EXTENSION}"):
            with suppress(OSError), open_regular(path) as file:
                file.seek(self._offsets.get(path, 0))
                while block := file.read(1 << 20):
                    begun = begun or _BEGIN.search(block) is not None
                self._offsets[path] = file.tell()
        self._begun = begun or self._begun
        if not self._begun or now < self._due:
            return
        self._begun = False
        from jaxprof.jobs.job import read_job_figures

        findings = [each for each in read_job_figures(self._folder).findings if each.code in _SAID]
        # the line of a process that goes on is another one at each look
        said = tuple((e.code, e.index, () if e.code == "process_awaited" else e.places) for e in findings)
        if self._over.is_set():
            return
        if said == self._said:
            self._pause = min(2 * self._pause, LONGEST_SECONDS if said else LONGEST_UNSAID_SECONDS)
        else:
            self._pause = LOOK_SECONDS
            if not said:
                self._say("the job goes on")
            for finding in findings:
                at = f", at {finding.where.short()}" if finding.where and ":" not in finding.message else ""
                self._say(f"{finding.message}{at}")
        self._said, self._due = said, now + self._pause
