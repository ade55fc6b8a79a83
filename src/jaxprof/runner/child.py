"""Run a child process of ours: start it, read what it sends and prints, end it, explain its end.

The engine and a recorded program are such children. Events come on a pipe of their own, one JSON object a line, and
requests go to the child on another. Captured output becomes `LogLine` events, because native code writes to it at any
moment. The child's end is detected by waiting for the process as well as for the end of its pipes, because a process
that the child leaves behind may hold them open.

The modules that read events are imported with the first event, so that a recorded program starts earlier.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import time
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from jaxprof.base.errors import WorkerError, system_words
from jaxprof.base.files import LineBuffer
from jaxprof.base.limits import LINE, unbound
from jaxprof.base.operating_system import oom_kill_count
from jaxprof.base.text import last_words
from jaxprof.base.values import frozen

if TYPE_CHECKING:
    from jaxprof.base.early_start import Spawned
    from jaxprof.events import Event, Heartbeat, LogLine


_BY_SIGNAL = {  # by name: Windows has only a few of them
    "SIGABRT": ("XLA aborted (SIGABRT)", "The log has XLA's own message; a smaller size or another jaxlib may work."),
    "SIGSEGV": (
        "crashed with SIGSEGV",
        "Native code failed: with PYTHONFAULTHANDLER=1 its stderr has the Python line. In jaxlib, try another version.",
    ),
    "SIGBUS": ("crashed with SIGBUS", "Often a full /dev/shm or a truncated mapped file: look at the log."),
    "SIGILL": ("crashed with SIGILL", "This jaxlib uses instructions that this processor does not have."),
    "SIGFPE": ("crashed with SIGFPE", "Native code divided by zero: report it with the log."),
    "SIGTERM": ("terminated (SIGTERM)", "Another process ended it; the machine may be shutting down."),
    "SIGKILL": (
        "killed (SIGKILL)",
        "Another process killed it, or memory ran out: `dmesg` shows whether the kernel did.",
    ),
}
OUT_OF_MEMORY = "killed by the kernel: out of memory"


def explain(returncode: int | None, oom_kills: int = 0, words: str = "") -> WorkerError:
    """Explain the end of a child. `returncode`: as from subprocess; `oom_kills`: number of processes that the kernel
    killed for memory in this cgroup meanwhile; `words`: what the child last wrote to stderr."""
    last = f" It last wrote: {words}" if words else ""
    if returncode is None:
        return WorkerError("the worker stopped responding", "The worker was ended." + last)
    if returncode < 0:
        try:
            number = signal.Signals(-returncode)
        except ValueError:
            return WorkerError(f"ended by signal {-returncode}", last.strip())
        if number.name == "SIGKILL" and oom_kills > 0:
            return WorkerError(OUT_OF_MEMORY, "Choose a smaller size, or free memory." + last)
        what, hint = _BY_SIGNAL.get(number.name, (f"ended by {number.name}", ""))
        return WorkerError(what, (hint + last).strip())
    return WorkerError(f"the worker ended with exit code {returncode} in the middle of the run", last.strip())


LOG_LINE_LIMIT = 8192
"""Longest line that is kept, in characters; a longer line is cut here."""
_BYTES_SHOWN = 200
"""Number of bytes shown in the log of a line that is not an event."""


@frozen
class Pipes:
    """The two pipes between us and a child, each with its reading and its writing end."""

    events_read: int
    events_write: int
    control_read: int
    control_write: int

    @classmethod
    def open(cls) -> Pipes:
        return cls(*os.pipe(), *os.pipe())


class ChildProcess:
    """A running child. One thread owns it; a subclass names the methods that may be called from others."""

    def __init__(
        self,
        command: Sequence[str],
        pipes: Pipes,
        environment: Mapping[str, str],
        *,
        name: str,
        descriptors: Collection[int],
        captured: Collection[str] = ("stdout", "stderr"),
        own_group: bool = True,
        directory: str = "",
        process: Spawned | None = None,
    ) -> None:
        """Start `command`. `name` is the subject of error messages. `descriptors`: the ends of `pipes` that the child
        inherits. `captured`: the outputs that come as events; the child shares the others with us. `own_group`: whether
        the child leads a session and a process group of its own, with an empty stdin. `process`: the child, if it runs
        already. Raises WorkerError if it cannot be started."""
        self.began_seconds = time.monotonic()
        self.last_sign_seconds = self.began_seconds
        """Monotonic time when the child last sent an event or a heartbeat."""
        self.heartbeat_seen = False
        self.over = False
        """Whether the latest `read` found the child ended, and so returned the last events."""
        self._own_group = own_group
        self._last_words = ""
        self._oom_kills = oom_kill_count()
        try:
            self._process: Spawned | subprocess.Popen[bytes] = process or subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL if own_group else None,
                stdout=subprocess.PIPE if "stdout" in captured else None,
                stderr=subprocess.PIPE if "stderr" in captured else None,
                cwd=directory or None,
                env=environment,
                pass_fds=tuple(descriptors),
                start_new_session=own_group,
            )
            unbound(self._process.pid)
        except OSError as error:
            os.close(pipes.events_read)
            os.close(pipes.control_write)
            raise WorkerError(
                f"{name} could not be started with {command[0]}: {system_words(error)}",
                "--python PATH names the interpreter.",
            ) from error
        finally:
            os.close(pipes.events_write)
            os.close(pipes.control_read)
        self._control = pipes.control_write
        self._end = -1
        if hasattr(os, "pidfd_open"):
            with contextlib.suppress(OSError):  # a kernel or a sandbox without it
                self._end = os.pidfd_open(self._process.pid)
        self._events = pipes.events_read
        self._lines = {
            "events": LineBuffer(LINE.most),
            "stdout": LineBuffer(LOG_LINE_LIMIT, cut=True),
            "stderr": LineBuffer(LOG_LINE_LIMIT, cut=True),
        }
        self._selector = selectors.DefaultSelector()
        self._watch("events", self._events)
        for output, stream in (("stdout", self._process.stdout), ("stderr", self._process.stderr)):
            if stream is not None:
                self._watch(output, stream.fileno())
        if self._end >= 0:
            self._selector.register(self._end, selectors.EVENT_READ, "end")

    @property
    def pid(self) -> int:
        """The child's process id; also the id of its process group, if it leads one."""
        return self._process.pid

    @property
    def returncode(self) -> int | None:
        """Exit code as in subprocess: minus the signal's number after a signal; None while the child runs."""
        return self._process.poll()

    @property
    def alive(self) -> bool:
        return self.returncode is None

    def read(self, timeout_seconds: float) -> list[Event]:
        """Return the events that come within `timeout_seconds`, or at once those that are there."""
        events: list[Event] = []
        for key, _ in self._selector.select(timeout_seconds if self.alive else 0):
            events += self._take(key.data, key.fd) or []
        self.over = not self.alive  # checked after the read, which may have found nothing but the end
        # What the ended child wrote is in the pipes, so no read waits.
        for name, descriptor in self._descriptors().items() if self.over else ():
            if name == "end":
                continue
            # A process that the child left behind may go on writing for ever.
            for _ in range(256):
                came = self._take(name, descriptor)
                events += came or []
                if came is None or name not in self._descriptors():
                    break
        self._after_read()
        return events

    def kill(self) -> None:
        """Kill the child at once, together with all its children if it leads a group."""
        self._signal_all(signal.SIGKILL)

    def close(self) -> None:
        """Kill the child if it still runs, and free everything. May be called twice."""
        if self._events < 0:
            return
        if self.alive:
            self.kill()
            self._process.wait()
        self._selector.close()
        for descriptor in (self._events, self._control, self._end):
            if descriptor >= 0:
                os.close(descriptor)
        self._events = self._control = self._end = -1
        for stream in (self._process.stdout, self._process.stderr):
            if stream is not None:
                stream.close()

    def explain(self) -> WorkerError:
        return explain(self.returncode, oom_kill_count() - self._oom_kills, self._last_words)

    def _after_read(self) -> None:
        """Do what is due after each read."""

    def _take_data(self, name: str, data: bytes) -> list[Event]:
        buffer = self._lines[name]
        events = self._parse(name, [line for line in buffer.feed(data) if line])
        for _ in range(buffer.take_left_out()):
            events.append(self._log_line("events", f"an event of {LINE.words} was left out. {LINE.hint}".encode()))
        return events

    def _events_in(self, line: bytes) -> list[Event]:
        """Return the events on a line of the event pipe. A heartbeat is noted and not returned."""
        from jaxprof.events import Heartbeat, LogLine
        from jaxprof.session.lines import UnknownEvent, decode_line

        try:
            event = decode_line(line)
        except UnknownEvent:
            event = None  # of another version
        except ValueError as error:
            text = f"{error}: {line[:_BYTES_SHOWN]!r}"
            event = LogLine(stream="events", text=text, monotonic_seconds=time.monotonic())
        if isinstance(event, Heartbeat):
            self._heartbeat(event)
            return []
        self.last_sign_seconds = time.monotonic()
        return [event] if event is not None else []

    def _heartbeat(self, heartbeat: Heartbeat) -> None:
        self.last_sign_seconds = time.monotonic()
        self.heartbeat_seen = True

    def _signal_all(self, number: int) -> None:
        """Send a signal to the child's group, or to the child alone if the group is ours."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if self._own_group:
                os.killpg(self.pid, number)
            else:
                self._process.send_signal(number)

    def _watch(self, name: str, descriptor: int) -> None:
        os.set_blocking(descriptor, False)
        self._selector.register(descriptor, selectors.EVENT_READ, name)

    def _descriptors(self) -> dict[str, int]:
        return {key.data: key.fd for key in self._selector.get_map().values()}

    def _take(self, name: str, descriptor: int) -> list[Event] | None:
        """Return the events in what a descriptor holds; None if there is nothing to read."""
        if name == "end":
            self._selector.unregister(descriptor)
            self._process.wait()
            return []
        try:
            data = os.read(descriptor, 1 << 20)
        except BlockingIOError:
            return None
        except OSError:
            data = b""
        if data:
            return self._take_data(name, data)
        self._selector.unregister(descriptor)
        # Half an event cannot be read.
        rest = self._lines[name].end()
        return self._parse(name, [rest]) if rest and name != "events" else []

    def _parse(self, name: str, lines: Sequence[bytes]) -> list[Event]:
        if name == "events":
            return [event for line in lines for event in self._events_in(line)]
        return [self._log_line(name, line) for line in lines]

    def _log_line(self, stream: str, line: bytes) -> LogLine:
        from jaxprof.events import LogLine

        # the last state of a progress bar that overwrites itself
        shown = line.rstrip(b"\r")
        if b"\r" in shown:
            shown = shown.rsplit(b"\r", 1)[-1]
        text = shown.decode("utf-8", "replace")[:LOG_LINE_LIMIT]
        if stream == "stderr":
            self._last_words = last_words([text]) or self._last_words
        return LogLine(stream=stream, text=text, monotonic_seconds=time.monotonic())
