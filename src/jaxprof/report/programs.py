"""Programs as text and as data: kernels with their roofline, findings, barriers, a kernel's tree, a table of devices.

Least times come from ceilings and are called estimates: nothing here was measured.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from jaxprof.hlo.analysis import (
    Device,
    Kernel,
    barriers,
    collectives,
    findings,
    instruction_of,
    kernels,
    least_seconds,
    roofline,
    text_tree,
    totals,
    tree,
)
from jaxprof.report.table import table
from jaxprof.safe_text import safe
from jaxprof.units import UNKNOWN, bytes_, integer, scaled, seconds

if TYPE_CHECKING:
    from jaxprof.hlo.model import Module
    from jaxprof.session import Run


def kernels_text(module: Module, device: Device | None) -> list[str]:
    """A line a kernel, with the least time that it could take where the device's ceilings are known."""
    rows = [("kernel", "kind", "inside", "times", "FLOPs", "bytes", "least", "bound", "source", "op name")]
    for kernel in kernels(module):
        found = roofline(kernel, device) if device is not None else None
        place = kernel.source
        rows.append(
            (
                kernel.name,
                kernel.kind,
                str(kernel.instructions),
                integer(kernel.count),
                scaled(kernel.flops),
                bytes_(kernel.bytes),
                seconds(found.least_seconds) if found is not None else UNKNOWN,
                found.bound if found is not None else UNKNOWN,
                f"{place.file.rpartition('/')[2]}:{place.line}" if place is not None else UNKNOWN,
                kernel.op_name or UNKNOWN,
            )
        )
    lines = table(rows, right=(2, 3, 4, 5, 6), indent="", widest=(40, 0, 0, 0, 0, 0, 0, 0, 28, 60))
    if device is not None:
        lines += ["", safe(f"least: an estimate from the ceilings of {device.title} ({device.source})")]
    return lines


def findings_text(module: Module) -> list[str]:
    """Each finding with its advice and where it is."""
    lines: list[str] = []
    for found in findings(module):
        where = ", ".join(found.where[:5]) + (f" and {len(found.where) - 5} more" if len(found.where) > 5 else "")
        size = f"  ({bytes_(found.bytes)})" if found.bytes else ""
        lines += [
            safe(f"{found.code}: {found.message}{size}"),
            safe(f"    {found.advice}"),
            safe(f"    at {where}"),
            "",
        ]
    return lines or ["no findings"]


def barriers_text(module: Module) -> list[str]:
    """A line for each pair of kernels that share an array and are not one, the most bytes first."""
    rows = [("bytes", "producer", "consumer", "why not fused")]
    rows += [(bytes_(one.bytes), one.producer, one.consumer, one.words) for one in barriers(module)]
    return table(rows, right=(0,), indent="", widest=(0, 40, 40, 0)) if len(rows) > 1 else ["no barriers"]


def tree_text(module: Module, kernel: Kernel) -> list[str]:
    """What is inside a kernel, from its root to its parameters."""
    return [safe(line) for line in text_tree(tree(instruction_of(module, kernel)))]


def devices_table(rows: Sequence[tuple[str, Module, Device, Run | None]]) -> list[str]:
    """One line a device that was compiled for: kernels, FLOPs, bytes, least time, memory. Estimates, all of it."""
    cells = [("device", "kernels", "FLOPs", "bytes", "least time", "memory", "")]
    for label, module, device, run in rows:
        found = totals(module)
        exchange = collective_seconds(module, device, devices_per_host(run))
        least = least_seconds(kernels(module), device)
        needed = memory_needed(run)
        cells.append(
            (
                label,
                str(len(kernels(module))),
                scaled(found.cost.flops),
                bytes_(found.bytes_read + found.bytes_written),
                seconds(None if least is None else least + (exchange or 0.0)),
                f"{bytes_(needed)} of {bytes_(device.memory_bytes)}",
                "" if needed is None or needed <= device.memory_bytes else "does not fit",
            )
        )
    note = "Estimates: compiled for devices that are not here, with the ceilings of their vendors' documents."
    return [*table(cells, right=(1, 2, 3, 4), indent=""), "", note]


def devices_per_host(run: Run | None) -> int | None:
    """Of a program that was compiled for devices elsewhere: how many share a host; None where it is not said."""
    from jaxprof.errors import JaxprofError
    from jaxprof.targets import parse_target

    if run is None or run.plan.how != "compile":
        return None
    try:
        target = parse_target(run.plan.device)
    except JaxprofError:
        return None
    return target.shape[0] if target.chip.vendor == "nvidia" else None


def memory_needed(run: Run | None) -> int | None:
    """What the compiled program needs on one device: XLA's peak, or the sum of its parts; None where it is not told."""
    memory = run.memory if run is not None else None
    if memory is None:
        return None
    if memory.peak_bytes:
        return memory.peak_bytes
    parts = (memory.argument_bytes, memory.output_bytes, memory.temporary_bytes)
    known = [part for part in parts if part is not None]
    return sum(known) - (memory.alias_bytes or 0) if known else None


def collective_seconds(module: Module, device: Device, per_host: int | None = None) -> float | None:
    """The least time of all collectives over the links, one after the other; None where none is known."""
    found = collectives(module)
    times = [
        least * (one.kernel.count or 1) for one in found if (least := one.least_seconds(device, per_host)) is not None
    ]
    return sum(times) if times or not found else None


def collectives_text(module: Module, device: Device, per_host: int | None = None) -> list[str]:
    """Each collective with its bytes, the devices that take part, and its least time over the links."""
    rows = [("collective", "opcode", "devices", "bytes", "least", "over")]
    rows += [
        (
            one.kernel.name,
            one.opcode,
            integer(one.group_size),
            bytes_(one.bytes),
            seconds(one.least_seconds(device, per_host)),
            one.link(device, per_host)[1] or UNKNOWN,
        )
        for one in collectives(module)
    ]
    return table(rows, right=(2, 3, 4), indent="") if len(rows) > 1 else []


def program_json(module: Module, device: Device | None, run: Run | None, *, elsewhere: bool) -> dict[str, Any]:
    """The documented keys of one program (`docs/json.md`)."""
    from jaxprof.report.hlo import module_json

    data = module_json(module)
    if device is not None:
        per_host = devices_per_host(run)
        for row, kernel in zip(data["kernels"], kernels(module), strict=True):
            found = roofline(kernel, device)
            row["bound"], row["least_seconds"] = found.bound, found.least_seconds
        data["device"] = {
            "name": device.name,
            "estimate": elsewhere,
            "memory_bytes": device.memory_bytes,
            "memory_needed_bytes": memory_needed(run),
            "least_seconds": least_seconds(kernels(module), device),
            "source": device.source,
        }
        data["collectives"] = [
            {
                "name": one.kernel.name,
                "opcode": one.opcode,
                "devices": one.group_size,
                "bytes": one.bytes,
                "least_seconds": one.least_seconds(device, per_host),
                "link": one.link(device, per_host)[1] or None,
            }
            for one in collectives(module)
        ]
    return data
