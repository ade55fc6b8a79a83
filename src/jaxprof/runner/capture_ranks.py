"""Which processes of a job take the capture: `--capture-ranks 0,slowest`.

Indices are known before the start. The slowest one is known only once the job runs, and each process, under `srun`,
sees no other one than in the folder of the job. So the process with the least index decides, once the time of the
capture has come: it reads the sessions of all so far, takes the one whose own work (data, Python, dispatch, copies,
compiling) has the largest share of its loop, and writes its choice into the folder, whole or not at all. The others
wait for that file. So all of them come to one answer, and begin within `LOOK_SECONDS` of each other, without a common
clock.
"""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from jaxprof.errors import FileRefusedError, UsageError
from jaxprof.files import open_regular, taking_place

if TYPE_CHECKING:
    from jaxprof.analysis.jobs.figures import ProcessFigures
    from jaxprof.engine.protocol.recording import RecordingOptions

SLOWEST: Final = "slowest"
ALL: Final = "all"
CHOICE: Final = "capture.json"
"""In the folder of a job: which processes capture."""
DEFAULT_AFTER_SECONDS: Final = 10.0
"""Until the slowest process is looked for, where nobody says."""
LOOK_SECONDS: Final = 0.05
_PATIENCE_SECONDS: Final = 60.0
"""How long the choice is waited for, or tried again while a process has not been seen in its loop for long enough."""
_AGAIN_SECONDS: Final = 2.0
_LONGEST_CHOICE: Final = 1 << 20
_RANGE: Final = re.compile(r"(\d{1,9})(?:-(\d{1,9}))?")


@dataclass(frozen=True, slots=True)
class CaptureRanks:
    """The processes that are to capture."""

    ranges: tuple[tuple[int, int], ...] = ()
    """First and last index of each range."""
    slowest: bool = False
    """Besides, the slowest one of the others."""

    def names(self, index: int) -> bool:
        """Whether the process is named by its index."""
        return any(first <= index <= last for first, last in self.ranges)


def read_ranks(text: str, count: int) -> CaptureRanks | None:
    """`0,4-7,slowest` of a job of `count` processes (0: not known); None for `all`. Raises UsageError."""
    words = [word.strip() for word in text.split(",")]
    if words == [ALL]:
        return None
    ranges: list[tuple[int, int]] = []
    for word in words:
        match = _RANGE.fullmatch(word)
        if word == SLOWEST:
            continue
        if match is None:
            raise UsageError(
                f"cannot read --capture-ranks {text!r}: {word!r} is no process",
                "It looks like 0,4-7,slowest, or is `all`.",
            )
        first, last = int(match[1]), int(match[2] or match[1])
        if last < first or (count and last >= count):
            what = (
                f"of {count} processes the last one is {count - 1}" if count and last >= count else "it runs backwards"
            )
            raise UsageError(f"--capture-ranks {word}: {what}", "Processes count from 0.")
        ranges.append((first, last))
    return CaptureRanks(tuple(ranges), SLOWEST in words)


def options_of(ranks: CaptureRanks | None, index: int, options: RecordingOptions) -> RecordingOptions:
    """The options of one process: without a window of its own where it has none, or only once the slowest is known."""
    from dataclasses import replace

    if ranks is None or (ranks.names(index) and not ranks.slowest):
        return options
    return replace(options, capture_after_seconds=None, capture_steps=None, capture_seconds=None)


def slowest(processes: Sequence[ProcessFigures], ranks: CaptureRanks, *, guess: bool = False) -> int | None:
    """The one, of those that are not named by their index, whose own work takes the largest share of its loop.

    None while one of them has not been seen in its loop for long enough; with `guess` that one is left out.
    """
    from jaxprof.analysis.jobs.late import OWN

    others = [process for process in processes if not ranks.names(process.index)]
    own = {process.index: sum(process.shares[part] for part in OWN) for process in others if process.shares is not None}
    if len(own) < len(others) and not guess:
        return None
    return max(own, key=lambda index: (own[index], -index), default=None)


class CaptureChoice:
    """Waits, in a thread of its own, for the time of the capture, and asks for it if this process is to take it."""

    def __init__(
        self,
        ranks: CaptureRanks,
        index: int,
        folder: Path,
        after_seconds: float,
        capture: Callable[[], None],
    ) -> None:
        """`capture` requests the window; it is called once, from the thread."""
        self._ranks, self._index, self._folder = ranks, index, folder
        self._after, self._capture = after_seconds, capture
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="jaxprof-capture-choice", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """The program has ended: nothing is chosen any more."""
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        if self._over.wait(self._after):
            return
        chosen = self._chosen()
        if chosen is not None and self._index in chosen and not self._over.is_set():
            self._capture()

    def _chosen(self) -> set[int] | None:
        until = time.monotonic() + _PATIENCE_SECONDS
        decides = None
        while not self._over.is_set() and time.monotonic() < until:
            found = read_choice(self._folder)
            if found is not None:
                return found
            decides = self._decides() if decides is None else decides
            if decides:
                self._decide(last=time.monotonic() + _AGAIN_SECONDS >= until)
            if not decides or read_choice(self._folder) is None:
                self._over.wait(_AGAIN_SECONDS if decides else LOOK_SECONDS)
        return None

    def _decides(self) -> bool:
        from jaxprof.session.log.job_folder import job_sessions

        try:
            return min((index for index, _ in job_sessions(self._folder)[0]), default=self._index) == self._index
        except FileRefusedError:
            return False

    def _decide(self, *, last: bool) -> None:
        """Writes the choice, if there is one; with `last`, whoever is named by index, so that nobody waits in vain."""
        from jaxprof.analysis.jobs.figures import process_figures
        from jaxprof.session import Session
        from jaxprof.session.log.job_folder import read_job

        try:
            job = read_job(self._folder, Session)
        except FileRefusedError:
            return
        late = slowest([process_figures(each) for each in job.members], self._ranks, guess=last)
        if (late is None or job.missing) and not last:
            return
        named = [member.index for member in job.members if self._ranks.names(member.index)]
        chosen = sorted({*named, *([] if late is None else [late])})
        with suppress(OSError), taking_place(self._folder / CHOICE, only_regular=True) as partial:
            partial.write_text(json.dumps({"processes": chosen, "slowest": late}), "utf-8")


def read_choice(folder: Path) -> set[int] | None:
    """The processes that were chosen; None while there is no choice that can be read."""
    try:
        with open_regular(folder / CHOICE) as file:
            chosen = json.loads(file.read(_LONGEST_CHOICE))["processes"]
        return {int(index) for index in chosen}
    except (OSError, ValueError, LookupError, TypeError, OverflowError, RecursionError):
        return None
