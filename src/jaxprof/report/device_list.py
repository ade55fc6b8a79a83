"""Render devices: their list as plain text of 80 columns, and one of them as a report."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from operator import itemgetter

from jaxprof.base import units
from jaxprof.base.grouping import grouped
from jaxprof.base.text import safe
from jaxprof.devices import Wiring
from jaxprof.events import DeviceReading
from jaxprof.facts import column
from jaxprof.facts.devices import DEVICES, PROCESSES, ListedDevice, memory_text, state_words, title_of, unused_groups
from jaxprof.report import WIDTH, Headline, Piece, Prose, Table, text_lines, wrap


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
    used_by: dict[str, list[str]] = {}
    for row in rows:
        for process in row.reading.processes if row.reading is not None else ():
            name, user, memory = process.get("name"), process.get("user"), process.get("memory_bytes")
            who = f"{name or 'a process'}{f' of {user}' if user else ''} (pid {process.get('pid')})"
            held = f" {units.bytes_(memory)}" if isinstance(memory, int | float) else ""
            used_by.setdefault(who, []).append(f"{row.device.id}{held}")
    for who, used in used_by.items():
        yield from wrap(f"{who}: {', '.join(used)}", hang=2)
    for device in devices:
        if device.fault:
            yield from wrap(f"{device.id}: LOST, {device.fault}. {device.hint}", hang=2)
    for (reason, hint), unused in unused_groups(devices).items():
        yield from wrap(f"not used by JAX: {', '.join(device.id for device in unused)}: {reason}", hang=2)
        if hint:
            yield f"    {safe(hint)}"


def device_pieces(row: ListedDevice) -> Iterator[Piece]:
    """Yield all that is known of one device: its state, who uses it, its clocks, links and ways to the other GPUs."""
    device, reading, wiring = row.device, row.reading or DeviceReading(device=row.device.id), row.wiring or Wiring()
    names = [f"GPU {device.machine_index}" if device.machine_index else "", device.id, device.kind or device.platform]
    yield Headline(" · ".join(filter(None, names)))
    notes = [text for text, severity in state_words(device, row.reading, time.monotonic()) if severity != "note"]
    if notes:
        yield Prose(", ".join(notes))
    if device.used_by_jax is False:
        if not device.fault:  # which is the reason, and stands above
            yield Prose(f"not used by JAX: {device.reason or 'the reason is not known'}", hang=2)
        if device.hint:
            yield f"    {safe(device.hint)}"  # a command is never broken, so that it can be copied
    if reading.processes:
        yield ""
        yield Table(PROCESSES, reading.processes)
    elif row.reading is not None and device.nvml_key is not None and not device.fault:
        # Inside a container NVML lists none of the processes outside, nor any for a user who may not ask.
        yield from ("", Prose("The driver lists no process that uses it; those outside a container may not show."))
    yield ""
    lines = {
        "use": units.percent(reading.utilisation),
        "memory": memory_text(row.memory_used_bytes, row.memory_limit_bytes),
        "power": _now_and_most(reading.power_watts, reading.power_limit_watts, 1, "W", 0),
        "temperature": f"{reading.temperature_celsius:.0f} °C" if reading.temperature_celsius is not None else "",
        "clock": _now_and_most(reading.clock_hertz, reading.clock_limit_hertz, 1e9, "GHz", 2),
        "held back by": ", ".join(reading.throttle_reasons),
        "memory clock": _now_and_most(wiring.memory_clock_hertz, wiring.memory_clock_limit_hertz, 1e9, "GHz", 2),
        "state": f"P{wiring.performance_state}" if wiring.performance_state is not None else "",
        "ECC errors": units.integer(reading.ecc_errors),
        "Xids since boot": ", ".join(map(str, device.xids)),
        "PCIe": _pcie(wiring),
        "NVLink": _nvlinks(wiring),
        "NUMA node": units.integer(wiring.numa_node),
        "address": device.pci_bus_id or "",
        "UUID": device.uuid or "",
    }
    known = [(name, text) for name, text in lines.items() if text not in ("", units.UNKNOWN)]
    yield Table((column("", itemgetter(0)), column("", itemgetter(1))), known)
    if ways := grouped((connection.over, connection.gpu) for connection in wiring.connections):
        yield ""
        meanings = {over: _BETWEEN.get(over) or units.counted(int(over[2:]), "NVLink") for over in ways}  # NV18
        to = (column("to GPU", lambda way: ", ".join(way[1])), column("over", itemgetter(0)))
        yield Table((*to, column("", lambda way: meanings[way[0]])), list(ways.items()))


def _now_and_most(now: float | None, most: float | None, scale: float, unit: str, digits: int) -> str:
    if now is None:
        return ""
    limit = f" of {most / scale:.{digits}f}" if most is not None else ""
    return f"{now / scale:.{digits}f}{limit} {unit}"


def _pcie(wiring: Wiring) -> str:
    """Return `generation 4 of 5, 16 of 16 lanes, 3 packets sent again`; empty if it is not known."""
    if wiring.pcie_generation is None or wiring.pcie_lanes is None:
        return ""
    text = (
        f"generation {wiring.pcie_generation} of {wiring.pcie_generation_limit or units.UNKNOWN}, "
        f"{wiring.pcie_lanes} of {wiring.pcie_lanes_limit or units.UNKNOWN} lanes"
    )
    return f"{text}, {units.counted(wiring.pcie_replays, 'packet')} sent again" if wiring.pcie_replays else text


def _nvlinks(wiring: Wiring) -> str:
    """Return `17 of 18 up, 17 to a switch`; empty for a GPU without them."""
    every = wiring.nvlinks_up + wiring.nvlinks_down
    if not every:
        return ""
    text = f"{wiring.nvlinks_up} of {every} up"
    return f"{text}, {wiring.nvlinks_to_switch} to a switch" if wiring.nvlinks_to_switch else text


_BETWEEN = {
    "PIX": "one PCIe switch",
    "PXB": "several PCIe switches",
    "PHB": "the CPU's PCIe bridge",
    "NODE": "PCIe bridges of one NUMA node",
    "SYS": "the link between CPUs",
}
