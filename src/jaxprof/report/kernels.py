"""Columns of the kernels of a module for people, shared by the screen, text and sorting; and their list as text.

Columns add up a kernel's executions in one call, and tables are sorted by that; the facts for programs are those of
one execution (`docs/json.md`). A large module is printed while it is read, so that the first page does not wait for the
last kernel.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING

from jaxprof.analysis.kernels import MeasuredKernel
from jaxprof.analysis.kernels.ranking import LARGE, KernelGroup, KernelOptions, Ranked, release_each, rows_of
from jaxprof.base.text import safe
from jaxprof.base.units import UNKNOWN, bytes_, counted, integer, percent, scaled, seconds
from jaxprof.facts import Fact, column
from jaxprof.facts.kernels import KERNELS, KernelRow, lines_text
from jaxprof.facts.units import plain
from jaxprof.hlo.kernels.kernels import kernels
from jaxprof.hlo.kernels.notices import NOT_OPTIMISED, Notice, notices, outline
from jaxprof.hlo.text.model import Module
from jaxprof.report import Table, join_tables, text_lines

if TYPE_CHECKING:
    from jaxprof.devices.absent import Machine
    from jaxprof.hlo.kernels.cost.peaks import DevicePeaks


def times(row: Ranked) -> str:
    """Return how often a kernel runs: `12`; `≤ 12` in a branch; a dash if unknown."""
    count = row.kernel.count
    if count is None:
        return UNKNOWN
    return f"≤ {integer(count)}" if row.kernel.conditional else integer(count)


def _form(row: Ranked) -> Hashable:
    """Return what the figures of a kernel depend on, if it was not measured."""
    kernel = row.kernel
    return kernel.likeness, kernel.count, kernel.conditional, row.least_once, row.bound


def _origin(row: Ranked) -> Hashable:
    return row.kernel.read_origins()


COLUMNS: dict[str, Fact[Ranked]] = {
    "share": column("share", lambda row: KernelRow(row.kernel.name, row, row.measured).share, percent, right=True),
    "measured": column("time", "measured_seconds", seconds),
    "flops_per_second": column("FLOP/s", "measured.flops_per_second", scaled, right=True),
    "bytes_per_second": column("B/s", "measured.bytes_per_second", scaled, right=True),
    "least": column("least", "least_seconds", seconds, by=_form),
    "name": column("kernel", "kernel.name", widest=40),
    "kind": column("kind", "kernel.kind", by=_form),
    "inside": column("inside", "kernel.instructions", integer, by=_form),
    "times": column("times", times, right=True, by=_form),
    "flops": column("FLOPs", "kernel.total_flops", scaled, by=_form),
    "bytes": column("bytes", "kernel.total_bytes", bytes_, by=_form),
    "intensity": column("FLOP/B", "kernel.intensity", scaled),
    "bound": column("bound", "bound", by=_form),
    "source": column("source", "source"),
    "sources": column("source", "kernel.sources", lines_text, right=False, widest=28, by=_origin),
    "op_name": column("op name", "kernel.op_name", plain, widest=60, by=_origin),
    "order": column("order", "number"),
}
"""Columns of kernels, by the names that `--sort` and the keys of the screen use. `order` is the order of execution."""


SUMMED = frozenset({"measured", "least", "flops", "bytes"})
"""Columns whose figures can be added up."""


def total_text(name: str, group: KernelGroup) -> str:
    """Return the total of a column over a group of kernels; an empty text for figures that cannot be added up."""
    return COLUMNS[name].shown(group.total(name)) if name in SUMMED else ""


def kernels_table(programs: Iterable[tuple[str, Iterable[KernelRow]]]) -> Table[tuple[str, KernelRow]]:
    """Return the kernels of labelled programs as one table for CSV, whose rows can be read once."""
    return join_tables("label", KERNELS, programs)


_MEASURED = ("share", "measured", "flops_per_second", "bytes_per_second")
SHOWN = ("name", "kind", "inside", "times", "flops", "bytes", *_MEASURED, "least", "bound", "sources", "op_name")


def kernel_lines(
    module: Module,
    machine: Machine | None,
    choice: KernelOptions = KernelOptions(),
    measured: Mapping[str, MeasuredKernel] | None = None,
) -> Iterator[str]:
    """Yield a line for each kernel, with its least time if ceilings are known, and what a capture measured."""
    rows = rows_of(module, machine, choice, measured=measured)
    listed = list(rows) if choice.top is not None else []
    rows = chain(listed, rows)
    first_notices = outline(module) if len(module.text) > LARGE else notices(module)
    yield from _notice_lines(first_notices)
    if first_notices:
        yield ""
    first = next(rows, None)
    if first is None:
        yield "no kernels" + (" in what was read" if any(notice.serious for notice in notices(module)) else "")
        return
    heading = "kernel" if all(notice.code != NOT_OPTIMISED for notice in first_notices) else "operation"
    unknown = {*(() if machine is not None else ("least", "bound")), *(() if measured else _MEASURED)}
    shown = [name for name in SHOWN if name not in unknown]
    columns: list[Fact[Ranked]] = [COLUMNS[name] for name in shown]
    columns[0] = replace(columns[0], title=heading)
    yield from text_lines(Table(columns, release_each(chain((first,), rows))), indent="")
    if choice.top is not None:
        every = kernels(module)
        if len(listed) < len(every):
            moved = sum(kernel.total_bytes or 0.0 for kernel in every)
            share = sum(row.kernel.total_bytes or 0.0 for row in listed) / moved if moved else None
            yield ""
            yield f"{integer(len(listed))} of {counted(len(every), 'kernel')}, with {percent(share)} of the bytes"
    if machine is not None:
        yield from ("", safe(ceilings_note(machine.device)))
    later = [notice for notice in notices(module) if notice not in first_notices] if choice.top is None else []
    if later:
        yield from ("", *_notice_lines(later))


def ceilings_note(device: DevicePeaks) -> str:
    cached = "" if device.vendor == "Google" else "; what stays in a cache takes less"
    return f"least: every byte from main memory, at the ceilings of {device.title} ({device.source}){cached}"


def _notice_lines(listed: tuple[Notice, ...] | list[Notice]) -> Iterator[str]:
    return (safe(str(notice)) for notice in listed)
