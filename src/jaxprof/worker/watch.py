"""Readings of a run's device while it runs: power, clocks, throttling, who else uses it. They go into the log.

An accelerator is read every other second; the host only before and after a run, so that reading does not take its
cores.
"""

from __future__ import annotations

import time

from jaxprof.events import DeviceReading
from jaxprof.telemetry.devices import gather, local_devices
from jaxprof.telemetry.monitor import Monitor

INTERVAL_SECONDS = 2.0


class DeviceWatch:
    """Reads one device (by its id). A device that cannot be read here gives no readings, and no error."""

    def __init__(self, device: str, python: str) -> None:
        self._accelerator = not device.startswith("cpu:")
        found = [known for known in local_devices(gather(python)) if known.id == device]
        self._monitor = Monitor(found) if found else None
        self._last = time.monotonic()
        self.take()  # the shares of the host's cores are since the reading before

    def due(self, now: float) -> bool:
        """Whether another reading is wanted in the middle of a run."""
        return self._accelerator and now - self._last >= INTERVAL_SECONDS

    def take(self) -> list[DeviceReading]:
        """A reading, now."""
        self._last = time.monotonic()
        return self._monitor.read() if self._monitor is not None else []

    def close(self) -> None:
        """Lets the driver's library go."""
        if self._monitor is not None:
            self._monitor.close()
