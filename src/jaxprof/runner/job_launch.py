"""Start the processes of a job on this machine, and wait for them as a launcher does.

Each is `jaxprof script` itself, with variables that say which process it is, as `srun` sets them: there is one way of
recording a process of a job. The processes share our terminal and our process group. When one has failed, the others
get a moment to fail by themselves (most wait in a collective for the one that has ended), and are then ended; so are
those that have not ended some time after ctrl+c, with all that they have started in our group.

This module also reads which processes take the capture (`--capture-ranks 0,4-7`).
"""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import replace
from itertools import chain, count
from pathlib import Path
from typing import TYPE_CHECKING

from jaxprof.base.errors import UsageError, WorkerError, system_words
from jaxprof.base.operating_system import processors
from jaxprof.base.units import counted
from jaxprof.jobs.folder import ROLL_UP_ENDING, ROLL_UP_FOLDER
from jaxprof.jobs.process import variables_for
from jaxprof.runner.program_signals import (
    ENDING_SIGNALS,
    GRACE_SECONDS,
    KILL,
    TERMINATE,
    Escalation,
    continue_stopped,
    descendants,
    signal_each,
)
from jaxprof.session.files import EXTENSION, JOB_EXTENSION, process_number

if TYPE_CHECKING:
    from jaxprof.engine.protocol import RecordingOptions

_LOOK_SECONDS = 0.05
_GLOO = {"JAX_CPU_COLLECTIVES_IMPLEMENTATION": "gloo"}
"""Setting that lets processes on CPUs compute together; a value already in the environment comes first."""


class JobLaunch:
    """The processes of one job. `signal` may be called from any thread and from a signal handler."""

    def __init__(self, command: Sequence[str], count: int, job: str, *, output: int | None = None) -> None:
        """Start `command` `count` times. `output`: a descriptor that takes the place of their stdout. The first process
        has our stdin, the others have none. Raises WorkerError if one cannot be started; none is left then."""
        self._processes: list[subprocess.Popen[bytes]] = []
        self._signals: deque[tuple[int, bool]] = deque()
        """Signals that wait for the thread that waits for the processes."""
        self._escalation = Escalation()
        # a port of the loopback interface that is free now, for the coordinator
        with closing(socket.socket(socket.AF_INET, socket.SOCK_STREAM)) as listener:
            listener.bind(("127.0.0.1", 0))
            port = int(listener.getsockname()[1])
        _adopt_orphans(adopt=True)
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

    def signal(self, number: int, received: bool = False) -> None:
        """Pass a signal on to the processes that run, unless they have `received` it; each passes it on to its program.
        One that asks them to end also ends those that do not."""
        self._signals.append((number, received))

    def wait(self, failed: Callable[[int, int], object], report: Callable[[str], object]) -> int:
        """Wait for all of them. Return 0, the exit code of the process that failed first, or after a signal that asked
        them to end, as in a shell, 128 and its number. `failed` is called with index and exit code of each failure, in
        order, until we end the others; `report` with a line on whom we end."""
        first_failure = 0
        escalation = self._escalation
        running = dict(enumerate(self._processes))
        try:
            while running or ((escalation.asked is not None or escalation.step) and self._orphans()):
                while self._signals:
                    number, received = self._signals.popleft()
                    if number in ENDING_SIGNALS:
                        if self._escalation.asked is None:
                            name = signal.Signals(number).name
                            report(f"{name}: processes that have not ended {2 * GRACE_SECONDS:g} s from now are killed")
                        self._escalation.ask(number)
                        continue_stopped(descendants(os.getpid()))
                    if not received:
                        self._send(number)
                for index, process in list(running.items()):
                    if process.poll() is None:
                        continue
                    del running[index]
                    code = process.returncode if process.returncode >= 0 else 128 - process.returncode  # as in a shell
                    if not code:
                        continue
                    if not escalation.step and escalation.asked is None:
                        failed(index, code)
                        escalation.begin()
                    if not first_failure:
                        first_failure = code if escalation.first is None else 128 + escalation.first
                if (step := escalation.due_step()) is not None:
                    self._end(step, running, report)
                if running or escalation.asked is not None or escalation.step:
                    time.sleep(_LOOK_SECONDS)
        except BaseException:
            self._kill_all()
            raise
        _adopt_orphans(adopt=False)
        return first_failure

    def _send(self, number: int) -> None:
        for process in self._processes:
            with suppress(ProcessLookupError, PermissionError):
                process.send_signal(number)

    def _end(self, step: int, running: Mapping[int, object], report: Callable[[str], object]) -> None:
        """End the processes that still run, and what they have left: ask the programs once more, then kill them, then
        kill the processes that record them, which note that and end their sessions in between."""
        from jaxprof.jobs.figures import processes_named

        which = processes_named(sorted(running)) if running else "what the processes have left"
        if step == TERMINATE:
            report(f"{which}: not ended, SIGTERM follows")
            self._send(signal.SIGTERM)
            continue_stopped(descendants(os.getpid()))
            return
        if step == KILL:
            report(f"{which}: not ended, killed")
        # The processes that record have two steps to end their sessions once their programs are killed.
        spared = {process.pid for process in self._processes} if step <= KILL + 2 else ()
        signal_each(descendants(os.getpid()), signal.SIGKILL, but=spared)

    def _orphans(self) -> bool:
        """Return whether processes of the programs still run in our group, after reaping those that have ended."""
        import psutil

        for child in psutil.Process().children():
            with suppress(psutil.Error, ChildProcessError):
                if child.status() == psutil.STATUS_ZOMBIE and all(child.pid != each.pid for each in self._processes):
                    os.waitpid(child.pid, os.WNOHANG)
        return bool(descendants(os.getpid()))

    def _kill_all(self) -> None:
        signal_each(descendants(os.getpid()), signal.SIGKILL)
        for process in self._processes:
            process.kill()
            process.wait()
        _adopt_orphans(adopt=False)


