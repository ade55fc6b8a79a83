"""Reads a profile in a thread of this process, where the engine's process is not available: on Windows.

It is used like `EngineProcess`, but lacks what a separate process is for: a profile that does not fit into memory takes
jaxprof down with it, and native code that reads a profile cannot be interrupted.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from queue import Empty, SimpleQueue

from jaxprof.engine.protocol.request import OpenTraceRequest, Request
from jaxprof.errors import JaxprofError
from jaxprof.events import Event, RunFinished
from jaxprof.runner.exits import Exit
from jaxprof.session.texts import in_pieces


class _CancelledError(Exception):
    pass


class ProfileReader:
    """Reads one profile. `cancel` and `kill` may be called from any thread, everything else from one."""

    def __init__(self) -> None:
        self.environment: Mapping[str, str] = {}
        self.pid = os.getpid()
        self.cancelled = False
        """Whether `cancel` was called."""
        self.over = False
        """Whether the latest `read` returned the last events."""
        self._events: SimpleQueue[Event] = SimpleQueue()
        self._thread: threading.Thread | None = None

    @property
    def alive(self) -> bool:
        """Whether something is still to come."""
        return self._thread is None or self._thread.is_alive()

    @property
    def last_sign_seconds(self) -> float:
        """A thread of this process always gives a sign of life."""
        return time.monotonic()

    def send(self, request: Request) -> None:
        """Starts reading. Raises TypeError for any request other than one for a profile."""
        if not isinstance(request, OpenTraceRequest):
            raise TypeError(f"{type(request).__name__} needs an engine")
        self._thread = threading.Thread(target=self._read, args=(request,), name="jaxprof-profile", daemon=True)
        self._thread.start()

    def read(self, timeout_seconds: float) -> list[Event]:
        """What came within `timeout_seconds`, or at once if something is there."""
        self.over = not self.alive
        events: list[Event] = []
        try:
            events.append(self._events.get(timeout=0 if self.over else timeout_seconds))
            while True:
                events.append(self._events.get_nowait())
        except Empty:
            return events

    def cancel(self) -> None:
        """Asks it to stop at the next piece of the file."""
        self.cancelled = True

    def kill(self) -> None:
        """Like `cancel`: a thread cannot be ended from outside."""
        self.cancel()

    def close(self) -> None:
        """Stops a reading that is still under way; one that has ended leaves nothing to free."""
        self.cancel()

    def explain(self) -> Exit:
        """Why it ended without a final event."""
        return Exit("reading the profile ended early", "Report it, with the profile if you can.")

    def _read(self, request: OpenTraceRequest) -> None:
        from jaxprof.trace.imported import import_profile

        try:
            import_profile(
                Path(request.path),
                request.run,
                lambda event: self._emit(event, request.run),
                self._check,
                profile_run=request.profile_run,
                hosts=request.hosts,
                views=request.views,
            )
            ended = RunFinished(status="ok")
        except _CancelledError:
            ended = RunFinished(status="cancelled", error="cancelled")
        except JaxprofError as error:
            ended = RunFinished(status="failed", error=error.what, advice=error.hint)
        except Exception as error:  # noqa: BLE001 - a damaged file can break the reader anywhere: that is the result
            ended = RunFinished(status="failed", error=f"{type(error).__name__}: {error}")
        self._emit(ended, request.run)

    def _emit(self, event: Event, run: str) -> None:
        for part in in_pieces(replace(event, run=event.run or run, monotonic_seconds=time.monotonic())):
            self._events.put(part)

    def _check(self) -> None:
        if self.cancelled:
            raise _CancelledError
