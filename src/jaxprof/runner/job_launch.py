"""Start the processes of a job on this machine, and wait for them as a launcher does.

Each is `jaxprof script` itself, with variables that say which process it is, as `srun` sets them: there is one way of
recording a process of a job. The processes share our terminal and our process group. When one has failed, the others
get a moment to fail by themselves (most wait in a collective for the one that has ended), and are then ended.

This module also chooses the processes that take the capture (`--capture-ranks 0,slowest`). Indices are known before the
start. The slowest process is known only once the job runs, and under `srun` each process sees the others only through
the job's folder. So the process with the least index decides, when the time of the capture has come: it reads the
sessions of all processes, takes the one whose own work (data, Python, dispatch, copies, compiling) has the largest
share of its loop, and writes its choice into the folder, whole or not at all. The others wait for that file. So all of
them use the same choice, and begin within `LOOK_SECONDS` of each other, without a common clock.
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
from collections.abc import Callable, Iterable, Sequence
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
"""Time from the first failure until the others are sent SIGTERM, and from there until they are killed."""
_LOOK_SECONDS: Final = 0.05
_GLOO: Final = {"JAX_CPU_COLLECTIVES_IMPLEMENTATION": "gloo"}
"""Setting that lets processes on CPUs compute together; a value already in the environment comes first."""


class JobLaunch:
    """The processes of one job. `signal` may be called from any thread and from a signal handler."""

    def __init__(self, command: Sequence[str], count: int, job: str, *, output: int | None = None) -> None:
        """Start `command` `count` times. `output`: a descriptor that takes the place of their stdout. The first process
        has our stdin, the others have none. Raises WorkerError if one cannot be started; none is left then."""
        self._processes: list[subprocess.Popen[bytes]] = []
        port = _free_port()
        for index in range(count):
            environment = _GLOO | dict(os.environ) | variables_for(index, count, job, port)
            try:
                stdin = None if index == 0 else subprocess.DEVNULL
                self._processes.append(subprocess.Popen(command, env=environment, stdin=stdin, stdout=output))
            except OSError as error:
                self._kill_all()
                raise WorkerError(
                    f"process {index} of {count} could not be started: {system_words(error)}", "Ask for fewer."
                ) from error

    def signal(self, number: int) -> None:
        """Pass a signal on to the processes that run; each passes it on to its program."""
        for process in self._processes:
            with suppress(ProcessLookupError, PermissionError):
                process.send_signal(number)

    def wait(self, failed: Callable[[int, int], None]) -> int:
        """Wait for all of them. Return 0, or the exit code of the process that failed first.

        `failed` is called with index and exit code of each failure, in order, until we end the others.
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


def _kill_programs(processes: Iterable[subprocess.Popen[bytes]]) -> None:
    """Kill the programs; the processes that record them note that, and end their sessions."""
    import psutil

    for process in processes:
        with suppress(psutil.Error):
            for child in psutil.Process(process.pid).children():
                with suppress(psutil.Error):
                    child.kill()


def _free_port() -> int:
    """Return a port of the loopback interface that is free now, for the coordinator."""
    with closing(socket.socket(socket.AF_INET, socket.SOCK_STREAM)) as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


SLOWEST: Final = "slowest"
ALL: Final = "all"
CHOICE: Final = "capture.json"
"""File in the folder of a job that lists the processes that capture."""
DEFAULT_AFTER_SECONDS: Final = 10.0
"""Default delay before the slowest process is looked for."""
LOOK_SECONDS: Final = 0.05
_PATIENCE_SECONDS: Final = 60.0
"""How long to wait for the choice, and to repeat it while a process has spent too little time in its loop."""
_AGAIN_SECONDS: Final = 2.0
_LONGEST_CHOICE: Final = 1 << 20
_RANGE: Final = re.compile(r"(\d{1,9})(?:-(\d{1,9}))?")


@dataclass(frozen=True, slots=True)
class CaptureRanks:
    """The processes that take the capture."""

    ranges: tuple[tuple[int, int], ...] = ()
    """First and last index of each range, both included."""
    slowest: bool = False
    """Whether the slowest of the other processes captures, too."""

    def names(self, index: int) -> bool:
        """Return whether `index` is in one of the ranges."""
        return any(first <= index <= last for first, last in self.ranges)


def read_ranks(text: str, count: int) -> CaptureRanks | None:
    """Read `0,4-7,slowest`, of a job of `count` processes (0: unknown); None for `all`. Raises UsageError."""
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
    """Return the options of one process: without a capture window if it takes none, or if the slowest is not known
    yet."""
    from dataclasses import replace

    if ranks is None or (ranks.names(index) and not ranks.slowest):
        return options
    return replace(options, capture_after_seconds=None, capture_steps=None, capture_seconds=None)


def slowest(processes: Sequence[ProcessFigures], ranks: CaptureRanks, *, guess: bool = False) -> int | None:
    """Return the index of the process whose own work takes the largest share of its loop, of those not in the ranges.

    None while one of them has not been in its loop for long enough; with `guess` that one is left out.
    """
    from jaxprof.analysis.jobs.late import OWN

    others = [process for process in processes if not ranks.names(process.index)]
    own = {process.index: sum(process.shares[part] for part in OWN) for process in others if process.shares is not None}
    if len(own) < len(others) and not guess:
        return None
    return max(own, key=lambda index: (own[index], -index), default=None)


class CaptureChoice:
    """Waits in a thread for the time of the capture, and requests it if this process is to take it."""

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
        self._after_seconds, self._capture = after_seconds, capture
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="jaxprof-capture-choice", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End the choice, because the program has ended."""
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        if self._over.wait(self._after_seconds):
            return
        chosen = self._chosen()
        if chosen is not None and self._index in chosen and not self._over.is_set():
            self._capture()

    def _chosen(self) -> set[int] | None:
        until = time.monotonic() + _PATIENCE_SECONDS
        decides = None
        while not self._over.is_set() and time.monotonic() < until:
            chosen = read_choice(self._folder)
            if chosen is not None:
                return chosen
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
        """Write the choice, if there is one; with `last`, at least the processes in the ranges, so that none waits in
        vain."""
        from jaxprof.analysis.jobs.figures import process_figures
        from jaxprof.session import Session
        from jaxprof.session.log.job_folder import read_job

        try:
            job = read_job(self._folder, Session)
        except FileRefusedError:
            return
        late = slowest([process_figures(member) for member in job.members], self._ranks, guess=last)
        if (late is None or job.missing) and not last:
            return
        named = [member.index for member in job.members if self._ranks.names(member.index)]
        chosen = sorted({*named, *([] if late is None else [late])})
        with suppress(OSError), taking_place(self._folder / CHOICE, only_regular=True) as partial:
            partial.write_text(json.dumps({"processes": chosen, "slowest": late}), "utf-8")


def read_choice(folder: Path) -> set[int] | None:
    """Return the indices of the chosen processes; None while there is no choice that can be read."""
    try:
        with open_regular(folder / CHOICE) as file:
            chosen = json.loads(file.read(_LONGEST_CHOICE))["processes"]
        return {int(index) for index in chosen}
    except (OSError, ValueError, LookupError, TypeError, OverflowError, RecursionError):
        return None
