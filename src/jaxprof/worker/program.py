"""One program of the user's as a child process: started unchanged, followed from outside, told what it is asked for.

The child is `PYTHON FILE ARGS`, nothing else: what is ours comes in through Python's own start-up (`program.inject`).
It either shares our terminal and process group, so that ctrl+c, job control and stdin are what they would be without
us, or it leads a group of its own and its output is captured. Its end is seen by waiting for the process: whoever it
leaves behind may hold its pipes open.

What reads its events is imported when the first ones have come, so that the program starts before.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import selectors
import signal
import subprocess
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from jaxprof.engine.recording import RecordingOptions
from jaxprof.errors import WorkerError
from jaxprof.worker.exits import Exit, explain, oom_kill_count
from jaxprof.worker.lines import LOG_LINE_LIMIT, Lines, output_text, write_all

if TYPE_CHECKING:
    from jaxprof.events import Event
    from jaxprof.worker.guard import GuardFilter

INJECT = Path(__file__).resolve().parent.parent / "program" / "inject"
VARIABLE = "JAXPROF_PROGRAM"
PIPE_BYTES = 1 << 20
"""Wanted size of the event pipe: what the program may say while we are busy or stopped."""
DRAIN_READS = 256
"""How often a pipe is read after the process has ended: a grandchild may go on writing for ever."""
STDERR = 2
_READ_BYTES = 1 << 18
_LOOKS = 10
_LOOK_SECONDS = 0.002


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """What is to be run, as somebody would type it after `python`."""

    path: str
    """The file, or with `module` the name after `-m`."""
    arguments: tuple[str, ...] = ()
    module: bool = False
    directory: str = ""
    """Where it is run; empty for here."""
    options: RecordingOptions = field(default_factory=RecordingOptions)
    keep_trace: bool = False
    """Whether the folders with the raw profiles of its capture windows stay."""

    @property
    def name(self) -> str:
        """What it is called on screens: the file's name, or the module's."""
        return self.path if self.module else Path(self.path).name

    @property
    def argv(self) -> list[str]:
        """As it would be typed after `python`."""
        return (["-m"] if self.module else []) + [self.path, *self.arguments]


class ProgramProcess:
    """A program that runs. `signal` may be called from anywhere; the rest from one thread."""

    def __init__(self, python: str, program: Program, *, inherit: bool) -> None:
        """Starts it. `inherit`: it has our stdin, stdout and stderr, and our process group; else stdin is empty and
        the output comes as events. With the option `transfers` stderr is a pipe in any case, and an inherited one is
        passed on. Raises WorkerError when it cannot be started."""
        self.recorded = False
        """Whether it has given a sign: the recording inside has begun."""
        self._inherit = inherit
        self._last_words = ""
        self._oom_kills = oom_kill_count()
        self.began_seconds = time.monotonic()
        pipes = [os.pipe(), os.pipe()]
        (events_read, events_write), (control_read, control_write) = pipes
        _enlarge(events_write)
        inner = (events_write, events_read, control_read)
        facts = json.dumps({"began_seconds": self.began_seconds, "options": asdict(program.options)})
        stream = None if inherit else subprocess.PIPE
        self._guard = _guard(program.options)
        try:
            self._process = subprocess.Popen(
                [python, *program.argv],
                stdin=None if inherit else subprocess.DEVNULL,
                stdout=stream,
                stderr=subprocess.PIPE if self._guard is not None else stream,
                cwd=program.directory or None,
                env=_environment(" ".join([*map(str, inner), facts]), unbuffered=not inherit),
                pass_fds=inner,
                start_new_session=not inherit,
            )
        except OSError as error:
            os.close(events_read)
            os.close(control_write)
            raise WorkerError(
                f"the program could not be started with {python}: {error.strerror or error}",
                "--python PATH names the interpreter.",
            ) from error
        finally:
            os.close(events_write)
            os.close(control_read)
        self._events = events_read
        self._control = control_write
        os.set_blocking(control_write, False)
        self._lines = {"events": Lines(), "stdout": Lines(LOG_LINE_LIMIT), "stderr": Lines(LOG_LINE_LIMIT)}
        if self._process.stderr is not None:
            _enlarge(self._process.stderr.fileno())
        self._selector = selectors.DefaultSelector()
        self._watch("events", events_read)
        for name, stream_of in (("stdout", self._process.stdout), ("stderr", self._process.stderr)):
            if stream_of is not None:
                self._watch(name, stream_of.fileno())
        self._end_fd = _end_descriptor(self._process.pid)
        if self._end_fd >= 0:
            self._selector.register(self._end_fd, selectors.EVENT_READ, "end")

    @property
    def pid(self) -> int:
        """Of the program."""
        return self._process.pid

    @property
    def alive(self) -> bool:
        """Whether it is still there."""
        return self._process.poll() is None

    @property
    def returncode(self) -> int | None:
        """As subprocess has it: minus the signal's number after a signal; None while it runs."""
        return self._process.poll()

    @property
    def exit_code(self) -> int | None:
        """As a shell has it: 128 and the signal's number after a signal; None while it runs."""
        code = self.returncode
        return code if code is None or code >= 0 else 128 - code

    @property
    def silenced(self) -> bool:
        """Whether the event pipe was closed: nothing of what goes on inside can be seen any more."""
        return "events" not in self._watched()

    def replaced(self) -> bool | None:
        """Whether the process is another program by now (exec): its environment is not the one that we gave it. None
        where that cannot be seen: it is ending, or the system does not tell."""
        for _ in range(_LOOKS):
            try:
                started_with = Path(f"/proc/{self.pid}/environ").read_bytes()
            except OSError:
                return None
            if started_with:
                return f"{VARIABLE}=".encode() not in started_with
            if not self.alive:
                return None
            time.sleep(_LOOK_SECONDS)  # in the middle of an exec there is no environment for a moment
        return None

    def read(self, timeout_seconds: float) -> list[Event]:
        """What came within `timeout_seconds`, or at once if something is there. Empty and not `alive`: it is over."""
        found: list[Event] = []
        for key, _ in self._selector.select(self._wait_seconds(timeout_seconds) if self.alive else 0):
            found += self._take(key.data, key.fd) or []
        ended = not self.alive  # asked after what was read, which may have been nothing but its end
        if ended:
            found += self._drain()
        return found + self._counted(last=ended)

    def capture(self, seconds: float | None = None, steps: int | None = None) -> None:
        """Asks for a window in which JAX's profiler is on. A program that does not listen is not told."""
        self._ask({"command": "capture", "seconds": seconds, "steps": steps})

    def end_capture(self) -> None:
        """Ends the window that is on, or waited for."""
        self._ask({"command": "end_capture"})

    def signal(self, number: int) -> None:
        """Passes a signal on: to the program, as whoever sent it to us meant it."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            self._process.send_signal(number)

    def interrupt(self) -> None:
        """What ctrl+c does."""
        self.signal(signal.SIGINT)

    def terminate(self) -> None:
        """Asks it to end."""
        self.signal(signal.SIGTERM)

    def kill(self) -> None:
        """Ends it at once; with all its children where it has a group of its own."""
        self._signal_all(signal.SIGKILL)

    def end(self, patience_seconds: float) -> None:
        """Ends it with all its children, as ctrl+c and then SIGTERM would, each with half of the patience; what is
        left after that is killed."""
        for number in (signal.SIGINT, signal.SIGTERM):
            self._signal_all(number)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(patience_seconds / 2)
                break
        self._signal_all(signal.SIGKILL)

    def _signal_all(self, number: int) -> None:
        if self._inherit:
            self.signal(number)
            return
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, number)

    def close(self) -> None:
        """Ends it if it is there, and frees everything. What it left behind on purpose stays. May be called twice."""
        if self._events < 0:
            return
        if self.alive:
            self.kill()
            self._process.wait()
        self._selector.close()
        for descriptor in (self._events, self._control, self._end_fd):
            if descriptor >= 0:
                os.close(descriptor)
        self._events = -1
        for stream in (self._process.stdout, self._process.stderr):
            if stream is not None:
                stream.close()

    def explain(self) -> Exit:
        """Why it is not there any more, where a signal ended it."""
        return explain(self.returncode, oom_kill_count() - self._oom_kills, self._last_words)

    def _ask(self, request: dict[str, object]) -> None:
        with contextlib.suppress(OSError):
            os.write(self._control, json.dumps(request).encode() + b"\n")

    def _watch(self, name: str, descriptor: int) -> None:
        os.set_blocking(descriptor, False)
        self._selector.register(descriptor, selectors.EVENT_READ, name)

    def _watched(self) -> dict[str, int]:
        return {key.data: key.fd for key in self._selector.get_map().values()}

    def _take(self, name: str, descriptor: int) -> list[Event] | None:
        """What a descriptor has to tell; None where there is nothing to be read."""
        if name == "end":
            self._selector.unregister(descriptor)
            self._process.wait()
            return []
        try:
            data = os.read(descriptor, _READ_BYTES)
        except BlockingIOError:
            return None
        except OSError:
            data = b""
        over = not data
        if over:
            self._selector.unregister(descriptor)
        if self._guard is not None and name == "stderr":
            data = self._guard.release() if over else self._guard.feed(data, time.monotonic())
            if self._inherit:
                self._pass_on(data)
                return []
        lines = self._lines[name].feed(data)
        if over and name != "events":
            lines += self._lines[name].end()
        return self._parse(name, lines)

    def _drain(self) -> list[Event]:
        """What the pipes still hold. The program has ended, so that all it wrote is there: nothing is waited for."""
        found: list[Event] = []
        for name, descriptor in self._watched().items():
            if name == "end":
                continue
            for _ in range(DRAIN_READS):
                came = self._take(name, descriptor)
                if came is None or name not in self._watched():
                    found += came or []
                    break
                found += came
        return found

    def _wait_seconds(self, at_most_seconds: float) -> float:
        held = self._guard.wait_seconds(time.monotonic()) if self._guard is not None else None
        return at_most_seconds if held is None else min(held, at_most_seconds)

    def _counted(self, *, last: bool) -> list[Event]:
        """Copies that the guard has told; and what was held back for it goes on, once it has waited long enough."""
        if self._guard is None:
            return []
        found: list[Event] = []
        now = time.monotonic()
        if last or self._guard.wait_seconds(now) == 0:
            held = self._guard.release()
            if self._inherit:
                self._pass_on(held)
            else:
                found += self._parse("stderr", self._lines["stderr"].feed(held))
        counted = self._guard.collect(now, last=last)
        return found if counted is None else [*found, counted]

    def _pass_on(self, data: bytes) -> None:
        """To our stderr, all of it. Where nobody reads that any more the program's is closed: it learns so itself."""
        try:
            write_all(STDERR, data)
        except OSError:
            stream = self._process.stderr
            if stream is not None and not stream.closed:
                if "stderr" in self._watched():
                    self._selector.unregister(stream)
                stream.close()

    def _parse(self, name: str, lines: list[bytes]) -> list[Event]:
        if name == "events":
            return [event for line in lines for event in self._event(line)]
        from jaxprof.events import LogLine

        texts = [output_text(line) for line in lines]
        if name == "stderr" and (words := [text.strip() for text in texts if text.strip()]):
            self._last_words = words[-1][:200]
        now = time.monotonic()
        return [LogLine(stream=name, text=text, monotonic_seconds=now) for text in texts]

    def _event(self, line: bytes) -> list[Event]:
        from jaxprof.events import Heartbeat, LogLine
        from jaxprof.store.codec import UnknownEvent, decode_line

        try:
            event = decode_line(line)
        except UnknownEvent:
            return []
        except ValueError as error:
            return [LogLine(stream="events", text=f"{error}: {line[:200]!r}", monotonic_seconds=time.monotonic())]
        if isinstance(event, Heartbeat):
            self.recorded = True
            return []
        return [event]


