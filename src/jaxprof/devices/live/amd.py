"""Read AMD GPUs from the files of their kernel driver, without a library or a process.

Each file may be absent, on an older driver or another card, or unreadable in a container: that value is unknown then.
Names and units: the Linux kernel's documentation, GPU Driver Developer's Guide, drm/amdgpu, "Misc AMDGPU driver
information" and "GPU Power/Thermal Controls and Monitoring".
"""

from __future__ import annotations

import time
from pathlib import Path

from jaxprof.base.operating_system import text_at
from jaxprof.devices import Device
from jaxprof.events import DeviceReading

ROOT = Path("/sys/bus/pci/devices")


def amd_name(address: str, root: Path = ROOT) -> str | None:
    """Return the product name of the card at a PCI address, `AMD Instinct MI300X OAM`; None if it has none."""
    return text_at(root / address / "product_name").strip() or None


def read_amd(device: Device, root: Path = ROOT) -> DeviceReading:
    """Return a live reading of an AMD GPU; of unknowns for one whose place on the bus is not known."""
    if device.pci_bus_id is None:
        return DeviceReading(device=device.id)
    folder = root / device.pci_bus_id
    sensors = next(iter(sorted(folder.glob("hwmon/hwmon*"))), folder / "hwmon")
    busy = _number(folder / "gpu_busy_percent")
    watts = _number(sensors / "power1_average", 1e-6)
    return DeviceReading(
        device=device.id,
        monotonic_seconds=time.monotonic(),
        utilisation=None if busy is None else min(1.0, busy / 100),
        memory_used_bytes=_bytes(folder / "mem_info_vram_used"),
        memory_limit_bytes=_bytes(folder / "mem_info_vram_total"),
        power_watts=watts if watts is not None else _number(sensors / "power1_input", 1e-6),  # as MI300 has it
        power_limit_watts=_number(sensors / "power1_cap", 1e-6),
        temperature_celsius=_number(sensors / "temp1_input", 1e-3),
        clock_hertz=_number(sensors / "freq1_input"),
    )


def _number(path: Path, scale: float = 1.0) -> float | None:
    try:
        return int(text_at(path)) * scale
    except ValueError:
        return None


def _bytes(path: Path) -> int | None:
    count = _number(path)
    return None if count is None else int(count)
