"""Read all devices live, for a thread that reads twice a second, and keep the last minute for sparklines."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import replace

from jaxprof.devices.inventory.machine import Device
from jaxprof.devices.live.host import HostSampler
from jaxprof.devices.live.nvidia import Nvml
from jaxprof.events import DeviceReading

HISTORY_LENGTH = 120
"""Number of readings kept: a minute at 2 Hz."""


class Monitor:
    """Reads devices; never raises, never waits, starts no process. One thread calls `read`.

    A device that neither psutil nor NVML knows (a TPU, another host's GPU) has a reading of unknowns only, so that a
    list of readings always matches the list of devices.
    """

    def __init__(
        self,
        devices: Sequence[Device],
        host: HostSampler | None = None,
        nvml: Nvml | None = None,
    ) -> None:
        self._host = host or HostSampler()
        self._nvml = nvml or Nvml()
        self._devices: tuple[Device, ...] = ()
        self._history: dict[str, deque[DeviceReading]] = {}
        self.follow(devices)

    def follow(self, devices: Sequence[Device]) -> None:
        """Read these devices from now on. A device that stays keeps its history, even under a new id (by UUID)."""
        former = {device.uuid or device.id: self._history[device.id] for device in self._devices}
        new = {device.id: former.get(device.uuid or device.id) for device in devices}
        kept = {name: deque(maxlen=HISTORY_LENGTH) if old is None else old for name, old in new.items()}
        self._devices, self._history = tuple(devices), kept

    def read(self) -> list[DeviceReading]:
        """Return a reading of each device, in order. CPU devices of one host share one reading."""
        readings = []
        cpu: DeviceReading | None = None
        for device in self._devices:
            if device.platform == "cpu" and device.core_count is not None:  # the cores that psutil knows
                cpu = self._host.read(device.id) if cpu is None else replace(cpu, device=device.id)
                reading = cpu
            elif device.nvml_key is not None:
                reading = self._nvml.read(device.nvml_key, device.id)
            else:
                reading = DeviceReading(device=device.id)
            self._history[device.id].append(reading)
            readings.append(reading)
        return readings

    def history(self, device: str) -> tuple[DeviceReading, ...]:
        """Return the last readings of a device, the oldest first; empty for a device that is not followed."""
        return tuple(self._history.get(device, ()))

    def close(self) -> None:
        """Release NVML."""
        self._nvml.close()
