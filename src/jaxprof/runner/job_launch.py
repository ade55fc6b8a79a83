"""Starts the processes of a job on this machine, and waits for them as a launcher does.

Each is `jaxprof script` itself, told by variables which process it is, as `srun` would tell it: there is one way of
recording a process of a job. They share our terminal and our process group. Once a process has failed, the others are
given a moment to fail by themselves (most wait in a collective for the one that has gone), and are ended then.

Which of them take the capture (`--capture-ranks 0,slowest`): indices are known before the start. The slowest one is
known only once the job runs, and each process, under `srun`, sees no other one than in the folder of the job. So the
process with the least index decides, once the time of the capture has come: it reads the sessions of all so far, takes
the one whose own work (data, Python, dispatch, copies, compiling) has the largest share of its loop, and writes its
choice into the folder, whole or not at all. The others wait for that file. So all of them come to one answer, and begin
within `LOOK_SECONDS` of each other, without a common clock.
"""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from jaxprof.errors import FileRefusedError, UsageError, WorkerError, system_words
from jaxprof.files import open_regular, taking_place
from jaxprof.job_process import variables_for

if TYPE_CHECKING:
    from jaxprof.analysis.jobs.figures import ProcessFigures
    from jaxprof.engine.protocol.recording import RecordingOptions

GRACE_SECONDS: Final = 5.0
"""After the first failure, until the others are asked to end, and from there until they are killed."""
_LOOK_SECONDS: Final = 0.05
_GLOO: Final = {"JAX_CPU_COLLECTIVES_IMPLEMENTATION": "gloo"}
"""So that processes on CPUs can compute together; a program's own setting, or that of its user, comes first."""


class JobLaunch:
    """The processes of one job. `signal` may be called from any thread and from a signal handler."""

    def __init__(self, command: Sequence[str], count: int, job: str, *, output: int | None = None) -> None:
        """Starts `command` `count` times. `output`: a descriptor that takes the place of their stdout. The first one
        has our stdin, the others have none. Raises WorkerError if one cannot be started; none is left then."""
        self._processes: list[subprocess.Popen[bytes]] = []
        port = _free_port()
        for index in range(count):
            environment = _GLOO | dict(os.environ) | variables_for(index, count, job, port)
            try:
                self._processes.append(_start(command, environment, output, first=index == 0))
            except OSError as error:
                self._kill_all()
                raise WorkerError(
                    f"process {index} of {count} could not be started: {system_words(error)}", "Ask for fewer."
                ) from error

    def signal(self, number: int) -> None:
        """Passes a signal on to the processes that run; each passes it on to its program."""
        for process in self._processes:
            with suppress(ProcessLookupError, PermissionError):
                process.send_signal(number)

    def wait(self, failed: Callable[[int, int], None]) -> int:
        """Waits for all of them. Returns 0, or the exit code of the process that failed first.

        `failed` is called with index and exit code of each failure, in their order, until the others are ended by us.
        """
        first_failure, ended_by_us = 0, False
        running = dict(enumerate(self._processes))
        due = float("inf")
        try:
            while running:
                for index, process in list(running.items()):
                    if process.poll() is None:
                        continue
                    del running[index]
                    code = process.returncode if process.returncode >= 0 else 128 - process.returncode  # as in a shell
                    if code and not ended_by_us:
                        failed(index, code)
                    if code and not first_failure:
                        first_failure, due = code, time.monotonic() + GRACE_SECONDS
                if running and time.monotonic() >= due:
                    due = time.monotonic() + GRACE_SECONDS
                    _kill_programs(running.values()) if ended_by_us else self.signal(signal.SIGTERM)
                    ended_by_us = True
                if running:
                    time.sleep(_LOOK_SECONDS)
        except BaseException:
            self._kill_all()
            raise
        return first_failure

    def _kill_all(self) -> None:
        _kill_programs(self._processes)
        for process in self._processes:
            process.kill()
            process.wait()


def _start(
    command: Sequence[str], environment: Mapping[str, str], output: int | None, *, first: bool
) -> subprocess.Popen[bytes]:
    return subprocess.Popen(command, env=environment, stdin=None if first else subprocess.DEVNULL, stdout=output)


def _kill_programs(processes: Iterable[subprocess.Popen[bytes]]) -> None:
    """Kills the programs; the processes that record them note that, and end their sessions."""
    import psutil

    for process in processes:
        with suppress(psutil.Error):
            for child in psutil.Process(process.pid).children():
                with suppress(psutil.Error):
                    child.kill()


def _free_port() -> int:
    """Of the loopback interface, for the coordinator: nobody has it now."""
    with closing(socket.socket(socket.AF_INET, socket.SOCK_STREAM)) as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


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
