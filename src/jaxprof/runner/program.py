"""One program of the user's as a child process: started unchanged, followed from outside, and sent requests.

The child is `PYTHON FILE ARGS`, nothing else: the recorder enters through Python's own start-up (`recorder.inject`).
The program either shares our terminal and process group, so that ctrl+c, job control and stdin are what they would be
without us, or it leads a group of its own and its output is captured.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from jaxprof.early_start import VARIABLE, Started, enlarge, environment
from jaxprof.engine.protocol.recording import (
    CaptureRequest,
    EndCaptureRequest,
    ProgramRequest,
    RecordingOptions,
    encode_program_request,
)
from jaxprof.operating_system import refuse_to_run
from jaxprof.runner.child import ChildProcess, Pipes
from jaxprof.runner.exits import KILLED_AFTER_TERM, Exit

if TYPE_CHECKING:
    from jaxprof.events import Event
    from jaxprof.runner.guard_filter import GuardFilter

STDERR = 2
_LOOKS = 10
_LOOK_SECONDS = 0.002


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramCommand:
    """The program to run, as one would type it after `python`."""

    path: str
    """The file, or with `module` the name after `-m`."""
    arguments: tuple[str, ...] = ()
    module: bool = False
    directory: str = ""
    """The working directory; empty for the current one."""
    options: RecordingOptions = field(default_factory=RecordingOptions)
    keep_trace: bool = False
    """Whether the folders with its capture windows' raw profiles are kept."""

    @property
    def name(self) -> str:
        """Its name on screens: that of the file or the module."""
        return self.path if self.module else Path(self.path).name

    @property
    def argv(self) -> list[str]:
        """As it would be typed after `python`."""
        return (["-m"] if self.module else []) + [self.path, *self.arguments]


