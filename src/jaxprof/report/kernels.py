"""The kernels of a module: the columns of their table, once for the screen, text, CSV and sorting, and their JSON.

Columns for people give all executions of a kernel in one run, which is what the tables are sorted by; facts for
programs give one execution (`docs/json.md`).
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
    """How often a kernel runs: `12`, `≤ 12` in a branch, a dash if unknown."""
    count = row.kernel.count
    return UNKNOWN if count is None else f"≤ {integer(count)}" if row.kernel.conditional else integer(count)


def places_text(places: Sequence[HloSourceLocation]) -> str:
    """All lines in few words, the files in order: `model.py:88,90 layers.py:7`; a dash for none."""
    if len(places) == 1:  # most of a million
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
"""By the names that `--sort` and the keys of the screen have for them."""
SORTABLE: Final = (
    "order", "share", "measured", "least", "bytes", "flops", "times", "inside", "intensity", "name", "kind", "bound",
    "source",
)  # fmt: skip
"""The columns to sort kernels by; `order` is the order of execution."""
_ADDED_UP: Final = frozenset({"measured", "least", "flops", "bytes"})


def total_text(name: str, group: KernelGroup) -> str:
    """What stands in a column for a group of kernels; empty where figures cannot be added up."""
    return COLUMNS[name].shown(group.total(name)) if name in _ADDED_UP else ""


KERNEL: Final[tuple[Fact[Ranked], ...]] = (
    *within(at("kernel"), (NAME,)),
    *RANKED,
    Fact("measured_seconds", SECONDS, "Measured time of all its executions in one call"),
    Fact("share", SHARE, "Share of the weight of all kernels, in 0..1: of measured time, least time or bytes"),
)
"""JSON and CSV of a kernel; figures are for one execution, except the last two."""


def likeness(row: Ranked) -> tuple[object, ...] | None:
    """What rows share that differ in their names alone. None where figures are the row's own: of a collective its
    links, of a fusion the lines that it holds, of a ranked one its share."""
    kernel = row.kernel
    if row.over is not None or row.weight is not None or kernel.opcode == "fusion":
        return None
    return kernel.likeness, kernel.computation, kernel.count, kernel.conditional, kernel.attributes_text


def kernels_table(programs: Iterable[tuple[str, Iterable[Ranked]]]) -> Table[tuple[str, Ranked]]:
    """The kernels of programs, by their labels, for CSV. Rows are printed as they arrive, and can be read once."""
    return joined("program", KERNEL, ((label, _once(rows)) for label, rows in programs))


def _once(rows: Iterable[Ranked]) -> Iterator[Ranked]:
    for row in rows:
        yield row
        row.kernel.release()
