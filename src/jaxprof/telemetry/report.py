"""The list of devices as JSON and as plain text of 80 columns, for `jaxprof devices`."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from jaxprof import units
from jaxprof.events import DeviceReading, Scalar
from jaxprof.safe_text import columns, safe, shorten
from jaxprof.telemetry.devices import Device

SCHEMA = "jaxprof-devices/1"
WIDTH = 80

_HEADINGS = ("device", "kind", "use", "memory", "power", "temp", "clock")
_LIMITS = (9, 22, 6, 20, 11, 6, 9)
_RIGHT = {2, 4, 5, 6}
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


def devices_report(devices: Sequence[Device], readings: Sequence[DeviceReading] = ()) -> dict[str, Any]:
    """JSON-ready: `{"schema", "devices": [{"id", "platform", ..., "reading": {...} | null}]}`.

    Sizes in bytes, shares in 0..1, the rest in the unit of its name; null is unknown, or does not apply.
    `used_by_jax` is null where JAX was not asked.
    """
    by_device = {reading.device: reading for reading in readings}
    return {"schema": SCHEMA, "devices": [_entry(device, by_device.get(device.id)) for device in devices]}


def devices_text(devices: Sequence[Device], readings: Sequence[DeviceReading] = (), width: int = WIDTH) -> list[str]:
    """Lines: a table of all devices, then what the table has no room for. At most `width` columns.

    Only a command is never broken, so that it can be copied; it may be wider.
    """
    by_device = {reading.device: reading for reading in readings}
    rows = [_HEADINGS, *(_row(device, by_device.get(device.id)) for device in devices)]
    lines = _table(rows, width)
    for device in devices:
        lines += _details(device, by_device.get(device.id), width)
    return lines


def _entry(device: Device, reading: DeviceReading | None) -> dict[str, Any]:
    return {
        "id": device.id,
        "platform": device.platform,
        "kind": device.kind,
        "process": device.process,
        "memory_used_bytes": _memory(device, reading)[0],
        "memory_limit_bytes": _memory(device, reading)[1],
        "allocator_limit_bytes": device.allocator_limit_bytes,
        "core_count": device.core_count,
        "compute_capability": device.compute_capability,
        "uuid": device.uuid,
        "pci_bus_id": device.pci_bus_id,
        "used_by_jax": device.used_by_jax,
        "reason": device.reason or None,
        "mend": device.mend or None,
        "reading": None if reading is None else {key: getattr(reading, key) for key in _READING_KEYS},
    }


def _row(device: Device, reading: DeviceReading | None) -> tuple[str, ...]:
    used, limit = _memory(device, reading)
    return (
        device.id,
        device.kind or device.platform,
        units.percent(reading.utilisation) if reading else units.UNKNOWN,
        memory_text(used, limit),
        _of(reading.power_watts, reading.power_limit_watts, "W") if reading else units.UNKNOWN,
        units.UNKNOWN
        if reading is None or reading.temperature_celsius is None
        else f"{reading.temperature_celsius:.0f} °C",
        units.scaled(reading.clock_hertz, "Hz") if reading else units.UNKNOWN,
    )


def memory_text(used: float | None, limit: float | None) -> str:
    """`98.2 / 139.8 GiB` in the unit of the limit; a dash for what is unknown."""
    if limit is None or used is None:
        return (
            f"{units.bytes_(used)} / {units.bytes_(limit)}" if limit is not None or used is not None else units.UNKNOWN
        )
    whole = units.bytes_(limit)
    scale = 1024 ** ("B", "KiB", "MiB", "GiB", "TiB", "PiB").index(whole.rpartition(" ")[2])
    return f"{used / scale:.1f} / {limit / scale:.1f} {whole.rpartition(' ')[2]}"


def _details(device: Device, reading: DeviceReading | None, width: int) -> Iterator[str]:
    for label, text in _facts(device, reading):
        yield from _wrap(f"{device.id}: {label}{text}", width)
    if device.used_by_jax is False:
        yield from _wrap(f"{device.id}: not used by JAX: {device.reason or 'the reason is not known'}", width)
        if device.mend:
            yield f"    {safe(device.mend)}"


def _facts(device: Device, reading: DeviceReading | None) -> Iterator[tuple[str, str]]:
    told = []
    if device.core_count is not None:
        told.append(f"{device.core_count:g} {'core' if device.core_count == 1 else 'cores'}")
    if device.compute_capability:
        told.append(f"compute capability {device.compute_capability}")
    if device.process:
        told.append(f"process {device.process}")
    if device.uuid:
        told.append(device.uuid)
    if device.pci_bus_id:
        told.append(f"PCI {device.pci_bus_id}")
    if reading is not None and reading.load_average is not None:
        told.append(f"load {reading.load_average:.2f}")
    if told:
        yield "", ", ".join(told)
    if reading is None:
        return
    if reading.core_utilisation and len(reading.core_utilisation) > 1:
        yield "use of each core ", " ".join(f"{share * 100:.0f}" for share in reading.core_utilisation) + " %"
    if reading.throttle_reasons:
        yield "held back by ", ", ".join(reading.throttle_reasons)
    for process in reading.processes:
        yield "used by ", process_text(process)


def process_text(process: Mapping[str, Scalar | None]) -> str:
    """`python of alice (pid 4711), 12.0 GiB`, with what is known of it."""
    name, user, memory = process.get("name"), process.get("user"), process.get("memory_bytes")
    who = f"{name or 'a process'}{f' of {user}' if user else ''} (pid {process.get('pid')})"
    return f"{who}, {units.bytes_(memory)}" if isinstance(memory, int | float) else who


def _memory(device: Device, reading: DeviceReading | None) -> tuple[int | None, int | None]:
    """Of now where it was read, else as of the listing."""
    used = reading.memory_used_bytes if reading is not None else None
    limit = reading.memory_limit_bytes if reading is not None else None
    return (
        used if used is not None else device.memory_used_bytes,
        limit if limit is not None else device.memory_limit_bytes,
    )


def _of(value: float | None, limit: float | None, unit: str) -> str:
    if value is None:
        return units.UNKNOWN
    return f"{value:.0f} {unit}" if limit is None else f"{value:.0f}/{limit:.0f} {unit}"


def _table(rows: Sequence[Sequence[str]], width: int) -> list[str]:
    """Columns aligned by what a terminal shows. One that says nothing of any device is left out; the kind gives way."""
    limits = list(_LIMITS)
    shown = [at for at in range(len(_HEADINGS)) if any(row[at] != units.UNKNOWN for row in rows[1:])]
    cells = [[shorten(row[at], limits[at]) for at in shown] for row in rows]
    widths = [max(columns(row[place]) for row in cells) for place in range(len(shown))]
    spare = width - sum(widths) - 2 * (len(widths) - 1)
    kind = shown.index(1) if 1 in shown else None
    if kind is not None:
        wanted = max(columns(safe(row[1])) for row in rows)
        widths[kind] = max(4, min(wanted, widths[kind] + spare))
        for row, line in zip(rows, cells, strict=True):
            line[kind] = shorten(row[1], widths[kind])
    lines = []
    for line in cells:
        padded = [
            " " * (widths[place] - columns(cell)) + cell
            if shown[place] in _RIGHT
            else cell + " " * (widths[place] - columns(cell))
            for place, cell in enumerate(line)
        ]
        lines.append("  ".join(padded).rstrip())
    return lines


def _wrap(text: str, width: int) -> list[str]:
    return textwrap.wrap(
        safe(text),
        width,
        initial_indent="  ",
        subsequent_indent="    ",
        break_long_words=False,
        break_on_hyphens=False,
    )
