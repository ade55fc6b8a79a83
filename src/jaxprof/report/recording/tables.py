"""The tables of a recorded program: every form of its report takes its columns from here.

Keys and their values are those that `docs/json.md` promises; an empty text in the program is null there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from jaxprof.analysis.programs.derive import NOT_SEEN, ProgramResult, SourceLocation
from jaxprof.events import ProgramArray, SignatureLeaf
from jaxprof.facts import at, plain
from jaxprof.report.recording.words import cache, ledger_title, words
from jaxprof.report.table import Column, Table
from jaxprof.units import UNKNOWN, bytes_, counted, integer, percent, seconds

LETTERS: Final = {
    "import": "i",
    "data": "d",
    "trace": "t",
    "lower": "l",
    "compile": "C",
    "transfer": "x",
    "device_busy": "D",
    "host_busy": "h",
    "waiting": "w",
    "stopped": "s",
    NOT_SEEN: "·",
}
"""One for each state; large for the two that usually matter most."""


def letters(program: ProgramResult, width: int) -> str:
    """The time line from start to end in `width` columns, each with the letter of the state that took most of it. Of a
    program that took no time nothing."""
    if program.wall_seconds <= 0:
        return ""
    cells: list[dict[str, float]] = [{} for _ in range(width)]
    each = program.wall_seconds / width
    begin = 0.0
    for state, took in program.segments():
        end = begin + took
        first, last = min(width - 1, int(begin / each)), min(width - 1, int(end / each))
        for column in range(first, last + 1):
            inside = min(end, (column + 1) * each) - max(begin, column * each)
            if inside > 0:
                cells[column][state] = cells[column].get(state, 0.0) + inside
        begin = end
    return "".join(LETTERS[max(cell, key=lambda state: cell[state])] if cell else LETTERS[NOT_SEEN] for cell in cells)


def rounded(parts: Sequence[float], whole: float) -> tuple[list[str], str]:
    """`parts` and their sum `whole`, in seconds, in one unit and rounded so that the printed parts add up.

    Each is within one unit of the last decimal of what it was.
    """
    decimals = 1 if whole >= 1000 else 2 if whole >= 100 else 3
    unit = 10.0**-decimals
    total = round(whole / unit)
    units = [int(part / unit) for part in parts]
    by_rest = sorted(range(len(parts)), key=lambda index: units[index] - parts[index] / unit)
    for index in by_rest[: max(0, total - sum(units))]:
        units[index] += 1
    return [f"{value * unit:.{decimals}f} s" for value in units], f"{total * unit:.{decimals}f} s"


_BAR: Final = 30


@dataclass(frozen=True, slots=True)
class ProgramRow:
    """Something that a program has several of: a compilation, a finding, a copy. `item` is one of its own type."""

    program: ProgramResult
    item: Any

    def short(self, where: SourceLocation | None) -> str | None:
        """A line of the source as the program's own folder makes it short; None if unknown."""
        return where.short(self.program.directory) if where else None


ProgramColumn = Column[ProgramRow]


def rows_of(program: ProgramResult, items: Iterable[Any]) -> list[ProgramRow]:
    """The items as rows."""
    return [ProgramRow(program, item) for item in items]


def _own(key: str, title: str | None = None, show: Callable[[Any], str] = plain, **how: Any) -> ProgramColumn:
    """The item's attribute of this name; a text that is empty is unknown."""
    read = at(f"item.{key}")
    return Column(key, title, lambda row: None if (cell := read(row)) == "" else cell, show, **how)


def _list(key: str, record: Callable[[Any], dict[str, Any]]) -> ProgramColumn:
    return Column(key, value=lambda row: [record(item) for item in getattr(row.item, key)])


def _leaf(leaf: SignatureLeaf) -> dict[str, Any]:
    """An argument, with the keys that apply to it."""
    details: dict[str, Any] = {"static": leaf.static, "weak_type": leaf.weak_type, "sharding": leaf.sharding}
    details |= {"from": "numpy", "bytes": leaf.bytes} if leaf.from_numpy else {}
    details |= {"replaced": leaf.replaced, "zero_copy": leaf.zero_copy}
    applies = {key: value for key, value in details.items() if value is not False and value != ""}
    return {"name": leaf.name, "type": leaf.type, **applies}


