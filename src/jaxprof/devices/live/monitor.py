"""Read all devices live, for a thread that reads twice a second."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from jaxprof.devices import Device
from jaxprof.devices.live.host import HostSampler
from jaxprof.devices.live.nvidia import Nvml
from jaxprof.events import DeviceReading


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
        self.devices = devices
        """The devices that are read."""

    def read(self) -> list[DeviceReading]:
        """Return a reading of each device, in order. CPU devices of one host share one reading."""
        readings = []
        cpu: DeviceReading | None = None
        for device in self.devices:
            if device.platform == "cpu" and device.core_count is not None:  # the cores that psutil knows
                cpu = self._host.read(device.id) if cpu is None else replace(cpu, device=device.id)
                reading = cpu
            elif device.nvml_key is not None:
                reading = self._nvml.read(device.nvml_key, device.id)
            else:
                reading = DeviceReading(device=device.id)
            readings.append(reading)
        return readings

    def close(self) -> None:
        """Release NVML."""
        self._nvml.close()
