"""The live arrays of the process and the memory of its devices, counted seldom enough not to be felt.

Asks only after the program itself has compiled something: counting must never be what brings up a backend.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any, Final

from jaxprof.events import ArraysCounted

EVERY_SECONDS: Final = 1.0
MOST_SHARE: Final = 0.004
"""Of the wall time: a count that took longer is followed by a longer pause."""


class ArrayCounter:
    """`count` when it is due."""

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock = clock
        self._next = 0.0
        self._told: tuple[object, ...] = ()
        self._told_at = 0.0

    def count(self, now: float) -> ArraysCounted | None:
        """The arrays now; None where it is too early, where nothing changed lately, or where JAX cannot tell."""
        jax = sys.modules.get("jax")
        if jax is None or now < self._next:
            return None
        began = self._clock()
        try:
            arrays, size = _live(jax)
            devices = _device_bytes(jax)
        except (AttributeError, RuntimeError):  # a backend that is going down, or one that cannot list them
            self._next = now + 10 * EVERY_SECONDS
            return None
        self._next = now + max(EVERY_SECONDS, (self._clock() - began) / MOST_SHARE)
        found = (arrays, size, tuple(devices.items()))
        if found == self._told and now - self._told_at < 30 * EVERY_SECONDS:
            return None
        self._told, self._told_at = found, now
        return ArraysCounted(monotonic_seconds=now, count=arrays, bytes=size, devices=devices)


def _live(jax: Any) -> tuple[int, int]:
    count = size = 0
    for array in jax.live_arrays():
        try:
            size += int(array.nbytes)
            count += 1
        except RuntimeError:  # deleted, or donated, since the list was made
            continue
    return count, size


def _device_bytes(jax: Any) -> dict[str, int]:
    found = {}
    for device in jax.local_devices():
        statistics = device.memory_stats()
        if statistics and isinstance(statistics.get("bytes_in_use"), int):
            found[f"{device.platform}:{device.id}"] = statistics["bytes_in_use"]
    return found