class ProgramProcess(ChildProcess):
    """A running program. `signal` may be called from any thread; one thread owns the rest. Processes that the program
    leaves behind stay, because it does so on purpose."""

    def __init__(
        self,
        python: str,
        program: ProgramCommand,
        *,
        inherit: bool,
        keep_stderr: bool = False,
        started: Started | None = None,
    ) -> None:
        """Starts the program, unless it was `started` early. `inherit`: it gets our stdin, stdout and stderr, and our
        process group; otherwise stdin is empty and the output comes as events. With the option `transfers`, and with
        `keep_stderr`, stderr is always a pipe, and an inherited one is passed on; `keep_stderr` has it as events, too.
        Raises WorkerError if the program cannot be started, UsageError on Windows."""
        refuse_to_run("recording a program")
        self._inherit, self._keep_stderr = inherit, keep_stderr
        self._asked_to_end = False
        self._guard = _guard(program.options)
        pipes = Pipes(*started.pipes) if started is not None else Pipes.open()
        enlarge(pipes.events_write)
        descriptors = (pipes.events_write, pipes.events_read, pipes.control_read)
        began = started.began_seconds if started is not None else time.monotonic()
        facts = json.dumps({"began_seconds": began, "options": asdict(program.options)})
        guarded = ("stderr",) if self._guard is not None or keep_stderr else ()
        super().__init__(
            [python, *program.argv],
            pipes,
            environment(" ".join([*map(str, descriptors), facts]), unbuffered=not inherit),
            name="the program",
            descriptors=descriptors,
            captured=guarded if inherit else ("stdout", "stderr"),
            own_group=not inherit,
            directory=program.directory,
            process=started.process if started is not None else None,
        )
        self.began_seconds = began  # the recorder's first sample window begins at the same moment
        os.set_blocking(self._control, False)
        if self._process.stderr is not None:
            enlarge(self._process.stderr.fileno())

    @property
    def exit_code(self) -> int | None:
        """As in a shell: 128 plus the signal's number after a signal; None while it runs."""
        code = self.returncode
        return code if code is None or code >= 0 else 128 - code

    @property
    def silenced(self) -> bool:
        """Whether the event pipe was closed: nothing more that happens inside can be seen."""
        return "events" not in self._watched()

    def replaced(self) -> bool | None:
        """Whether the process has become another program (exec): its environment is not the one that we gave it. None
        if that cannot be seen: it is ending, or the system does not report it."""
        for _ in range(_LOOKS):
            try:
                started_with = Path(f"/proc/{self.pid}/environ").read_bytes()
            except OSError:
                return None
            if started_with:
                return f"{VARIABLE}=".encode() not in started_with
            if not self.alive:
                return None
            time.sleep(_LOOK_SECONDS)  # in the middle of an exec there is momentarily no environment
        return None

    def capture(self, seconds: float | None = None, steps: int | None = None) -> None:
        """Requests a window in which JAX's profiler is on. A program that does not read requests gets none."""
        self._ask(CaptureRequest(seconds=seconds, steps=steps))

    def end_capture(self) -> None:
        """Ends the window that is on or waiting."""
        self._ask(EndCaptureRequest())

    def signal(self, number: int) -> None:
        """Passes a signal on to the program, for which its sender meant it."""
        self._asked_to_end = self._asked_to_end or number == signal.SIGTERM
        with contextlib.suppress(ProcessLookupError, PermissionError):
            self._process.send_signal(number)

    def interrupt(self) -> None:
        """Interrupts it as ctrl+c does."""
        self.signal(signal.SIGINT)

    def terminate(self) -> None:
        """Asks it to end."""
        self.signal(signal.SIGTERM)

    def explain(self) -> Exit:
        """Why it has ended. Launchers kill what has not ended some time after SIGTERM: no lack of memory."""
        found = super().explain()
        if self.returncode != -signal.SIGKILL or not self._asked_to_end or found.known_cause:
            return found
        return KILLED_AFTER_TERM

    def end(self, patience_seconds: float) -> None:
        """Ends it together with all its children, as ctrl+c and then SIGTERM would, each with half of the patience;
        kills what is left after that."""
        for number in (signal.SIGINT, signal.SIGTERM):
            self._signal_all(number)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(patience_seconds / 2)
                break
        self.kill()

    def _ask(self, request: ProgramRequest) -> None:
        with contextlib.suppress(OSError):
            os.write(self._control, encode_program_request(request))

    def _wait_seconds(self, at_most_seconds: float) -> float:
        held = self._guard.wait_seconds(time.monotonic()) if self._guard is not None else None
        return at_most_seconds if held is None else min(held, at_most_seconds)

    def _received(self, name: str, data: bytes) -> list[Event]:
        if name != "stderr":
            return super()._received(name, data)
        if self._guard is None:
            return self._let_through(data)
        return self._let_through(self._guard.feed(data, time.monotonic()))

    def _over(self, name: str) -> list[Event]:
        if self._guard is None or name != "stderr":
            return super()._over(name)
        return self._let_through(self._guard.release()) + super()._over(name)

    def _after_read(self) -> list[Event]:
        """The copies that the guard has reported; lets through what was held back for it, once it has waited long
        enough."""
        if self._guard is None:
            return []
        now = time.monotonic()
        due = self.over or self._guard.wait_seconds(now) == 0
        events = self._let_through(self._guard.release()) if due else []
        counted = self._guard.collect(now, last=self.over)
        return events if counted is None else [*events, counted]

    def _let_through(self, data: bytes) -> list[Event]:
        """The program's own part of its stderr: goes to ours if that is inherited, and into events if it is not, or is
        to be kept."""
        if self._inherit:
            self._pass_on(data)
        return super()._received("stderr", data) if self._keep_stderr or not self._inherit else []

    def _pass_on(self, data: bytes) -> None:
        """Writes all of it to our stderr. If nobody reads that any more, the program's is closed, so that it notices
        itself."""
        try:
            _write_all(STDERR, data)
        except OSError:
            stream = self._process.stderr
            if stream is not None and not stream.closed:
                if "stderr" in self._watched():
                    self._selector.unregister(stream)
                stream.close()


def _write_all(descriptor: int, data: bytes) -> None:
    """Writes all of `data`, as soon as the descriptor takes it; the descriptor may be non-blocking. Raises OSError."""
    rest = memoryview(data)
    while rest:
        try:
            rest = rest[os.write(descriptor, rest) :]
        except BlockingIOError:
            select.select([], [descriptor], [])


def _guard(options: RecordingOptions) -> GuardFilter | None:
    if not options.transfers:
        return None
    from jaxprof.runner.guard_filter import GuardFilter

    return GuardFilter()
