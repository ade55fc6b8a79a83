"""A machine of eight GPUs for the picture of Start: what its driver answers is made up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from jaxprof.devices import Device
from jaxprof.events import DeviceReading

if TYPE_CHECKING:
    from jaxprof.runner.interpreter import Interpreter

GIB = 2**30
LOST = 5
BUSY = (0.97, 0.96, 0.21, 0.0, 0.95, None, 0.98, 0.93)
USED_GIB = (76.6, 76.1, 32.8, 0.4, 75.9, None, 77.2, 74.8)
WATTS = (682.0, 655.0, 218.0, 71.0, 640.0, None, 691.0, 648.0)
CELSIUS = (69.0, 66.0, 91.0, 34.0, 64.0, None, 70.0, 65.0)
GIGAHERTZ = (1.98, 1.98, 1.09, 0.35, 1.98, None, 1.95, 1.98)


class EightGpus:
    """Eight H100s, of which one is hot and slowed down, and one fell off the bus; JAX uses the other seven."""

    driver, is_late = "580.95", False

    def local(self) -> Sequence[Device]:
        return [
            *(
                Device(
                    id=f"cuda:{number}",
                    platform="cuda",
                    kind="NVIDIA H100 80GB HBM3",
                    nvml_key=(number, None),
                    fault="fell off the bus" if number == LOST else "",
                )
                for number in range(8)
            ),
            Device(id="cpu:0", platform="cpu", kind="Intel Xeon Platinum 8480C", core_count=104),
        ]

    def late(self) -> None:
        return None

    def usable(self, interpreter: Interpreter) -> Sequence[Device]:
        return [
            replace(device, used_by_jax=not device.fault, is_default=number == 0)
            for number, device in enumerate(self.local())
        ]

    def read(self) -> list[DeviceReading]:
        cards = [
            DeviceReading(
                device=f"cuda:{number}",
                utilisation=BUSY[number],
                memory_used_bytes=int(used * GIB),
                memory_limit_bytes=80 * GIB,
                power_watts=WATTS[number],
                power_limit_watts=700.0,
                temperature_celsius=CELSIUS[number],
                clock_hertz=GIGAHERTZ[number] * 1e9,
                throttle_reasons=["software thermal slowdown"] if CELSIUS[number] > 90 else [],
            )
            for number, used in enumerate(USED_GIB)
            if used is not None
        ]
        host = DeviceReading(
            device="cpu:0",
            utilisation=0.12,
            memory_used_bytes=211 * GIB,
            memory_limit_bytes=2048 * GIB,
            load_average=12.5,
        )
        return [*cards, host]
