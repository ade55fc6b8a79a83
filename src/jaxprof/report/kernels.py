"""Columns and facts of the kernels of a module, shared by the screen, text, CSV, JSON and sorting.

Columns for people add up all executions of a kernel in one run, and tables are sorted by that; facts for programs are
those of one execution (`docs/json.md`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

from jaxprof.facts import Fact, at, column, within
from jaxprof.facts.kernels import NAME, RANKED
from jaxprof.facts.units import SECONDS, SHARE, plain
from jaxprof.report.table import Table, joined
from jaxprof.units import UNKNOWN, bytes_, integer, percent, scaled, seconds

if TYPE_CHECKING:
    from jaxprof.analysis.ranking import KernelGroup, Ranked
    from jaxprof.hlo.analysis.origin import HloSourceLocation


def times(row: Ranked) -> str:
    """Return how often a kernel runs: `12`; `≤ 12` in a branch; a dash if unknown."""
    count = row.kernel.count
    if count is None:
        return UNKNOWN
    return f"≤ {integer(count)}" if row.kernel.conditional else integer(count)


def places_text(places: Sequence[HloSourceLocation]) -> str:
    """Return all source lines in short, `model.py:88,90 layers.py:7`, files in the order of their first line; a dash
    for none."""
    if len(places) == 1:  # as most kernels of a large module have
        return f"{places[0].file.rpartition('/')[2]}:{places[0].line}"
    lines: dict[str, list[int]] = {}
    for place in places:
        lines.setdefault(place.file, []).append(place.line)
    words = (f"{file.rpartition('/')[2]}:{','.join(map(str, numbers))}" for file, numbers in lines.items())
    return " ".join(words) or UNKNOWN


COLUMNS: Final[dict[str, Fact[Ranked]]] = {
    "share": column("share", at("share"), percent),
    "measured": column("time", at("measured_seconds"), seconds),
    "least": column("least", at("least_seconds"), seconds),
    "name": column("kernel", at("kernel.name"), widest=40),
    "kind": column("kind", at("kernel.kind")),
    "inside": column("inside", at("kernel.instructions"), integer),
    "times": column("times", times, right=True),
    "flops": column("FLOPs", at("kernel.total_flops"), scaled),
    "bytes": column("bytes", at("kernel.total_bytes"), bytes_),
    "intensity": column("FLOP/B", at("kernel.intensity"), scaled),
    "bound": column("bound", at("bound")),
    "source": column("source", at("source")),
    "sources": column("source", at("kernel.sources"), places_text, right=False, widest=28),
    "op_name": column("op name", at("kernel.op_name"), plain, widest=60),
    "order": column("order", at("number")),
}
"""Columns of kernels, by the names that `--sort` and the keys of the screen use."""
SORTABLE: Final = (
    "order", "share", "measured", "least", "bytes", "flops", "times", "inside", "intensity", "name", "kind", "bound",
    "source",
)  # fmt: skip
"""Names of the columns that kernels can be sorted by; `order` is the order of execution."""
_ADDED_UP: Final = frozenset({"measured", "least", "flops", "bytes"})


def total_text(name: str, group: KernelGroup) -> str:
    """Return the total of a column over a group of kernels; an empty text for figures that cannot be added up."""
    return COLUMNS[name].shown(group.total(name)) if name in _ADDED_UP else ""


KERNEL: Final[tuple[Fact[Ranked], ...]] = (
    *within(at("kernel"), (NAME,)),
    *RANKED,
    Fact("measured_seconds", SECONDS, "Measured time of all its executions in one call"),
    Fact("share", SHARE, "Share of the weight of all kernels, in 0..1: of measured time, least time or bytes"),
)
"""Facts of a kernel in JSON and CSV, for one execution except for the last two."""


def likeness(row: Ranked) -> tuple[object, ...] | None:
    """Return a key that is equal for rows that differ only in their names. None if a row has figures of its own: a
    collective its links, a fusion its source lines, a ranked kernel its share."""
    kernel = row.kernel
    if row.over is not None or row.weight is not None or kernel.opcode == "fusion":
        return None
    return (
        kernel.likeness, kernel.computation, kernel.count, kernel.conditional, kernel.attributes_text, kernel.launches
    )  # fmt: skip


def kernels_table(programs: Iterable[tuple[str, Iterable[Ranked]]]) -> Table[tuple[str, Ranked]]:
    """Return the kernels of labelled programs as one table for CSV, whose rows can be read once."""
    return joined("program", KERNEL, ((label, released(rows)) for label, rows in programs))


def released(rows: Iterable[Ranked]) -> Iterator[Ranked]:
    """Yield the rows, and release the kernel of each once the next one is requested."""
    for row in rows:
        yield row
        row.kernel.release()