def _guard(options: RecordingOptions) -> GuardFilter | None:
    if not options.transfers:
        return None
    from jaxprof.worker.guard import GuardFilter

    return GuardFilter()


def _environment(plan: str, *, unbuffered: bool) -> dict[str, str]:
    """Ours, with what `program.inject.sitecustomize` needs; it puts everything back before the program begins."""
    found = dict(os.environ)
    former = found.get("PYTHONPATH")
    found["PYTHONPATH"] = f"{INJECT}{os.pathsep}{former}" if former else str(INJECT)
    if former is not None:
        found["JAXPROF_FORMER_PYTHONPATH"] = former
    if "PYTHONUNBUFFERED" in found:
        found["JAXPROF_FORMER_PYTHONUNBUFFERED"] = found["PYTHONUNBUFFERED"]
    elif unbuffered:
        found["PYTHONUNBUFFERED"] = "1"
    found[VARIABLE] = plan
    return found


def _enlarge(pipe: int) -> None:
    command = getattr(fcntl, "F_SETPIPE_SZ", None)
    if command is not None:
        with contextlib.suppress(OSError):  # more than this user may have: the usual size will do
            fcntl.fcntl(pipe, command, PIPE_BYTES)


def _end_descriptor(pid: int) -> int:
    """A descriptor that is readable once the process has ended; -1 where the system has none."""
    if not hasattr(os, "pidfd_open"):
        return -1
    try:
        return os.pidfd_open(pid)
    except OSError:  # a kernel or a sandbox without it
        return -1
