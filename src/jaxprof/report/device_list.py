"""Render the list of devices for `jaxprof devices`, as plain text of 80 columns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from jaxprof.base import units
from jaxprof.base.text import safe
from jaxprof.events import Scalar
from jaxprof.facts import at
from jaxprof.facts.devices import DEVICES, ListedDevice
from jaxprof.report.renderers import WIDTH, Table, text_lines, wrap


def devices_text(rows: Sequence[ListedDevice]) -> Iterator[str]:
    """Yield a table of all devices, then what does not fit in it. Only a command may be wider than the page: it is
    never broken, so that it can be copied."""
    yield from text_lines(Table(DEVICES, rows), indent="", width=WIDTH)
    for row in rows:
        device, reading = row.device, row.reading
        about = [show(value) for read, show in _ABOUT if (value := read(row)) is not None]
        sentences = [", ".join(about)] if about else []
        if reading is not None:
            if reading.core_utilisation and len(reading.core_utilisation) > 1:
                shares = " ".join(f"{share * 100:.0f}" for share in reading.core_utilisation)
                sentences.append(f"use of each core {shares} %")
            if reading.throttle_reasons:
                sentences.append(f"held back by {', '.join(reading.throttle_reasons)}")
            sentences += [f"used by {process_text(process)}" for process in reading.processes]
        if device.used_by_jax is False:
            sentences.append(f"not used by JAX: {device.reason or 'the reason is not known'}")
        for sentence in sentences:
            yield from wrap(f"{device.id}: {sentence}", hang=2)
        if device.used_by_jax is False and device.hint:
            yield f"    {safe(device.hint)}"


_ABOUT: tuple[tuple[Callable[[ListedDevice], Any], Callable[[Any], str]], ...] = (
    (at("device.core_count"), lambda count: f"{count:g} {'core' if count == 1 else 'cores'}"),
    (at("device.compute_capability"), "compute capability {}".format),
    (lambda row: row.device.process or None, "process {}".format),
    (at("device.uuid"), str),
    (at("device.pci_bus_id"), "PCI {}".format),
    (at("reading.load_average"), "load {:.2f}".format),
)
"""What is said of a device below the table, as far as it is known."""


def process_text(process: Mapping[str, Scalar | None]) -> str:
    """Return a process that uses a device, `python of alice (pid 4711), 12.0 GiB`, as far as it is known."""
    name, user, memory = process.get("name"), process.get("user"), process.get("memory_bytes")
    who = f"{name or 'a process'}{f' of {user}' if user else ''} (pid {process.get('pid')})"
    return f"{who}, {units.bytes_(memory)}" if isinstance(memory, int | float) else who
