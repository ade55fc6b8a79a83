"""One child process with the engine in it: start, ask, read, cancel, end.

The child leads its own session and process group. Events come on a pipe of their own; its stdout and stderr are
captured and become `LogLine` events, because native code writes to them at any moment and must not write on the
screen. The end of the child is seen by waiting for the process as well as for the end of the pipe: a grandchild may
hold the pipe open.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from jaxprof.engine.request import Answer, CancelRequest, Request, encode_request
from jaxprof.errors import WorkerError
from jaxprof.events import Event, LogLine
from jaxprof.store.codec import UnknownEvent, decode_line
from jaxprof.worker.exits import Exit, explain, oom_kill_count
from jaxprof.worker.interpreter import Interpreter
from jaxprof.worker.lines import LOG_LINE_LIMIT, Lines, output_text

ENGINE = Path(__file__).resolve().parent.parent / "engine" / "__main__.py"
ASK_SECONDS = 1.0
"""How long a cancelled run may take to stop by itself; a compile does not listen."""
TERMINATE_SECONDS = 2.0
"""How long after that SIGTERM may take."""
DRAIN_SECONDS = 0.3
"""How long the pipes are read on after the process has ended: a grandchild may hold them open for ever."""
_READ_BYTES = 1 << 20
_ANSWER = msgspec.json.Decoder(Answer)


class EngineProcess:
    """A running engine. Not thread-safe, but for `cancel` and `kill`."""

    def __init__(
        self, interpreter: Interpreter, environment: Mapping[str, str] | None = None, *, import_jax: bool = False
    ) -> None:
        """Starts the process; `environment` is laid over ours. Raises WorkerError when it cannot be started."""
        self.interpreter = interpreter
        self.environment = dict(environment or {})
        self.started_seconds = time.monotonic()
        self.last_sign_seconds = self.started_seconds
        """When the child was last heard of: an event, or a heartbeat."""
        self._cancelled_seconds: float | None = None
        self._steps_taken = 0
        self._oom_kills = oom_kill_count()
        self._last_words = ""
        events_read, events_write = os.pipe()
        control_read, control_write = os.pipe()
        command = [interpreter.path, "-u", str(ENGINE)]
        command += ["--events-fd", str(events_write), "--control-fd", str(control_read)]
        if import_jax:
            command.append("--import-jax")
        try:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env={**os.environ, **self.environment, "PYTHONUNBUFFERED": "1"},
                pass_fds=(events_write, control_read),
                start_new_session=True,
            )
        except OSError as error:
            os.close(events_read)
            os.close(control_write)
            raise WorkerError(
                f"the worker could not be started with {interpreter.path}: {error.strerror or error}",
                "--python PATH names the interpreter.",
            ) from error
        finally:
            os.close(events_write)
            os.close(control_read)
        self._control = control_write
        self._lines = {"events": Lines(), "stdout": Lines(LOG_LINE_LIMIT), "stderr": Lines(LOG_LINE_LIMIT)}
        self._selector = selectors.DefaultSelector()
        self._events_fd = events_read
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        for name, fd in (
            ("events", events_read),
            ("stdout", self._process.stdout.fileno()),
            ("stderr", self._process.stderr.fileno()),
        ):
            os.set_blocking(fd, False)
            self._selector.register(fd, selectors.EVENT_READ, name)

    @property
    def pid(self) -> int:
        """Of the child; also the id of its process group."""
        return self._process.pid

    @property
    def alive(self) -> bool:
        """Whether the process is still there."""
        return self._process.poll() is None

    def send(self, request: Request) -> None:
        """Writes a request. Raises WorkerError when the child has gone."""
        try:
            os.write(self._control, encode_request(request))
        except OSError as error:
            raise WorkerError("the worker is gone", self.explain().what) from error

    def read(self, timeout_seconds: float) -> list[Event | Answer]:
        """What came within `timeout_seconds`, or at once if something is there. Empty and not `alive`: it is over."""
        found: list[Event | Answer] = []
        ended = not self.alive
        for key, _ in self._selector.select(0 if ended else timeout_seconds):
            found += self._take(key.data, key.fd)
        self._escalate()
        if ended and not found:
            found += self._drain()
        return found

    def cancel(self) -> None:
        """Asks the run to stop; `read` then terminates, and at last kills, a child that does not. Again: at once."""
        if self._cancelled_seconds is None:
            self._cancelled_seconds = time.monotonic()
            with contextlib.suppress(OSError):
                os.write(self._control, encode_request(CancelRequest()))
        else:
            self._cancelled_seconds -= ASK_SECONDS

    @property
    def cancelled(self) -> bool:
        """Whether `cancel` was called."""
        return self._cancelled_seconds is not None

    def kill(self) -> None:
        """Ends the whole process group at once."""
        self._signal(signal.SIGKILL)

    def close(self) -> None:
        """Ends the child if it is there, and frees everything. May be called twice."""
        if self._control >= 0:
            os.close(self._control)
            self._control = -1
        if self.alive:
            try:
                self._process.wait(0.2)
            except subprocess.TimeoutExpired:
                self._signal(signal.SIGTERM)
                try:
                    self._process.wait(TERMINATE_SECONDS)
                except subprocess.TimeoutExpired:
                    self.kill()
                    self._process.wait()
        self._signal(signal.SIGKILL)  # what the child may have left behind in its group
        if self._events_fd >= 0:
            self._selector.close()
            os.close(self._events_fd)
            self._events_fd = -1
        for stream in (self._process.stdout, self._process.stderr):
            if stream is not None:
                stream.close()

    def explain(self) -> Exit:
        """Why the process is not there any more."""
        return explain(self._process.poll(), oom_kill_count() - self._oom_kills, self._last_words)

    def _signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, number)

    def _escalate(self) -> None:
        if self._cancelled_seconds is None or not self.alive:
            return
        waited = time.monotonic() - self._cancelled_seconds
        if waited > ASK_SECONDS + TERMINATE_SECONDS and self._steps_taken == 1:
            self._steps_taken = 2
            self.kill()
        elif waited > ASK_SECONDS and self._steps_taken == 0:
            self._steps_taken = 1
            self._signal(signal.SIGTERM)

    def _take(self, name: str, fd: int) -> list[Event | Answer]:
        try:
            data = os.read(fd, _READ_BYTES)
        except BlockingIOError:
            return []
        except OSError:
            data = b""
        if not data:
            self._selector.unregister(fd)
            return self._parse(name, self._lines[name].end()) if name != "events" else []
        return self._parse(name, self._lines[name].feed(data))

    def _parse(self, name: str, lines: list[bytes]) -> list[Event | Answer]:
        if name == "events":
            return [item for line in lines for item in self._event(line)]
        return [self._log_line(name, line) for line in lines]

    def _log_line(self, stream: str, line: bytes) -> LogLine:
        text = output_text(line)
        if stream == "stderr" and text.strip():
            self._last_words = text.strip()[:200]
        return LogLine(stream=stream, text=text, monotonic_seconds=time.monotonic())

    def _event(self, line: bytes) -> list[Event | Answer]:
        self.last_sign_seconds = time.monotonic()
        if line.startswith((b'{"type": "answer"', b'{"type":"answer"')):
            return [_ANSWER.decode(line)]
        try:
            return [decode_line(line)]
        except UnknownEvent:
            return []
        except ValueError as error:
            return [LogLine(stream="events", text=f"{error}: {line[:200]!r}", monotonic_seconds=time.monotonic())]

    def _drain(self) -> list[Event | Answer]:
        """What the pipes still hold after the end; bounded, because a grandchild may keep them open."""
        found: list[Event | Answer] = []
        deadline = time.monotonic() + DRAIN_SECONDS
        while self._selector.get_map() and (left := deadline - time.monotonic()) > 0:
            for key, _ in self._selector.select(left):
                found += self._take(key.data, key.fd)
        return found


def ask(interpreter: Interpreter, request: Request, environment: Mapping[str, str], timeout_seconds: float) -> Any:
    """Sends one request for data to an engine of its own and returns the answer's data.

    Raises WorkerError with the engine's own words when it fails, ends, or does not answer in time.
    """
    process = EngineProcess(interpreter, environment)
    try:
        process.send(request)
        deadline = time.monotonic() + timeout_seconds
        while (left := deadline - time.monotonic()) > 0:
            for item in (found := process.read(min(left, 0.2))):
                if isinstance(item, Answer):
                    if item.error:
                        raise WorkerError(item.error, item.advice)
                    return item.data
            if not found and not process.alive:
                ended = process.explain()
                raise WorkerError(ended.what, ended.advice)
        raise WorkerError(f"no answer from {interpreter.path} within {timeout_seconds:g} s", "Try again.")
    finally:
        process.close()
