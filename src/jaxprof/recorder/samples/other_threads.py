"""What the program's other Python threads computed, and at which lines they were when one held the interpreter's lock.

A main thread that waits for the lock does not show who holds it. Two sources together do: the CPU clocks of the other
threads, which the system keeps, and their frames in those samples that had to wait for the lock. The sampler itself
holds the lock while it reads them, so no thread ends meanwhile.
"""

from __future__ import annotations

import _thread
import sys
import threading
from collections import Counter

from jaxprof.events import NOWHERE, SourceLocation, ThreadTime
from jaxprof.recorder.frame_owner import STDLIB, file_kind, user_location
from jaxprof.recorder.samples.cpu_clock import cpu_seconds, run_delay_seconds

THREADS_AT_MOST = 32
LEAST_SECONDS = 0.05
"""CPU seconds in a window below which a thread is not reported."""


class OtherThreads:
    """Call `sample` where the lock was held, and `collect` at the end of each window."""

    def __init__(self, main_thread: int) -> None:
        self._main_thread = main_thread
        self._locations: Counter[tuple[int, SourceLocation]] = Counter()
        self._clocks: dict[int, tuple[float, float]] = {}
        """CPU seconds and delay of each thread until the last `collect`, by its native id."""
        self.collect()  # what they have computed until now is not of the first window

    def sample(self) -> None:
        """Note at which line of the user's, or of a library's, each other thread is. One that only the standard library
        is in waits for work, as those of a thread pool do, and does not hold the lock."""
        frames = sys._current_frames()
        # With this frame among them, all would live until the garbage collector runs, with the program's arrays.
        frames.pop(_thread.get_ident(), None)
        frames.pop(self._main_thread, None)
        if len(frames) >= THREADS_AT_MOST:
            return
        for ident, frame in frames.items():
            location = user_location(frame)
            if location and file_kind(location.file) != STDLIB:
                self._locations[ident, location] += 1

    def collect(self) -> list[ThreadTime]:
        """Return the threads that have computed since the last call, each with the line that most samples saw it at.
        Threads that `threading` does not know have no clock here."""
        # `threading.enumerate` takes a lock, which a thread of the program may hold
        threads = list(getattr(threading, "_active", {}).items())[:THREADS_AT_MOST]
        before, self._clocks = self._clocks, {}
        computed = []
        for ident, thread in threads:
            if ident == self._main_thread or thread.native_id is None:
                continue
            ran, waited = cpu_seconds(thread.native_id), run_delay_seconds(thread.native_id)
            if ran is None or waited is None:
                continue
            self._clocks[thread.native_id] = ran, waited
            ran_before, waited_before = before.get(thread.native_id, (0.0, 0.0))
            took, delay = ran - ran_before, waited - waited_before
            if took >= LEAST_SECONDS:
                seen = Counter({at: count for (of, at), count in self._locations.items() if of == ident})
                location, samples = seen.most_common(1)[0] if seen else (NOWHERE, 0)
                computed.append(
                    ThreadTime(name=thread.name, at=location, cpu_seconds=took, delay_seconds=delay, samples=samples)
                )
        self._locations.clear()
        return computed
