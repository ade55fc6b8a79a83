"""The list of devices as JSON and as plain text of 80 columns, for `jaxprof devices`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from jaxprof import units
from jaxprof.devices.inventory.machine import Device
from jaxprof.events import DeviceReading, Scalar
from jaxprof.facts import at
from jaxprof.report.renderers import records, text_lines, wrap
from jaxprof.report.table import Column, Table
from jaxprof.text import safe

WIDTH = 80

_READING_KEYS = (
    "utilisation",
    "core_utilisation",
    "memory_used_bytes",
    "memory_limit_bytes",
    "power_watts",
    "power_limit_watts",
    "temperature_celsius",
    "clock_hertz",
    "clock_limit_hertz",
    "load_average",
    "throttle_reasons",
    "processes",
)


@dataclass(frozen=True, slots=True)
class ListedDevice:
    """A device with its current reading."""

    device: Device
    reading: DeviceReading | None

    @property
    def memory_used_bytes(self) -> int | None:
        """The current reading if there is one, else that of the listing."""
        used = self.reading.memory_used_bytes if self.reading is not None else None
        return used if used is not None else self.device.memory_used_bytes

    @property
    def memory_limit_bytes(self) -> int | None:
        """The current reading if there is one, else that of the listing."""
        limit = self.reading.memory_limit_bytes if self.reading is not None else None
        return limit if limit is not None else self.device.memory_limit_bytes


def devices_report(devices: Sequence[Device], readings: Sequence[DeviceReading] = ()) -> dict[str, Any]:
    """JSON-ready: `{"devices": [{"id", "platform", ..., "reading": {...} | null}]}`.

    Sizes in bytes, shares in 0..1, the rest in the unit of its name; null is unknown, or does not apply.
    `used_by_jax` is null if JAX was not asked.
    """
    return {"devices": list(records(Table(_DEVICES, _rows(devices, readings))))}


def devices_text(devices: Sequence[Device], readings: Sequence[DeviceReading] = (), width: int = WIDTH) -> list[str]:
    """Lines: a table of all devices, then what does not fit in the table. At most `width` columns.

    A command is never broken, so that it can be copied; only it may be wider.
    """
    rows = _rows(devices, readings)
    details = (line for row in rows for line in _details(row.device, row.reading, width))
    return [*text_lines(Table(_DEVICES, rows), indent="", width=width), *details]


def _rows(devices: Sequence[Device], readings: Sequence[DeviceReading]) -> list[ListedDevice]:
    by_device = {reading.device: reading for reading in readings}
    return [ListedDevice(device, by_device.get(device.id)) for device in devices]


def _power(row: ListedDevice) -> str | None:
    watts, limit = at("reading.power_watts")(row), at("reading.power_limit_watts")(row)
    if watts is None:
        return None
    return f"{watts:.0f} W" if limit is None else f"{watts:.0f}/{limit:.0f} W"


def memory_text(used: float | None, limit: float | None) -> str:
    """`98.2 / 139.8 GiB` in the unit of the limit; a dash if unknown."""
    if limit is None or used is None:
        return (
            f"{units.bytes_(used)} / {units.bytes_(limit)}" if limit is not None or used is not None else units.UNKNOWN
        )
    whole = units.bytes_(limit)
    scale = 1024 ** ("B", "KiB", "MiB", "GiB", "TiB", "PiB").index(whole.rpartition(" ")[2])
    return f"{used / scale:.1f} / {limit / scale:.1f} {whole.rpartition(' ')[2]}"


def _details(device: Device, reading: DeviceReading | None, width: int) -> Iterator[str]:
    for label, text in _facts(device, reading):
        yield from wrap(f"{device.id}: {label}{text}", width=width, indent="    ", first="  ")
    if device.used_by_jax is False:
        reason = f"{device.id}: not used by JAX: {device.reason or 'the reason is not known'}"
        yield from wrap(reason, width=width, indent="    ", first="  ")
        if device.hint:
            yield f"    {safe(device.hint)}"


def _facts(device: Device, reading: DeviceReading | None) -> Iterator[tuple[str, str]]:
    facts = []
    if device.core_count is not None:
        facts.append(f"{device.core_count:g} {'core' if device.core_count == 1 else 'cores'}")
    if device.compute_capability:
        facts.append(f"compute capability {device.compute_capability}")
    if device.process:
        facts.append(f"process {device.process}")
    if device.uuid:
        facts.append(device.uuid)
    if device.pci_bus_id:
        facts.append(f"PCI {device.pci_bus_id}")
    if reading is not None and reading.load_average is not None:
        facts.append(f"load {reading.load_average:.2f}")
    if facts:
        yield "", ", ".join(facts)
    if reading is None:
        return
    if reading.core_utilisation and len(reading.core_utilisation) > 1:
        yield "use of each core ", " ".join(f"{share * 100:.0f}" for share in reading.core_utilisation) + " %"
    if reading.throttle_reasons:
        yield "held back by ", ", ".join(reading.throttle_reasons)
    for process in reading.processes:
        yield "used by ", process_text(process)


def process_text(process: Mapping[str, Scalar | None]) -> str:
    """`python of alice (pid 4711), 12.0 GiB`, as far as it is known."""
    name, user, memory = process.get("name"), process.get("user"), process.get("memory_bytes")
    who = f"{name or 'a process'}{f' of {user}' if user else ''} (pid {process.get('pid')})"
    return f"{who}, {units.bytes_(memory)}" if isinstance(memory, int | float) else who


_DEVICES: Final[tuple[Column[ListedDevice], ...]] = (
    Column("id", "device", at("device.id"), widest=9),
    *(Column(key, value=at(f"device.{key}")) for key in ("platform", "kind", "process")),
    Column("", "kind", lambda row: row.device.kind or row.device.platform, gives_way=True),
    Column("", "use", at("reading.utilisation"), units.percent),
    Column("memory_used_bytes"),
    Column("memory_limit_bytes"),
    Column("", "memory", lambda row: memory_text(row.memory_used_bytes, row.memory_limit_bytes), widest=20),
    Column("", "power", _power, right=True, widest=11),
    Column("", "temp", at("reading.temperature_celsius"), lambda t: units.UNKNOWN if t is None else f"{t:.0f} °C"),
    Column("", "clock", at("reading.clock_hertz"), lambda rate: units.scaled(rate, "Hz")),
    *(Column(key, value=at(f"device.{key}")) for key in ("allocator_limit_bytes", "core_count", "compute_capability")),
    *(Column(key, value=at(f"device.{key}")) for key in ("uuid", "pci_bus_id", "used_by_jax")),
    Column("reason", value=lambda row: row.device.reason or None),
    Column("mend", value=lambda row: row.device.hint or None),
    *(Column(f"reading.{key}") for key in _READING_KEYS),
)
