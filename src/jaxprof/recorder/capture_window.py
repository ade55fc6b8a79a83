"""The capture window: switches JAX's profiler on in the running program for some seconds or some steps.

It uses only JAX's public profiler, with the Python tracer off, and writes into a new folder that the reader of the
profile removes. It never starts a backend, because the program may still be about to choose its platform or to join its
cluster: a window requested before the first compile waits for it. A process has one JAX profiler, and the program's own
use of it comes first: no window begins while the program uses it, and a window ends when the program starts it through
the names of `jax.profiler`.
"""

from __future__ import annotations

import math
import os
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from jaxprof.events import WINDOW_FOLDER, CaptureWindow, Compiled, Event, StageRunning, StepsCounted
from jaxprof.recorder.guest import ReplacedName

SETTLED_SECONDS = 0.5
"""Time without a compilation after which the program counts as in its loop: steps may be slow, or not be counted."""
SETTLED_STEPS = 2
"""Steps that end after the last compilation, from which it does as well, however short they are."""
UNCOUNTED_SECONDS = 2.0
"""Length of a window by steps if no steps can be counted, after the last compilation."""
PENDING_TICK_SECONDS = 0.03
"""Interval between two ticks while a window waits for steps: of twenty steps of 10 ms some are left when it begins."""
BEGUN_TICK_SECONDS = 0.1
"""The same while a window is on, which ends by a tick: it holds some short steps more than were asked for."""
LONGEST_SECONDS = 60.0
"""Limit for a window by steps or without an end of its own: a profile stays in memory until it is written."""


