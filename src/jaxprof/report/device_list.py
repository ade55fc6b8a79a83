"""Render the list of devices for `jaxprof devices`, as plain text of 80 columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from jaxprof.base import units
from jaxprof.base.text import safe
from jaxprof.facts.devices import DEVICES, ListedDevice, title_of, unused_groups
from jaxprof.report.renderers import WIDTH, Table, text_lines, wrap


def devices_text(rows: Sequence[ListedDevice], driver: str | None = None) -> Iterator[str]:
    """Yield a table of all devices, the processes that use them, and what JAX does not use, each reason once. Only a
    command may be wider than the page: it is never broken, so that it can be copied."""
    devices = [row.device for row in rows]
    if title := title_of(devices, driver):
        yield title
    yield from text_lines(Table(DEVICES, rows), indent="", width=WIDTH)
    for row in rows:
        reading = row.reading
        about = [f"load {reading.load_average:.2f}"] if reading is not None and reading.load_average is not None else []
        if reading is not None and len(reading.core_utilisation) > 1:
            busy = " ".join(f"{share * 100:.0f}" for share in reading.core_utilisation)
            about.append(f"use of each core {busy} %")
        if about:
            yield from wrap(f"{row.device.id}: {', '.join(about)}", hang=2)
    for who, used in _processes(rows).items():
        yield from wrap(f"{who}: {', '.join(used)}", hang=2)
    for device in devices:
        if device.fault:
            yield from wrap(f"{device.id}: LOST, {device.fault}. {device.hint}", hang=2)
    for (reason, hint), unused in unused_groups(devices).items():
        yield from wrap(f"not used by JAX: {', '.join(device.id for device in unused)}: {reason}", hang=2)
        if hint:
            yield f"    {safe(hint)}"


def _processes(rows: Sequence[ListedDevice]) -> dict[str, list[str]]:
    """Return for each process, with its user, the devices that it uses and its memory there."""
    used: dict[str, list[str]] = {}
    for row in rows:
        for process in row.reading.processes if row.reading is not None else ():
            name, user, memory = process.get("name"), process.get("user"), process.get("memory_bytes")
            who = f"{name or 'a process'}{f' of {user}' if user else ''} (pid {process.get('pid')})"
            held = f" {units.bytes_(memory)}" if isinstance(memory, int | float) else ""
            used.setdefault(who, []).append(f"{row.device.id}{held}")
    return used
