"""The devices of this machine and their readings, from telemetry and from JAX. Everything blocks: for threads only."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from jaxprof.tui.devices import DeviceFacts

if TYPE_CHECKING:
    from jaxprof.events import DeviceReading
    from jaxprof.telemetry.devices import Device
    from jaxprof.worker import Interpreter


class MachineSource:
    """One thread reads; another asks JAX, once, and then says what is to be read from then on."""

    def __init__(self) -> None:
        from jaxprof.telemetry.devices import local_devices
        from jaxprof.telemetry.monitor import Monitor

        self._lock = threading.Lock()
        self._local = local_devices()
        self._monitor = Monitor(self._local)

    def facts(self) -> list[DeviceFacts]:
        """What the machine has, without JAX."""
        return [_facts(device) for device in self._local]

    def usable(self, interpreter: Interpreter) -> list[DeviceFacts]:
        """The same, after JAX was asked in a child. Raises WorkerError."""
        from jaxprof.telemetry.devices import gather, local_devices
        from jaxprof.telemetry.join import merge
        from jaxprof.worker import jax_devices

        local = local_devices(gather(interpreter.path))
        merged = merge(local, jax_devices(interpreter))
        with self._lock:
            self._monitor.follow(merged)
        return [_facts(device) for device in merged]

    def read(self) -> list[DeviceReading]:
        """Readings of now, one for each device."""
        with self._lock:
            return self._monitor.read()


def _facts(device: Device) -> DeviceFacts:
    details = []
    if device.core_count is not None:
        details.append(f"{device.core_count:g} core{'s' if device.core_count != 1 else ''}")
    if device.compute_capability is not None:
        details.append(f"sm {device.compute_capability}")
    return DeviceFacts(
        device.id,
        device.kind or device.platform.upper(),
        " · ".join(details),
        usable=device.used_by_jax,
        reason=device.reason,
        mend=device.mend,
    )
