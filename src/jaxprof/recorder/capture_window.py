"""The capture window: switches JAX's profiler on in the running program for some seconds or some steps.

It uses JAX's public profiler only, with the Python tracer off, and writes into a new folder that the reader of the
profile removes. It never starts a backend, because the program may still be about to choose its platform or to join its
cluster: a window requested before the first compile waits for it. A process has one JAX profiler, and the program's own
use of it comes first: while the program uses it, no window begins; if the program starts it during a window through the
names of `jax.profiler`, the window ends there.
"""

from __future__ import annotations

import functools
import os
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from jaxprof.events import CaptureWindow, Compiled, Event, StageRunning, StepsCounted

SETTLED_SECONDS: Final = 0.5
"""Without a compilation for so long, the program is taken to be in its loop: steps may be slow, or not be counted."""
UNCOUNTED_SECONDS: Final = 2.0
"""Length of a window by steps if no steps can be counted, after the last compilation."""
LONGEST_SECONDS: Final = 60.0
"""The longest window by steps or without an end of its own: a profile stays in memory until it is written."""
_PROFILER_NAMES: Final = ("start_trace", "stop_trace", "trace")


class CaptureWindows:
    """Takes one window at a time. Every method may be called from any thread, and none raises."""

    def __init__(
        self,
        emit: Callable[[Event], None],
        folder_parent: Path | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
        compiles_now: Callable[[], bool] = lambda: False,
    ) -> None:
        """`folder_parent`: the folder in which the profile's folder is made; by default the folder for temporary
        files. `compiles_now`: whether something is traced, lowered or compiled, which events say a while later."""
        self._emit = emit
        self._parent = folder_parent
        self._clock = clock
        self._compiles_now = compiles_now
        self._lock = threading.RLock()
        """Held while the profiler is started or stopped, which takes seconds. A thread of the program takes it only in
        its own calls of the profiler, and at its end."""
        self._owner = os.getpid()
        self._backend_is_up = False
        self._counts_steps = False
        self._compiling = False
        self._settled = 0.0
        """When the window began, or the last compilation ended."""
        self._asked: tuple[float | None, int | None] | None = None
        self._asked_at = 0.0
        self._folder = ""
        self._began = 0.0
        self._until = 0.0
        self._steps_left: float | None = None
        self._originals: dict[str, Any] = {}
        self.turns = 0
        """Goes up before and after the profiler is started or stopped. Stopping it takes seconds, in which the thread
        that does it sleeps, and any other that takes its turn here."""

    @property
    def begun(self) -> bool:
        """Whether the profiler is on now, on our behalf."""
        return bool(self._folder)

    @property
    def waiting(self) -> bool:
        """Whether a requested window has not begun yet."""
        return self._asked is not None

    def begin(self, seconds: float | None = None, steps: int | None = None) -> None:
        """Requests a window of so many seconds or steps; with neither, until `end`, at most `LONGEST_SECONDS`.

        It begins at once, or after the program's first compile; by steps where the program is in its loop: once steps
        are counted, or nothing was compiled for a while. If a window is on or waiting already, that one stays as it is.
        """
        with self._lock:
            if self.begun or self._asked is not None or os.getpid() != self._owner:
                return
            self._asked, self._asked_at = (seconds, steps), self._clock()
            self._begin_if_possible()

    def take(self, event: Event) -> None:
        """Examines an event that the recorder emitted, to notice the first compile and to count steps. Never waits: the
        program's thread calls it where it compiles. Steps are counted in the recorder's own thread alone."""
        if isinstance(event, Compiled | StageRunning):
            self._backend_is_up = self._backend_is_up or _needs_backend(event)
            self._compiling = isinstance(event, StageRunning)
            self._settled = self._clock()
        elif isinstance(event, StepsCounted):
            self._counts_steps = True
            left = self._steps_left
            if self.begun and left is not None:
                inside = min(1.0, (self._clock() - self._began) / event.seconds) if event.seconds > 0 else 1.0
                self._steps_left = left - event.count * inside

    def tick(self, now: float) -> None:
        """Begins a window that waits, and ends one that is over; `now` is monotonic. The recorder's thread calls it
        often."""
        with self._lock:
            if self._asked is not None:
                self._begin_if_possible()
            if not self.begun:
                return
            if self._steps_left is not None and self._steps_left <= 0:
                self._end()
            elif self._steps_left is not None and self._is_uncounted(now):
                self._end(f"no steps were counted until {UNCOUNTED_SECONDS:g} s after the last compilation")
            elif now >= self._until:
                short = self._steps_left is not None
                self._end(f"ended after {LONGEST_SECONDS:g} s, before all the steps were counted" if short else "")

    def _is_uncounted(self, now: float) -> bool:
        """Whether the program has had the time to show a loop, and showed none: what it compiles comes before its
        steps."""
        return not self._counts_steps and not self._compiling and now >= self._settled + UNCOUNTED_SECONDS

    def end(self) -> None:
        """Ends the window, also one that still waits: the program has ended, or the user asked for it."""
        with self._lock:
            if self._asked is not None:
                self._asked = None
                self._failed(
                    f"the program ended within {SETTLED_SECONDS:g} s of its last compilation, before its loop was seen"
                    if self._backend_is_up
                    else "the program had not compiled anything yet"
                )
            if self.begun:
                self._end()

    def _begin_if_possible(self) -> None:
        jax = sys.modules.get("jax")
        if jax is None or not self._backend_is_up or self._asked is None:
            return
        seconds, steps = self._asked
        if steps is not None and not self._is_in_its_loop():
            return
        self._asked = None
        folder = ""
        try:
            folder = tempfile.mkdtemp(prefix="jaxprof-window-", dir=self._parent)
            options = jax.profiler.ProfileOptions()
            options.python_tracer_level = 0
            options.host_tracer_level = 2
            self.turns += 1
            jax.profiler.start_trace(folder, profiler_options=options)
            self.turns += 1
        except Exception as error:  # noqa: BLE001 - whatever the profiler raises, the program goes on
            _remove(folder)
            self._failed(f"the profiler could not be started: {error}")
            return
        self._folder, self._began = folder, self._clock()
        self._settled = self._began
        self._steps_left = None if steps is None else float(steps)
        self._until = self._began + (seconds if seconds is not None and steps is None else LONGEST_SECONDS)
        self._stand_before(jax.profiler)
        self._emit(CaptureWindow(state="began"))

    def _is_in_its_loop(self) -> bool:
        """Whether steps can be expected: a window that begins before holds the compilation, and few of them."""
        now = self._clock()
        if not self._counts_steps and self._compiles_now():
            self._settled = now
            return False
        settled = now >= self._settled + SETTLED_SECONDS or now >= self._asked_at + LONGEST_SECONDS
        return self._counts_steps or (settled and not self._compiling)

    def _end(self, note: str = "") -> None:
        folder, self._folder = self._folder, ""
        profiler = sys.modules["jax"].profiler
        self._step_aside(profiler)
        self.turns += 1
        try:
            profiler.stop_trace()
        except Exception as error:  # noqa: BLE001 - as above; the program itself may have stopped the profiler
            _remove(folder)
            self._failed(f"the profiler could not be stopped: {error}")
            return
        finally:
            self.turns += 1
        if any(Path(folder).rglob("*.xplane.pb")):
            self._emit(CaptureWindow(state="ended", path=folder, note=note))
        else:
            _remove(folder)
            self._failed("the profiler wrote no file")

    def _failed(self, why: str) -> None:
        self._emit(CaptureWindow(state="failed", note=f"no capture: {why}"))

    def _stand_before(self, profiler: Any) -> None:
        """While the window is on, the program's own calls of the profiler end it first."""
        for name in _PROFILER_NAMES:
            original = self._originals[name] = getattr(profiler, name)
            setattr(profiler, name, self._giving_way(original))

    def _giving_way(self, original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def give_way(*arguments: Any, **keywords: Any) -> Any:
            if os.getpid() == self._owner:
                with self._lock:
                    if self.begun:
                        self._end("ended early: the program uses the profiler itself")
            return original(*arguments, **keywords)

        return give_way

    def _step_aside(self, profiler: Any) -> None:
        for name, original in self._originals.items():
            if getattr(getattr(profiler, name), "__wrapped__", None) is original:  # else somebody has replaced it since
                setattr(profiler, name, original)
        self._originals = {}


def _needs_backend(event: Compiled | StageRunning) -> bool:
    """Whether the program has compiled, so that its backend is up: tracing needs no backend, compiling does."""
    return event.stage == "compile" if isinstance(event, StageRunning) else event.compile_seconds is not None


def _remove(folder: str) -> None:
    if folder:
        shutil.rmtree(folder, ignore_errors=True)