def _constant(array: ProgramArray) -> dict[str, Any]:
    return {"type": array.type, "bytes": array.bytes}


def _line(key: str, **how: Any) -> ProgramColumn:
    """A line of the source in full."""
    return Column(key, value=lambda row: text_of(getattr(row.item, key)), **how)


def text_of(where: SourceLocation | None) -> str | None:
    """A line of the source in full; None if unknown."""
    return where.text if where else None


def _began(row: ProgramRow) -> float | None:
    return row.item.began_seconds - row.program.began_seconds if row.item.began_seconds else None


def _share(row: ProgramRow) -> float | None:
    return row.program.of_wall(row.item.seconds)


def _function_and_count(row: ProgramRow) -> str:
    return f"{row.item.function} × {integer(row.item.count)}" if row.item.count > 1 else str(row.item.function)


RUN: Final[ProgramColumn] = Column("run", value=at("program.run.id"))
CALLED_FROM: Final[ProgramColumn] = Column("", "called from", lambda row: row.short(row.item.called_from))
COMPILES: Final[tuple[ProgramColumn, ...]] = (
    Column("function", value=at("item.function")),
    _line("called_from"),
    Column("called_in", value=lambda row: row.item.called_from.function or None),
    _line("defined_at"),
    Column("began_seconds", "at", _began, seconds),
    _own("trace_seconds", "trace", seconds),
    _own("lower_seconds", "lower", seconds),
    _own("compile_seconds", "compile", seconds),
    Column("cache", "cache", at("item.cache")),
    _own("saved_seconds"),
    _own("reason"),
    Column("reason_code", value=at("item.reason_code")),
    _line("made_at"),
    _own("factory"),
    _list("closure", asdict),
    _line("cleared_at"),
    _list("signature", _leaf),
    _own("signature_more"),
    _own("numpy_bytes"),
    _list("unused_donations", asdict),
    _own("operations"),
    _list("constants", _constant),
    _own("thread"),
    _own("op_by_op"),
    _own("library"),
    _own("count"),
    Column("", "function", _function_and_count, gives_way=True),
    CALLED_FROM,
)
FINDINGS: Final[tuple[ProgramColumn, ...]] = (
    Column("code", value=at("item.code")),
    Column("message", value=at("item.message")),
    Column("advice", value=at("item.advice")),
    _line("where"),
    _own("seconds"),
    _own("saves_seconds"),
    _own("estimate"),
    Column("others", value=lambda row: [other.text for other in row.item.others]),
)
TRANSFERS: Final[tuple[ProgramColumn, ...]] = (
    Column("direction", "direction", at("item.direction"), words, right=False),
    _own("type"),
    Column("", "type", lambda row: row.item.type or (UNKNOWN if row.item.source == "guard" else ""), str, right=False,
           widest=18),
    _own("count"),
    Column("", "times", lambda row: row.item.count if row.item.source == "guard" else None, integer),
    _own("bytes", "bytes", bytes_),
    _own("seconds", "time", lambda took: seconds(took, 2)),
    _line("where"),
    Column("", "line", lambda row: row.short(row.item.where), gives_way=True),
    _own("source"),
    Column("", "seen by", lambda row: "transfer guard" if row.item.source == "guard" else "samples (estimate)"),
)  # fmt: skip
TIMELINE: Final[tuple[ProgramColumn, ...]] = (
    Column("state", value=at("item.state")),
    _own("seconds"),
    Column("share", value=_share),
    _own("exact"),
)
LINES: Final[tuple[ProgramColumn, ...]] = (
    Column("", "time", at("item.seconds"), lambda took: seconds(took, 2)),
    Column("", "share", _share, percent),
    Column("where", value=at("item.place.text")),
    Column("", "line", lambda row: row.short(row.item.place), widest=28, gives_way=True),
    Column("function", "in", lambda row: row.item.place.function or None, widest=18),
    _own("state", "state", lambda state: words(state or ""), right=False),
    _own("call", "calls", widest=24),
    _own("seconds"),
)
FUNCTION: Final[ProgramColumn] = Column("", "function", at("item.function"), gives_way=True)
TIMES: Final[ProgramColumn] = Column("", "times", at("item.count"), integer)
TIME: Final[ProgramColumn] = Column("", "time", at("item.seconds"), seconds)
WHY: Final[ProgramColumn] = Column(
    "",
    "why again",
    lambda row: "; ".join(f"{integer(why.count)} × {why.text}" for why in row.item.reasons if why.code != "first"),
    str,
    right=False,
)
FUNCTIONS: Final[tuple[ProgramColumn, ...]] = (
    TIMES,
    TIME,
    Column("", "share", _share, percent),
    Column(
        "",
        "function",
        lambda row: f"{row.item.function} (op by op)" if row.item.op_by_op else row.item.function,
        gives_way=True,
    ),
    CALLED_FROM,
    Column("", "cache", lambda row: cache(row.item.rows)),
)
"""As text."""
FUNCTIONS_AND_WHY: Final = (FUNCTION, TIMES, TIME, CALLED_FROM, WHY)
"""Where there is room for long cells."""

