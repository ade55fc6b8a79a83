"""Where the devices and their readings come from, for the app. Every function here blocks: for threads only."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from jaxprof.events import DeviceReading
from jaxprof.tui.devices import DeviceFacts

if TYPE_CHECKING:
    from jaxprof.worker import Interpreter


class MachineSource:
    """This machine, by psutil, and JAX's own list."""

    def facts(self) -> list[DeviceFacts]:
        """The host."""
        count = len(os.sched_getaffinity(0))
        return [DeviceFacts("cpu:0", "CPU", f"{count} cores")]

    def usable(self, interpreter: Interpreter) -> list[DeviceFacts]:
        """What JAX sees in a child."""
        from jaxprof.worker import jax_devices

        answer = jax_devices(interpreter)
        count = len(os.sched_getaffinity(0))
        return [
            DeviceFacts(
                str(device["id"]),
                "CPU" if device["platform"] == "cpu" else str(device["kind"]),
                f"{count} cores" if device["platform"] == "cpu" else "",
                usable=True,
            )
            for device in answer["devices"]
        ]

    def read(self) -> list[DeviceReading]:
        """Readings of now."""
        import psutil

        memory = psutil.virtual_memory()
        cores = [share / 100 for share in psutil.cpu_percent(percpu=True)]
        return [
            DeviceReading(
                device="cpu:0",
                utilisation=sum(cores) / len(cores) if cores else None,
                memory_used_bytes=memory.total - memory.available,
                memory_limit_bytes=memory.total,
                load_average=os.getloadavg()[0],
                core_utilisation=cores,
            )
        ]
