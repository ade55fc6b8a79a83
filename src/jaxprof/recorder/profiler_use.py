"""How long the program itself has JAX's profiler on, and where it switched it on. JAX has no public way to ask.

While it is attached, functions that note each call and pass it on stand under the profiler's public names.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from jaxprof.events import NOWHERE, SourceLocation
from jaxprof.recorder.frame_owner import user_location
from jaxprof.recorder.guest import ReplacedName


class ProfilerUse:
    """Counts the seconds with the profiler on, until its profile is written. Capture windows, which begin in the
    recorder's own thread, where no line of the program is, do not count."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.where = NOWHERE
        """The line that switched it on last."""
        self._clock = clock
        self._before = 0.0
        self._began: float | None = None
        self._replaced: list[ReplacedName] = []

    def attach(self) -> None:
        """Replace the public names, so that later calls are noted."""
        around = {"start_trace": self._starting, "stop_trace": self._stopping, "trace": self._tracing}
        profiler = sys.modules["jax"].profiler
        self._replaced = [ReplacedName(profiler, name, function) for name, function in around.items()]

    def detach(self) -> None:
        for replaced in self._replaced:
            replaced.restore()

    def seconds(self) -> float:
        """Return the seconds until now. Any thread may call this."""
        began = self._began
        return self._before + (self._clock() - began if began is not None else 0.0)

    def _begin(self, where: SourceLocation) -> None:
        if where and self._began is None:
            self.where, self._began = where, self._clock()

    def _end(self) -> None:
        self._before, self._began = self.seconds(), None

    def _starting(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def start_trace(*arguments: Any, **keywords: Any) -> Any:
            result = original(*arguments, **keywords)
            self._begin(user_location(sys._getframe(1)))
            return result

        return start_trace

    def _stopping(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def stop_trace(*arguments: Any, **keywords: Any) -> Any:
            try:
                return original(*arguments, **keywords)
            finally:  # writing the profile is a part of it
                self._end()

        return stop_trace

    def _tracing(self, original: Callable[..., Any]) -> Callable[..., Any]:
        @contextmanager
        def trace(*arguments: Any, **keywords: Any) -> Iterator[Any]:
            try:
                with original(*arguments, **keywords) as opened:
                    self._begin(user_location(sys._getframe(1)))
                    yield opened
            finally:
                self._end()

        return trace
