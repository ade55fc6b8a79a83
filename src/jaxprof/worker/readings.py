"""Readings of all devices of this machine while a program runs on some of them, for the same time axis."""

from __future__ import annotations

import time

from jaxprof.events import DeviceReading
from jaxprof.telemetry.devices import gather, local_devices
from jaxprof.telemetry.monitor import Monitor

INTERVAL_SECONDS = 0.5


class Readings:
    """Reads twice a second, when it is asked often enough."""

    def __init__(self, python: str) -> None:
        """`python`: the program's interpreter, whose environment says which GPUs JAX sees."""
        self._monitor = Monitor(local_devices(gather(python)))
        self._monitor.read()  # shares of a core are since the reading before
        self._last = time.monotonic()

    def take_when_due(self, now: float) -> list[DeviceReading]:
        """A reading of each device, or nothing where the last one is not long enough ago."""
        if now - self._last < INTERVAL_SECONDS:
            return []
        self._last = now
        return self._monitor.read()

    def close(self) -> None:
        """Lets the driver's library go."""
        self._monitor.close()
