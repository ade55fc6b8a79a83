"""Run one program of the user's as a child process: started unchanged, followed from outside, and sent requests.

The child is `PYTHON FILE ARGS`, nothing else: the recorder enters through Python's own start-up (`recorder.inject`).
The program either shares our terminal and process group, so that ctrl+c, job control and stdin are what they would be
without us, or it leads a group of its own and its output is captured.
"""

from __future__ import annotations

import _thread
import contextlib
import json
import os
import re
import shlex
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jaxprof.base.early_start import Started, enlarge, environment
from jaxprof.base.errors import UsageError, WorkerError
from jaxprof.base.files import with_home, write_all
from jaxprof.base.operating_system import refuse_own_code, refuse_to_run
from jaxprof.base.values import field, frozen
from jaxprof.engine.protocol import CaptureRequest, RecordingOptions, encode_request
from jaxprof.runner.child import OUT_OF_MEMORY, ChildProcess, Pipes
from jaxprof.runner.program_signals import (
    ENDING_SIGNALS,
    TERMINATE,
    Escalation,
    continue_stopped,
    descendants,
    signal_each,
)

if TYPE_CHECKING:
    import psutil

    from jaxprof.events import Event, Heartbeat

STDERR = 2
_LOOK_SECONDS = 0.05
_MODULE = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*\Z")
RECORDED_AGAIN: Mapping[str, type | tuple[type, ...]] = {
    "capture_steps": int,
    "capture_seconds": (int, float),
    "capture_after_seconds": (int, float),
    "function": str,
}
"""Options of a recording that a rerun has again, with their types."""


@frozen(kw_only=True)
class ProgramCommand:
    """The program to run, as a user would type it after `python`."""

    path: str
    """The file, or with `module` the name after `-m`."""
    arguments: tuple[str, ...] = ()
    module: bool = False
    directory: str = ""
    """The working directory; empty for the current one."""
    options: RecordingOptions = field(default_factory=RecordingOptions)

    @classmethod
    def of(cls, argv: Sequence[str], directory: str = "", options: Mapping[str, Any] | None = None) -> ProgramCommand:
        """Return the command of words as they stand after `python`, and of a program that was recorded with these
        `options`, those that it is recorded with again."""
        given = ((name, (options or {}).get(name), kind) for name, kind in RECORDED_AGAIN.items())
        again: dict[str, Any] = {name: value for name, value, kind in given if value and isinstance(value, kind)}
        module = argv[:1] == ["-m"]
        path, *arguments = argv[module:] or [""]
        return cls(
            path=path, module=module, arguments=tuple(arguments), directory=directory, options=RecordingOptions(**again)
        )

    @property
    def name(self) -> str:
        """Name of the program on screens: that of the file or the module."""
        return self.path if self.module else Path(self.path).name

    @property
    def argv(self) -> list[str]:
        """The program and its arguments, as a user would type them after `python`."""
        return (["-m"] if self.module else []) + [self.path, *self.arguments]


def working_directory(directory: str) -> Path:
    """Return where a program runs: in the `directory` where it was recorded if that is here, else in ours."""
    return (Path(directory) if directory and Path(directory).is_dir() else Path.cwd()).resolve()


def read_command(text: str, directory: str) -> ProgramCommand:
    """Return the program of a command line, as after `python`: `train.py --epochs 1`, `-m package.module`, which runs
    in the `directory` where it was recorded, if that is here. Raises UsageError."""
    folder = working_directory(directory)
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise UsageError(f"the command cannot be split: {error}", "Close every quote, as in a shell.") from None
    if not words:
        raise UsageError("no program is given", "Give train.py, or -m package.module.")
    program = ProgramCommand.of(words, str(folder))
    path = folder / with_home(program.path)
    if program.module and not _MODULE.match(program.path):
        raise UsageError(f"{program.path!r} is not a module name", "Give -m package.module.")
    if program.module:
        return program
    if path.is_dir() and not (path / "__main__.py").is_file():
        raise UsageError(f"{path} is a directory", "Give a file in it, or -m package.module.")
    if not path.exists():
        raise UsageError(
            f"there is no file {path}", "A relative path starts at the directory that the program runs in."
        )
    return replace(program, path=str(path)) if program.path.startswith("~") else program