class CaptureWindows:
    """Takes one window at a time. Every method may be called from any thread, and none raises."""

    def __init__(
        self,
        emit: Callable[[Event], None],
        *,
        clock: Callable[[], float] = time.monotonic,
        compiles_now: Callable[[], bool] = lambda: False,
        still_since: Callable[[], float] = lambda: math.inf,
        steps_ended: Callable[[], int | None] = lambda: None,
    ) -> None:
        """`compiles_now`: whether a function is traced, lowered or compiled now, which events report only later.
        `still_since`: monotonic time since which the main thread has been at the same lines of the program.
        `steps_ended`: a number that rises with each step; None if only events count them, once a second."""
        self._emit = emit
        self._clock = clock
        self._compiles_now = compiles_now
        self._still_since = still_since
        self._steps_ended = steps_ended
        self._ended_before: int | None = None
        self._ended_settled = 0
        """Steps that had ended when the last compilation did."""
        self._lock = threading.RLock()
        """Held while the profiler is started or stopped, which takes seconds. A thread of the program takes it only in
        its own calls of the profiler, and at its end."""
        self._owner = os.getpid()
        self._backend_is_up = False
        self._counts_steps = False
        self._compiling = False
        self._settled = 0.0
        """When the window began, or the last compilation ended."""
        self._requested: tuple[float | None, int | None] | None = None
        self._requested_at = 0.0
        self._folder = ""
        self._began = 0.0
        self._until = 0.0
        self._steps_left: float | None = None
        self._replaced: list[ReplacedName] = []
        self.turns = 0
        """Counter that rises before and after the profiler is started or stopped. Stopping takes seconds, in which the
        thread that does it sleeps, and so does any other that waits for the lock."""

    @property
    def begun(self) -> bool:
        return bool(self._folder)

    @property
    def tick_seconds(self) -> float:
        """Longest interval between two ticks: by one a window that waits for steps begins, and one that is on ends."""
        if self.begun:
            return BEGUN_TICK_SECONDS
        waits = self._backend_is_up and self._requested is not None and self._requested[1] is not None
        return PENDING_TICK_SECONDS if waits else math.inf

    def begin(self, seconds: float | None = None, steps: int | None = None) -> None:
        """Request a window of so many seconds or steps; with neither, until `end`, at most `LONGEST_SECONDS`.

        It begins at once, or after the program's first compile. A window by steps begins once the program is in its
        loop: once steps are counted, or nothing has been compiled for a while. A window that is on or pending stays as
        it is.
        """
        with self._lock:
            if self.begun or self._requested is not None or os.getpid() != self._owner:
                return
            self._requested, self._requested_at = (seconds, steps), self._clock()
            self._begin_if_possible()

    def take(self, event: Event) -> None:
        """Examine an event that the recorder emitted, to notice the first compile and to count steps. Never waits,
        because the program's thread calls it where it compiles. Steps are counted only in the recorder's own thread."""
        if isinstance(event, Compiled | StageRunning):
            self._compiling = isinstance(event, StageRunning)
            # tracing needs no backend, compiling does
            compiles = (
                event.stage == "compile" if isinstance(event, StageRunning) else event.compile_seconds is not None
            )
            self._backend_is_up = self._backend_is_up or compiles
            self._settled, self._ended_settled = self._clock(), self._steps_ended() or 0
        elif isinstance(event, StepsCounted):
            self._counts_steps = True
            left = self._steps_left
            if self.begun and left is not None and self._steps_ended() is None:
                inside = min(1.0, (self._clock() - self._began) / event.seconds) if event.seconds > 0 else 1.0
                self._steps_left = left - event.count * inside

    def tick(self, now: float) -> None:
        """Begin a pending window, and end one that is over, at the monotonic time `now`. Called often."""
        with self._lock:
            ended = self._steps_ended()
            if self._requested is not None:
                if ended is not None and self._backend_is_up and not self._compiling:
                    # a short program is over before an event counts its steps; another loop counts from its own begin
                    self._ended_settled = min(self._ended_settled, ended)
                    self._counts_steps = self._counts_steps or ended - self._ended_settled >= SETTLED_STEPS
                self._begin_if_possible()
            if not self.begun:
                return
            before = self._ended_before
            self._ended_before = ended
            if self._steps_left is not None and ended is not None and before is not None and ended > before:
                self._counts_steps = True
                self._steps_left -= ended - before
            if self._steps_left is None:
                if now >= self._until:
                    self._end()
            elif self._steps_left <= 0:
                self._end()
            elif now >= self._until:
                self._end("too_long", LONGEST_SECONDS)
            elif self._counts_steps or self._compiling or now < self._settled + UNCOUNTED_SECONDS:
                return
            elif self._still_since() > self._began:
                # The program has had the time to show a loop, and showed none: it compiles before its steps. One that
                # has been in a single call ever since is in its step: a capture holds only what has ended.
                self._end("uncounted", UNCOUNTED_SECONDS)

    def end(self) -> None:
        """End the window, also one that is pending: the program has ended, or the user requested it."""
        with self._lock:
            if self._requested is not None:
                self._requested = None
                if self._backend_is_up:
                    self._emit(CaptureWindow(state="failed", code="ended_uncounted", seconds=SETTLED_SECONDS))
                else:
                    self._emit(CaptureWindow(state="failed", code="nothing_compiled"))
            if self.begun:
                self._end()

    def _begin_if_possible(self) -> None:
        """Begin the requested window if the backend is up and, for a window of steps, the program is in its loop."""
        jax = sys.modules.get("jax")
        if jax is None or not self._backend_is_up or self._requested is None:
            return
        seconds, steps = self._requested
        if steps is not None:
            # A window that begins before the loop contains the compilation, and few steps.
            now = self._clock()
            if not self._counts_steps and self._compiles_now():
                self._settled = now
                return
            settled = now >= self._settled + SETTLED_SECONDS or now >= self._requested_at + LONGEST_SECONDS
            if not self._counts_steps and (self._compiling or not settled):
                return
        self._requested = None
        folder = ""
        try:
            folder = tempfile.mkdtemp(prefix=WINDOW_FOLDER)
            options = jax.profiler.ProfileOptions()
            options.python_tracer_level = 0
            options.host_tracer_level = 2
            self.turns += 1
            jax.profiler.start_trace(folder, profiler_options=options)
            self.turns += 1
        except Exception as error:  # noqa: BLE001 - whatever the profiler raises, the program goes on
            _remove(folder)
            self._emit(CaptureWindow(state="failed", code="not_started", error=str(error)))
            return
        self._folder, self._began = folder, self._clock()
        self._settled = self._began
        self._steps_left = None if steps is None else float(steps)
        self._ended_before = self._steps_ended()
        self._until = self._began + (seconds if seconds is not None and steps is None else LONGEST_SECONDS)
        self._replaced = [
            ReplacedName(jax.profiler, name, self._ending_window_first)
            for name in ("start_trace", "stop_trace", "trace")
        ]
        self._emit(CaptureWindow(state="began", path=folder))

    def _end(self, code: str = "", seconds: float | None = None) -> None:
        """End the open window, and emit where its capture is, or why there is none (`code`, `seconds` of its limit)."""
        folder, self._folder = self._folder, ""
        for replaced in self._replaced:
            replaced.restore()
        self.turns += 1
        try:
            sys.modules["jax"].profiler.stop_trace()
        except Exception as error:  # noqa: BLE001 - whatever it raises; the program itself may have stopped it
            _remove(folder)
            self._emit(CaptureWindow(state="failed", code="not_stopped", error=str(error)))
            return
        finally:
            self.turns += 1
        if any(Path(folder).rglob("*.xplane.pb")):
            self._emit(CaptureWindow(state="ended", path=folder, code=code, seconds=seconds))
        else:
            _remove(folder)
            self._emit(CaptureWindow(state="failed", code="no_file"))

    def _ending_window_first(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """Let the program's own call of the profiler end the window first, while it is on."""

        def end_window_first(*arguments: Any, **keywords: Any) -> Any:
            if os.getpid() == self._owner:
                with self._lock:
                    if self.begun:
                        self._end("taken_over")
            return original(*arguments, **keywords)

        return end_window_first


def _remove(folder: str) -> None:
    if folder:
        shutil.rmtree(folder, ignore_errors=True)
