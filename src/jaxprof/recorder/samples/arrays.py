"""The live arrays of the process and the memory of its devices, counted seldom enough to cost next to nothing.

Nothing is counted before the program itself has compiled something: counting must never start a backend.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any, Final

from jaxprof.events import ArraysCounted

EVERY_SECONDS: Final = 1.0
AT_FIRST_SECONDS: Final = 0.1
"""Interval between the first counts; without them a program of a second or two would have none."""
FIRST_COUNTS: Final = 40
MOST_SHARE: Final = 0.004
"""Share of the wall time: after a count that took longer, the next pause is longer."""


class ArrayCounter:
    """Call `count` often; it counts when a count is due."""

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock = clock
        self._next = 0.0
        self._told: tuple[object, ...] = ()
        self._told_at = 0.0
        self._counted = 0

    def count(self, now: float) -> ArraysCounted | None:
        """The arrays now; None if it is too early, if nothing has changed lately, or if JAX cannot list them."""
        jax = sys.modules.get("jax")
        if jax is None or now < self._next:
            return None
        began = self._clock()
        try:
            arrays, size = _live(jax)
            devices = _device_bytes(jax)
        except (AttributeError, RuntimeError):  # a backend that is shutting down, or one that cannot list its arrays
            self._next = now + 10 * EVERY_SECONDS
            return None
        self._counted += 1
        pause = AT_FIRST_SECONDS if self._counted < FIRST_COUNTS else EVERY_SECONDS
        self._next = now + max(pause, (self._clock() - began) / MOST_SHARE)
        counted = (arrays, size, tuple(devices.items()))
        if counted == self._told and now - self._told_at < 30 * EVERY_SECONDS:
            return None
        self._told, self._told_at = counted, now
        return ArraysCounted(monotonic_seconds=now, count=arrays, bytes=size, devices=devices)


def _live(jax: Any) -> tuple[int, int]:
    count = size = 0
    for array in jax.live_arrays():
        try:
            size += int(array.nbytes)
            count += 1
        except RuntimeError:  # deleted or donated since the list was made
            continue
    return count, size


def _device_bytes(jax: Any) -> dict[str, int]:
    in_use = {}
    for device in jax.local_devices():
        statistics = device.memory_stats()
        if statistics and isinstance(statistics.get("bytes_in_use"), int):
            in_use[f"{device.platform}:{device.id}"] = statistics["bytes_in_use"]
    return in_use
