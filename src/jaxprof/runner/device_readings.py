"""Readings of devices while something runs on them (power, clocks, throttling, other users), for the log."""

from __future__ import annotations

import time

from jaxprof.devices.inventory.machine import gather, local_devices
from jaxprof.devices.live.monitor import Monitor
from jaxprof.events import DeviceReading

RUN_SECONDS = 2.0
"""How often the device of a run is read."""
PROGRAM_SECONDS = 0.5
"""How often the devices of a recorded program are read."""


class DeviceWatch:
    """Reads devices of this machine. What cannot be read here gives no readings and no error."""

    def __init__(self, python: str, device: str = "") -> None:
        """Watches the device with this id for a run, or all of them for a program. `python`: the interpreter whose
        environment decides which GPUs JAX sees."""
        devices = [each for each in local_devices(gather(python)) if device in ("", each.id)]
        self._monitor = Monitor(devices) if devices else None
        self._interval_seconds: float | None = RUN_SECONDS if device else PROGRAM_SECONDS
        if device.startswith("cpu:"):  # only before and after a run: reading takes none of its cores
            self._interval_seconds = None
        self.take()  # the shares of the host's cores refer to the time since the previous reading

    def take(self) -> list[DeviceReading]:
        """Takes a reading now."""
        self._last = time.monotonic()
        return self._monitor.read() if self._monitor is not None else []

    def take_when_due(self, now: float) -> list[DeviceReading]:
        """A reading, if the last one is long enough ago."""
        due = self._interval_seconds is not None and now - self._last >= self._interval_seconds
        return self.take() if due else []

    def close(self) -> None:
        """Releases the driver's library."""
        if self._monitor is not None:
            self._monitor.close()