VIEWS: Final[Mapping[str, tuple[tuple[ProgramColumn, ...], Callable[[ProgramResult], Iterable[Any]]]]] = {
    "compiles": (COMPILES, at("compiles")),
    "findings": (FINDINGS, at("findings")),
    "transfers": (TRANSFERS, at("transfers")),
    "timeline": (TIMELINE, at("timeline")),
}
"""The views of a program that can be printed alone: the columns, and the items that are the rows."""


def view_table(programs: Iterable[ProgramResult], view: str, *before: ProgramColumn) -> Table[ProgramRow]:
    """One of `VIEWS` of these programs; `before` are columns that come first."""
    columns, items = VIEWS[view]
    return Table((*before, *columns), [row for program in programs for row in rows_of(program, items(program))])


@dataclass(frozen=True, slots=True)
class TimeLineRow:
    """A state of the main thread in the time line, or the wall time under them all. `time` is rounded so that the
    column adds up."""

    state: str
    time: str
    share: float | None
    how: str
    letter: str = ""
    bar: str = ""


TIME_LINE: Final[tuple[Column[TimeLineRow], ...]] = (
    Column("", "main thread", at("state")),
    Column("", "time", at("time"), right=True),
    Column("", "share", at("share"), percent),
    Column("", "", at("how"), str, right=False),
)
TIME_LINE_TEXT: Final[tuple[Column[TimeLineRow], ...]] = (
    Column("", "", at("letter"), str, right=False),
    Column("", "", at("state")),
    *TIME_LINE[1:3],
    Column("", "", at("bar"), str, right=False, gives_way=True),
    Column("", "", lambda row: row.how if row.letter else "", str, right=False),
)


def time_line_rows(program: ProgramResult) -> list[TimeLineRow]:
    """The states that took time, then the wall time; none if nothing was seen."""
    shown = [share for share in program.timeline if share.seconds > 0]
    if all(share.state == NOT_SEEN for share in shown):
        return []
    times, total = rounded([share.seconds for share in shown], program.wall_seconds)
    rows = []
    for share, time in zip(shown, times, strict=True):
        part = program.of_wall(share.seconds)
        how = "" if share.state == NOT_SEEN else "exact" if share.exact else "estimate"
        letter, bar = LETTERS[share.state], "█" * round(_BAR * (part or 0.0))
        rows.append(TimeLineRow(words(share.state), time, part, how, letter, bar))
    return [*rows, TimeLineRow("wall time", total, 1.0, counted(program.samples, "sample"))]


def functions_table(program: ProgramResult) -> Table[ProgramRow]:
    """What was compiled, by function, with the reasons; the function that cost most first."""
    return Table(FUNCTIONS_AND_WHY, rows_of(program, program.functions), ledger_title(program))
