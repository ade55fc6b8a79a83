"""The kernels of a module as rows: which of them, in which order, as text. A large module is printed as it is read: its
first page does not wait for its last kernel."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import chain, islice
from typing import TYPE_CHECKING, Final

from jaxprof.analysis.ranking import KernelCeilings, Ranked, Ranking, everything, ordered
from jaxprof.facts import Fact
from jaxprof.hlo.analysis.kernels import kernels, stream
from jaxprof.hlo.analysis.notices import NOT_OPTIMISED, notices, outline
from jaxprof.report.kernels import COLUMNS, likeness
from jaxprof.report.renderers import text_lines
from jaxprof.report.table import Table
from jaxprof.text import safe
from jaxprof.units import counted, integer, percent

if TYPE_CHECKING:
    from jaxprof.devices.targets import Machine
    from jaxprof.hlo.analysis.cost.peaks import DevicePeaks
    from jaxprof.hlo.analysis.notices import Notice
    from jaxprof.hlo.model import Module

LARGE: Final = 16 << 20
"""Characters of a text from which on its kernels are printed as they are read, with the notices last."""
SHOWN: Final = ("name", "kind", "inside", "times", "flops", "bytes", "least", "bound", "sources", "op_name")
"""The columns of the text."""


@dataclass(frozen=True, slots=True)
class KernelOptions:
    """Which kernels are listed."""

    sort: str = ""
    """One of `SORTABLE`. Empty: the order of execution, or the greatest share first if there is a `top`."""
    top: int | None = None

    @property
    def column(self) -> str:
        """The sort column."""
        return self.sort or ("share" if self.top is not None else "order")


def rows_of(
    module: Module, machine: Machine | None, choice: KernelOptions = KernelOptions(), *, keep: bool = False
) -> Iterator[Ranked]:
    """The rows that were chosen. In the order of execution of a large module each comes as soon as its kernel was read,
    without its share of them all, and is not kept unless others need the kernels, too."""
    over = None
    if machine is not None:
        from jaxprof.devices.targets import exchanges

        over = exchanges(module, machine)
    if choice.column == "order" and len(module.text) > LARGE:
        ceilings = KernelCeilings(machine, over)
        return islice(
            (ceilings.row(number, kernel) for number, kernel in enumerate(stream(module, keep=keep))), choice.top
        )
    ranking = Ranking(kernels(module), machine, over=over)
    return ranking.rows(ordered(ranking, everything(ranking), choice.column)[: choice.top])


def kernel_lines(module: Module, machine: Machine | None, choice: KernelOptions = KernelOptions()) -> Iterator[str]:
    """A line per kernel, with its least time if the ceilings of the device are known."""
    # First: reading the kernels finds the gaps, so that the notices need no scan of the text.
    rows = rows_of(module, machine, choice)
    first_notices = outline(module) if len(module.text) > LARGE else notices(module)
    yield from _notice_lines(first_notices)
    if first_notices:
        yield ""
    first = next(rows, None)
    if first is None:
        yield "no kernels" + (" in what was read" if any(notice.serious for notice in notices(module)) else "")
        return
    heading = "kernel" if all(notice.code != NOT_OPTIMISED for notice in first_notices) else "operation"
    shown = SHOWN if machine is not None else [name for name in SHOWN if name not in ("least", "bound")]
    columns: list[Fact[Ranked]] = [COLUMNS[name] for name in shown]
    columns[0] = replace(columns[0], title=heading)
    yield from text_lines(Table(columns, _each_once(chain((first,), rows)), alike=likeness), indent="")
    if choice.top is not None:
        yield from _of_how_many(module, machine, choice)
    if machine is not None:
        yield from ("", safe(ceilings_note(machine.device)))
    later = [notice for notice in notices(module) if notice not in first_notices] if choice.top is None else []
    if later:
        yield from ("", *_notice_lines(later))


def ceilings_note(device: DevicePeaks) -> str:
    """What the least times of kernels rest on."""
    cached = "" if device.vendor == "Google" else "; what stays in a cache takes less"
    return f"least: every byte from main memory, at the ceilings of {device.title} ({device.source}){cached}"


def _notice_lines(listed: tuple[Notice, ...] | list[Notice]) -> Iterator[str]:
    return (safe(str(notice)) for notice in listed)


def _of_how_many(module: Module, machine: Machine | None, choice: KernelOptions) -> Iterator[str]:
    every = kernels(module)
    shown = [row.kernel for row in rows_of(module, machine, choice)]
    if len(shown) < len(every):
        moved = sum(kernel.total_bytes or 0.0 for kernel in every)
        share = sum(kernel.total_bytes or 0.0 for kernel in shown) / moved if moved else None
        yield ""
        yield f"{integer(len(shown))} of {counted(len(every), 'kernel')}, with {percent(share)} of the bytes"


def _each_once(rows: Iterator[Ranked]) -> Iterator[Ranked]:
    """Releases each row once it is printed."""
    for row in rows:
        yield row
        row.kernel.release()
