"""The stages that are going on in each thread, nested as they are, and the exclusive time of the main thread."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import Final

from jaxprof.events import STAGES
from jaxprof.program.compiles.rows import Row

THREADS_REMEMBERED: Final = 64


@dataclass(slots=True)
class OpenStage:
    """A stage that has begun and not ended."""

    stage: str
    function: str
    began: float
    row: Row | None
    """None for what is traced as a part of another trace."""
    handled: int
    """Address of the exception that was being handled when it began: another one at its end is its own."""
    apart: float = 0.0
    """Seconds of the compilations nested in it, which have rows of their own."""
    nested_trace: tuple[str, float] | None = None
    """The trace that ended last inside it: name and seconds, in case that it turns out to be a program of its own."""


@dataclass(slots=True)
class ThreadStages:
    """One thread's stages, innermost last."""

    name: str
    """Empty for the main thread."""
    main: bool
    open: list[OpenStage] = field(default_factory=list)

    def close(self, stage: str, function: str) -> OpenStage | None:
        """The innermost open stage of that kind and name, taken out with what was left open inside it."""
        for index in range(len(self.open) - 1, -1, -1):
            found = self.open[index]
            if found.stage == stage and found.function == function:
                del self.open[index:]
                return found
        return None


class Threads:
    """The stages of every thread that compiled."""

    def __init__(self, main_thread: int) -> None:
        self._main_thread = main_thread
        self._threads: dict[int, ThreadStages] = {}

    def current(self) -> ThreadStages:
        """Those of the calling thread."""
        ident = threading.get_ident()
        stages = self._threads.get(ident)
        if stages is None or (not stages.open and not stages.main and ident not in _names()):
            if len(self._threads) >= THREADS_REMEMBERED:
                self._forget_idle()
            main = ident == self._main_thread
            # threading.current_thread() would register a thread that Python did not start: only looked up here
            stages = self._threads[ident] = ThreadStages("" if main else _names().get(ident, f"thread {ident}"), main)
        return stages

    def _forget_idle(self) -> None:
        for ident in [ident for ident, stages in list(self._threads.items()) if not stages.open]:
            del self._threads[ident]

    def all(self) -> list[ThreadStages]:
        """Of every thread; safe to call from any."""
        return list(self._threads.values())


def _names() -> dict[int, str]:
    return {thread.ident: thread.name for thread in threading.enumerate() if thread.ident is not None}


class ExclusiveClock:
    """Seconds of each stage without those nested in it, the running one up to now.

    One thread switches it, any may read it: its whole state is one tuple that is replaced at once.
    """

    def __init__(self) -> None:
        self._state: tuple[dict[str, float], str, float] = (dict.fromkeys(STAGES, 0.0), "", 0.0)

    def switch(self, stage: str, now: float) -> None:
        """From now on the thread is in `stage`; empty for none."""
        seconds, running, since = self._state
        if running:
            seconds = {**seconds, running: seconds[running] + now - since}
        self._state = (seconds, stage, now)

    def read(self, now: float) -> dict[str, float]:
        """Seconds so far."""
        seconds, running, since = self._state
        if running:
            return {**seconds, running: seconds[running] + max(0.0, now - since)}
        return dict(seconds)
