"""Facts of the devices of this machine, with their readings, and of devices to compile for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from jaxprof.base import units
from jaxprof.base.values import frozen
from jaxprof.devices import Device
from jaxprof.events import DeviceReading
from jaxprof.facts import Fact, Facts, at, column, within
from jaxprof.facts.sessions import READING
from jaxprof.facts.units import BYTES, COUNT, INDEX, NUMBER, NUMBERS, OBJECT, ROWS, TEXT, TRUTH

if TYPE_CHECKING:
    from jaxprof.devices.absent.machine import Chip


@frozen
class ListedDevice:
    device: Device
    reading: DeviceReading | None

    @property
    def memory_used_bytes(self) -> int | None:
        """Memory in use, from the reading if it has it, otherwise from the listing of the devices."""
        used = self.reading.memory_used_bytes if self.reading is not None else None
        return used if used is not None else self.device.memory_used_bytes

    @property
    def memory_limit_bytes(self) -> int | None:
        """Memory of the device, from the reading if it has it, otherwise from the listing of the devices."""
        limit = self.reading.memory_limit_bytes if self.reading is not None else None
        return limit if limit is not None else self.device.memory_limit_bytes


def listed_devices(devices: Sequence[Device], readings: Sequence[DeviceReading]) -> list[ListedDevice]:
    """Return the devices in order, each with its reading if there is one."""
    by_device = {reading.device: reading for reading in readings}
    return [ListedDevice(device, by_device.get(device.id)) for device in devices]


def _power(row: ListedDevice) -> str | None:
    watts, limit = at("reading.power_watts")(row), at("reading.power_limit_watts")(row)
    if watts is None:
        return None
    return f"{watts:.0f} W" if limit is None else f"{watts:.0f}/{limit:.0f} W"


def memory_text(used: float | None, limit: float | None) -> str:
    """Return `98.2 / 139.8 GiB`, in the unit of the limit; a dash for what is unknown."""
    if limit is None and used is None:
        return units.UNKNOWN
    if limit is None or used is None:
        return f"{units.bytes_(used)} / {units.bytes_(limit)}"
    unit = units.bytes_(limit).rpartition(" ")[2]
    scale = 1024 ** ("B", "KiB", "MiB", "GiB", "TiB", "PiB").index(unit)
    return f"{used / scale:.1f} / {limit / scale:.1f} {unit}"


_READING: Facts[DeviceReading] = (
    *READING,
    Fact("core_utilisation", NUMBERS, "Share of the time in which each core was busy, in 0..1"),
    Fact("power_limit_watts", NUMBER, "The most that it may draw"),
    Fact("clock_limit_hertz", NUMBER, "The highest clock"),
    Fact("processes", ROWS, "Who uses it", inside=(
        Fact("pid", INDEX, "Id of the process", lambda process: process.get("pid")),
        Fact("name", TEXT, "Its name", lambda process: process.get("name")),
        Fact("user", TEXT, "Its user", lambda process: process.get("user")),
        Fact("memory_bytes", BYTES, "Memory that it holds", lambda process: process.get("memory_bytes")),
    )),
)  # fmt: skip
DEVICES: Facts[ListedDevice] = (
    Fact("id", TEXT, "cpu:0, cuda:0", "device.id", "device", widest=9),
    *within("device", (
        Fact("platform", TEXT, "cpu, cuda, rocm, tpu"),
        Fact("kind", TEXT, "NVIDIA H100 80GB HBM3, cpu"),
        Fact("process", INDEX, "Index of the process that it belongs to"),
    )),
    column("kind", lambda row: row.device.kind or row.device.platform, gives_way=True),
    column("use", "reading.utilisation", units.percent),
    Fact("memory_used_bytes", BYTES, "Memory in use"),
    Fact("memory_limit_bytes", BYTES, "Memory that there is"),
    column("memory", lambda row: memory_text(row.memory_used_bytes, row.memory_limit_bytes), widest=20),
    column("power", _power, right=True, widest=11),
    column("temp", "reading.temperature_celsius",
           lambda degrees: units.UNKNOWN if degrees is None else f"{degrees:.0f} °C"),
    column("clock", "reading.clock_hertz", lambda rate: units.scaled(rate, "Hz")),
    *within("device", (
        Fact("allocator_limit_bytes", BYTES, "What JAX's allocator may take"),
        Fact("core_count", NUMBER, "Cores or multiprocessors"),
        Fact("compute_capability", TEXT, "Compute capability of an NVIDIA GPU"),
        Fact("uuid", TEXT, "Its UUID"),
        Fact("pci_bus_id", TEXT, "Its place on the bus"),
        Fact("used_by_jax", TRUTH, "Whether JAX uses it; null if JAX was not asked"),
        Fact("reason", TEXT, "Why JAX does not use it"),
        Fact("hint", TEXT, "What makes JAX use it"),
    )),
    Fact("reading", OBJECT, "A live reading", inside=_READING),
)  # fmt: skip


def _memory(chip: Chip) -> int:
    from jaxprof.hlo.kernels.cost.peaks import device  # reads the table of all devices

    return device(chip.name).memory_bytes


TARGETS: Facts[Chip] = (
    Fact("name", TEXT, "Its name, as --for takes it", title="device"),
    Fact("device_kind", TEXT, "Kind of the device, as JAX names it", title="as JAX names it"),
    Fact("memory_bytes", BYTES, "Its memory", _memory, "memory"),
    Fact("devices", COUNT, "Devices of a chip", title="a chip", show=lambda count: units.counted(count, "device"),
         right=False),
    Fact("vendor", TEXT, "Whose compiler it needs", title="needs",
         show=lambda vendor: f"jaxprof devices target install {vendor}", right=False),
)  # fmt: skip
