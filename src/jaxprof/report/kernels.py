"""The kernels of a module: the columns of their table, once for the screen, text, CSV and sorting, and their JSON.

Columns for people give all executions of a kernel in one run, which is what the tables are sorted by; columns for
programs give one execution, as JSON does (`docs/json.md`). `hlo` is imported only for a run that has HLO.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from jaxprof.facts import at, plain
from jaxprof.report.table import Column, Table, joined
from jaxprof.units import UNKNOWN, bytes_, integer, percent, scaled, seconds

if TYPE_CHECKING:
    from jaxprof.analysis.arrangement import KernelGroup
    from jaxprof.analysis.ranking import Ranked
    from jaxprof.hlo.analysis.kernel import Kernel
    from jaxprof.hlo.analysis.origin import HloSourceLocation
    from jaxprof.session import Run, Session


def times(row: Ranked) -> str:
    """How often a kernel runs: `12`, `≤ 12` in a branch, a dash if unknown."""
    count = row.kernel.count
    return UNKNOWN if count is None else f"≤ {integer(count)}" if row.kernel.conditional else integer(count)


def places_text(places: Sequence[HloSourceLocation]) -> str:
    """All lines in few words, the files in order: `model.py:88,90 layers.py:7`; a dash for none."""
    lines: dict[str, list[int]] = {}
    for place in places:
        lines.setdefault(place.file, []).append(place.line)
    words = (f"{file.rpartition('/')[2]}:{','.join(map(str, numbers))}" for file, numbers in lines.items())
    return " ".join(words) or UNKNOWN


COLUMNS: Final[dict[str, Column[Ranked]]] = {
    "share": Column(title="share", value=at("share"), show=percent),
    "measured": Column(title="time", value=at("measured_seconds"), show=seconds),
    "least": Column(title="least", value=at("least_seconds"), show=seconds),
    "name": Column(title="kernel", value=at("kernel.name"), widest=40),
    "kind": Column(title="kind", value=at("kernel.kind")),
    "inside": Column(title="inside", value=at("kernel.instructions"), show=integer),
    "times": Column(title="times", value=times, right=True),
    "flops": Column(title="FLOPs", value=at("kernel.total_flops"), show=scaled),
    "bytes": Column(title="bytes", value=at("kernel.total_bytes"), show=bytes_),
    "intensity": Column(title="FLOP/B", value=at("kernel.intensity"), show=scaled),
    "bound": Column(title="bound", value=at("bound")),
    "source": Column(title="source", value=at("source")),
    "sources": Column(title="source", value=at("kernel.sources"), show=places_text, right=False, widest=28),
    "op_name": Column(title="op name", value=at("kernel.op_name"), show=plain, widest=60),
    "order": Column(title="order", value=at("number")),
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
    return COLUMNS[name].show(group.total(name)) if name in _ADDED_UP else ""


def _all_places(row: Ranked) -> str:
    return ";".join(f"{place.file}:{place.line}" for place in row.kernel.sources)


DATA: Final[Sequence[Column[Ranked]]] = (
    *(Column(key, value=at(f"kernel.{key}")) for key in ("name", "kind", "opcode", "instructions", "count")),
    *(Column(key, value=at(f"kernel.{key}")) for key in ("flops", "bytes", "intensity")),
    Column("bound"),
    Column("least_seconds", value=at("least_once")),
    Column("file", value=at("kernel.source.file")),
    Column("line", value=at("kernel.source.line")),
    Column("op_name", value=at("kernel.op_name")),
    Column("sources", value=_all_places),
    *(Column(key, value=at(f"kernel.{key}")) for key in ("computation", "conditional", "bytes_read", "bytes_written")),
    Column("measured_seconds"),
    Column("share"),
)
"""The columns of CSV. Measured seconds and share are for all executions, the columns before them for one."""


def kernels_json(session: Session, run: Run) -> list[dict[str, Any]] | None:
    """The documented keys of each kernel, in the order of execution; None without readable HLO."""
    if "hlo" not in run.texts:
        return None
    from jaxprof.analysis.measured import kernels_of

    listed = kernels_of(session, run.id)
    return None if listed is None else [kernel_json(kernel) for kernel in listed]


def kernel_json(kernel: Kernel) -> dict[str, Any]:
    """One kernel with all its source lines; figures are for one execution, and null if the HLO does not have them."""
    from jaxprof.hlo.frames import is_own

    sources = kernel.sources
    place = sources[0] if sources else None
    return {
        "name": kernel.name,
        "kind": kernel.kind,
        "opcode": kernel.opcode,
        "instructions": kernel.instructions,
        "flops": kernel.flops,
        "bytes": kernel.bytes,
        "intensity": kernel.intensity,
        "count": kernel.count,
        "source": {"file": place.file, "line": place.line} if place is not None else None,
        "sources": [{"file": source.file, "line": source.line, "own": is_own(source.file)} for source in sources],
        "op_name": kernel.op_name or None,
        "computation": kernel.computation,
    }


def row_json(row: Ranked, *, has_ceilings: bool) -> dict[str, Any]:
    """The documented keys of a kernel; with the ceilings of a device, its least time and what bounds it."""
    data = kernel_json(row.kernel)
    row.kernel.release()  # the rows can be read once
    if has_ceilings:
        data["bound"], data["least_seconds"] = row.bound or None, row.least_once
    return data


def kernels_table(programs: Iterable[tuple[str, Iterable[Ranked]]]) -> Table[tuple[str, Ranked]]:
    """The kernels of programs, by their labels, for CSV. Rows are printed as they arrive, and can be read once."""
    return joined("program", DATA, ((label, _once(rows)) for label, rows in programs))


def _once(rows: Iterable[Ranked]) -> Iterator[Ranked]:
    for row in rows:
        yield row
        row.kernel.release()
