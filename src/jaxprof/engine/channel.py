"""The engine's end of the two pipes: events out, requests in.

Everything that the engine says goes through one `EventPipe`; every event is stamped there, and written whole. Nothing
here knows what is measured.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from queue import SimpleQueue

from jaxprof.engine.request import Answer, CancelRequest, Request, decode_request, encode_answer
from jaxprof.events import Event, encode

HEARTBEAT_SECONDS = 1.0


class EventPipe:
    """Writes events as lines. Lines of several threads never mix; a forked child writes nothing.

    A reader that has gone makes it silent: the control pipe, closed by the same hand, ends the process.
    """

    def __init__(self, descriptor: int) -> None:
        os.set_inheritable(descriptor, False)
        self._descriptor = descriptor
        self._owner = os.getpid()
        self._lock = threading.Lock()
        self._broken = False

    def send(self, event: Event, run: str = "") -> None:
        """Stamps `event` with the time, and with `run` where it names none, and writes it."""
        if run and not event.run:
            event = replace(event, run=run)
        self._write(encode(replace(event, monotonic_seconds=time.monotonic())))

    def answer(self, answer: Answer) -> None:
        """Writes the reply to a request for data."""
        self._write(encode_answer(answer))

    def _write(self, line: bytes) -> None:
        if os.getpid() != self._owner:  # asked before the lock, which a fork may have copied locked
            return
        rest = memoryview(line + b"\n")
        with self._lock:
            while rest and not self._broken:
                try:
                    rest = rest[os.write(self._descriptor, rest) :]
                except OSError:
                    self._broken = True


class ControlReader(threading.Thread):
    """Reads requests until the client closes the pipe, which is the order to end."""

    def __init__(self, descriptor: int, on_cancel: Callable[[], None], on_end: Callable[[], None]) -> None:
        super().__init__(name="jaxprof-control", daemon=True)
        os.set_inheritable(descriptor, False)
        self._stream = os.fdopen(descriptor, "rb")
        self._on_cancel = on_cancel
        self._on_end = on_end
        self.requests: SimpleQueue[Request | ValueError | None] = SimpleQueue()
        """What is to be done, in order; a line that is no request as the error it gave; None at the end."""

    def run(self) -> None:
        """Until the end of the pipe."""
        for line in self._stream:
            try:
                request = decode_request(line)
            except ValueError as error:
                self.requests.put(error)
                continue
            if isinstance(request, CancelRequest):
                self._on_cancel()
            else:
                self.requests.put(request)
        self._on_end()
        self.requests.put(None)