class ProgramProcess(ChildProcess):
    """A running program. `signal` may be called from any thread; one thread owns the rest. Processes that the program
    leaves behind are not ended, because it leaves them on purpose."""

    def __init__(
        self,
        python: str,
        program: ProgramCommand,
        *,
        inherit: bool,
        keep_stderr: bool = False,
        escalates: bool = True,
        started: Started | None = None,
    ) -> None:
        """Start the program, unless it was `started` early. `inherit`: the program gets our stdin, stdout and stderr,
        and our process group; otherwise stdin is empty and the output comes as events. With `keep_stderr` an inherited
        stderr is a pipe: its text is passed on, and also comes as events. `escalates`: a program that was asked to end
        and does not is ended by us, unless it handles that signal itself; a launcher of a job does so on its own terms.
        Raises WorkerError if the program cannot be started, UsageError on Windows."""
        refuse_to_run("recording a program")
        refuse_own_code(program.name)
        self._inherit = inherit
        self._escalates = escalates
        self._escalation = Escalation()
        self._is_ending = False
        self._requested: int | None = None
        self._requested_seconds = 0.0
        self.heartbeat: Heartbeat | None = None
        """What the recorder in the program said last of how far it has come; None before that."""
        self.layout: dict[str, int] = {}
        """Where the frames of its main thread are in its memory; empty if that is unknown."""
        self.children_seconds = 0.0
        """CPU time of the program's own child processes, as far as they have ended."""
        self._left: list[psutil.Process] = []
        """Processes below the program when it was ended by us."""
        pipes = Pipes(*started.pipes) if started is not None else Pipes.open()
        enlarge(pipes.events_write)
        descriptors = (pipes.events_write, pipes.events_read, pipes.control_read)
        began = started.began_seconds if started is not None else time.monotonic()
        facts = json.dumps({"began_seconds": began, "options": asdict(program.options)})
        captured: tuple[str, ...] = ("stdout", "stderr")
        if inherit:
            captured = ("stderr",) if keep_stderr else ()
        super().__init__(
            [python, *program.argv],
            pipes,
            environment(" ".join([*map(str, descriptors), facts]), unbuffered=not inherit),
            name="the program",
            descriptors=descriptors,
            captured=captured,
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
        """The program's exit code as a shell gives it: 128 plus the number of a signal; None while it runs."""
        code = self.returncode
        return code if code is None or code >= 0 else 128 - code

    def capture(self, seconds: float) -> None:
        """Request a capture of some seconds. A program that does not read requests gets none."""
        with contextlib.suppress(OSError):
            os.write(self._control, encode_request(CaptureRequest(seconds)))

    def signal(self, number: int, received: bool = False) -> None:
        """Pass on a signal that was sent to us but meant for the program; `received`: the program has it already."""
        if number in ENDING_SIGNALS:
            now = time.monotonic()
            # SIGTERM soon after another signal is the next step of whoever sent that: launchers wait for less than 10
            # s.
            if self._requested is None or number != signal.SIGTERM or now > self._requested_seconds + 10.0:
                self._requested, self._requested_seconds = number, now
            if number not in self._handled:  # a program may handle the first ctrl+c alone, and end at the second one
                self._escalation.ask(number)
                if _is_stopped_now(self.pid):  # it would take no signal but SIGKILL
                    self._signal_all(signal.SIGCONT)
        if not received:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                self._process.send_signal(number)
        if self._escalation.asked is not None and self._escalates and not self._is_ending:
            self._is_ending = True  # not by `threading`, whose lock the interrupted thread may hold
            _thread.start_new_thread(self._end_when_due, ())

    def explain(self) -> WorkerError:
        """Return why the program has ended. SIGKILL some time after SIGTERM comes from its launcher, not from a lack of
        memory."""
        ended = super().explain()
        if self.returncode != -signal.SIGKILL or self._requested is None or ended.what == OUT_OF_MEMORY:
            return ended
        return WorkerError(
            f"killed (SIGKILL): it had not ended after {signal.Signals(self._requested).name}",
            "Its launcher killed it: jaxprof script -n and batch systems do this when another process has failed.",
        )

    def end(self, patience_seconds: float) -> None:
        """End the program together with all its children, as ctrl+c and then SIGTERM would, each with half of the
        patience; kill what is left after that."""
        for number in (signal.SIGINT, signal.SIGTERM):
            self._signal_all(number)
            self._continue()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(patience_seconds / 2)
                break
        self.kill()

    def end_request(self, raised_seconds: float | None = None) -> int | None:
        """Return the signal that asked the program to end, if that is why it ends: if it was asked not long ago, and
        had not raised the exception that ends it (`raised_seconds`) before. Else None."""
        # A later end is not caused by the signal.
        recent = time.monotonic() - self._requested_seconds < 30.0
        failed_before = raised_seconds is not None and raised_seconds < self._requested_seconds
        return self._requested if recent and not failed_before else None

    def _after_read(self) -> None:
        if self.over:
            signal_each(self._left, signal.SIGKILL)

    def _end_when_due(self) -> None:
        """End the program, which was asked to, if it does not end. In a thread of its own: whoever follows the program
        may wait for a slow disk meanwhile."""
        while self.alive and self._events >= 0:
            time.sleep(_LOOK_SECONDS)
            if (step := self._escalation.due_step()) is None:
                continue
            self._left = [] if self._own_group else descendants(self.pid)
            if step == TERMINATE:
                self._signal_all(signal.SIGTERM)
                self._continue()
            else:
                self._signal_all(signal.SIGKILL)
                signal_each(self._left, signal.SIGKILL)

    def _continue(self) -> None:
        """Let the program go on if a signal has stopped it: it would take no other one."""
        from jaxprof.devices.live.process_state import is_stopped

        if is_stopped(self.pid):
            self._signal_all(signal.SIGCONT)
        if not self._own_group:
            continue_stopped(descendants(self.pid))

    def _heartbeat(self, heartbeat: Heartbeat) -> None:
        super()._heartbeat(heartbeat)
        self.heartbeat = heartbeat
        self.layout = heartbeat.layout or self.layout
        self.children_seconds = heartbeat.children_seconds or self.children_seconds
        if self._escalation.asked in self._handled:
            self._escalation.withdraw()

    @property
    def _handled(self) -> list[int]:
        return self.heartbeat.handled if self.heartbeat is not None else []

    def _take_data(self, name: str, data: bytes) -> list[Event]:
        if name == "stderr" and self._inherit:
            # Write all of `data` to our stderr. If ours has no reader any more, close the program's: it will notice.
            try:
                write_all(STDERR, data)
            except OSError:
                stream = self._process.stderr
                if stream is not None and not stream.closed:
                    if "stderr" in self._descriptors():
                        self._selector.unregister(stream)
                    stream.close()
        return super()._take_data(name, data)


def _is_stopped_now(pid: int) -> bool:
    """Return whether a signal has stopped the process. For signal handlers, which must not import: they may interrupt
    that very import. Where there is no /proc, a stopped program goes on with the next step."""
    try:
        status = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return False
    return status.rpartition(b")")[2].split()[:1] == [b"T"]