def _adopt_orphans(*, adopt: bool) -> None:
    """Become the parent of the processes whose parents below us end, so that none of a job is lost sight of. Other
    systems than Linux know no such thing: there, what a program leaves behind is not found."""
    if sys.platform == "linux":
        import ctypes

        with suppress(OSError, AttributeError):
            # 36 is `PR_SET_CHILD_SUBREAPER` of Linux's prctl.h.
            ctypes.CDLL(None).prctl(36, int(adopt), 0, 0, 0)


ALL = "all"
_RANGE = re.compile(r"(\d{1,9})(?:-(\d{1,9}))?")


def read_ranks(text: str, count: int) -> list[range] | None:
    """Read `0,4-7`, of a job of `count` processes (0: unknown); None for `all`. Raises UsageError."""
    words = [word.strip() for word in text.split(",")]
    if words == [ALL]:
        return None
    ranks: list[range] = []
    for word in words:
        match = _RANGE.fullmatch(word)
        if match is None:
            raise UsageError(
                f"cannot read --capture-ranks {text!r}: {word!r} is not a process", "It looks like 0,4-7, or is `all`."
            )
        first, last = int(match[1]), int(match[2] or match[1])
        if last < first or (count and last >= count):
            what = (
                f"of {count} processes the last one is {count - 1}" if count and last >= count else "it runs backwards"
            )
            raise UsageError(f"--capture-ranks {word}: {what}", "Processes count from 0.")
        ranks.append(range(first, last + 1))
    return ranks


def options_of(ranks: Sequence[range] | None, index: int, options: RecordingOptions) -> RecordingOptions:
    """Return the options of one process: without a capture window if it is not in `ranks`."""
    if ranks is None or any(index in numbers for numbers in ranks):
        return options
    return replace(options, capture_after_seconds=None, capture_steps=None, capture_seconds=None)


_ALWAYS_ALLOWED = 16
_ALLOWED_PER_PROCESSOR = 4
"""Processes for each processor that start without `--oversubscribe`. More make little progress, and each needs memory
for its own JAX, some 300 MB."""


def job_folder(out: Path) -> Path:
    """Return the folder of a job that `--out` names. Raises UsageError for one file."""
    if out.name.endswith(JOB_EXTENSION):
        return out
    if out.name.endswith(EXTENSION) or out.is_file():
        what = f"{out} is one file, and a job has a session for each process"
        raise UsageError(what, f"Name a folder: --out {str(out).removesuffix(EXTENSION)}{JOB_EXTENSION}")
    return out.with_name(f"{out.name}{JOB_EXTENSION}")


def refuse_too_many(processes: int) -> None:
    """Raises UsageError for a number of processes that this machine can hardly run, and that may be a mistake."""
    cores = processors()
    most = max(_ALWAYS_ALLOWED, _ALLOWED_PER_PROCESSOR * cores)
    if processes > most:
        what = (
            f"-n {processes} starts {processes} processes on {counted(cores, 'processor')}, each with a JAX of its own"
        )
        raise UsageError(
            f"{what} (some 300 MB)",
            f"Up to {most} start at once; --oversubscribe starts them all. Options of the program go after its name.",
        )


def free_folder(target: str) -> Path:
    """Return `train.jaxprof.d` in the current folder, or a path with the next number: `train-2.jaxprof.d`."""
    stem = Path(target).stem or "program"
    names = chain([stem], (f"{stem}-{number}" for number in count(2)))
    return next(path for name in names if not (path := Path(f"{name}{JOB_EXTENSION}")).exists())


def delete_sessions(folder: Path, index: int | None = None) -> None:
    """Delete the sessions and roll-ups of that process, or of all. Old roll-ups would otherwise stand for processes
    that have no session yet."""
    rollups = list(folder.glob(f"{ROLL_UP_FOLDER}/*/*{ROLL_UP_ENDING}"))
    for path in (*folder.glob(f"*{EXTENSION}"), *rollups):
        number = process_number(f"{path.name.removesuffix(ROLL_UP_ENDING).removesuffix(EXTENSION)}{EXTENSION}")
        if number == index if index is not None else number is not None or path in rollups:
            path.unlink(missing_ok=True)
