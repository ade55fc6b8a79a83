"""Tables of a recorded program for people."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from jaxprof.analysis.programs.result import NOT_SEEN, ProgramResult, states_by_column
from jaxprof.facts import Fact, at, column, pick
from jaxprof.facts.programs import COMPILES, LINES, ProgramFact, ProgramRow, share
from jaxprof.light_dataclass import dataclass
from jaxprof.report.recording.words import cache, words
from jaxprof.units import integer, percent, seconds, whole_steps

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
"""Letter of each state in the time line; upper case for the two that usually matter most."""


def letters(program: ProgramResult, width: int) -> str:
    """Return the time line from start to end in `width` columns, each with the letter of the state that took most of
    its time; an empty text for a program that took no time."""
    if program.wall_seconds <= 0:
        return ""
    begin = program.began_seconds
    shares = states_by_column(program.sample_windows, begin, begin + program.wall_seconds, width)
    seen = ({NOT_SEEN: 1 - sum(states.values())} | states for states in shares)
    return "".join(LETTERS.get(max(states, key=lambda state: states[state]), "?") for states in seen)


def rounded(parts: Sequence[float], whole: float) -> tuple[list[str], str]:
    """Format `parts` and their sum `whole`, in seconds, rounded so that the printed parts add up to the printed sum.

    Each printed part is within one unit of the last decimal of its value.
    """
    decimals = 1 if whole >= 1000 else 2 if whole >= 100 else 3
    unit = 10.0**-decimals
    total = round(whole / unit)
    units = whole_steps([part / unit for part in parts], total)
    return [f"{value * unit:.{decimals}f} s" for value in units], f"{total * unit:.{decimals}f} s"


_BAR: Final = 30


def _function_and_count(row: ProgramRow) -> str:
    return f"{row.item.function} × {integer(row.item.count)}" if row.item.count > 1 else str(row.item.function)


CALLED_FROM: Final[ProgramFact] = column("called from", lambda row: row.short(row.item.called_from))
COMPILES_TEXT: Final[tuple[ProgramFact, ...]] = (
    *pick(COMPILES, "began_seconds", "trace_seconds", "lower_seconds", "compile_seconds", "cache"),
    column("function", _function_and_count, gives_way=True),
    CALLED_FROM,
)
TRANSFERS_TEXT: Final[tuple[ProgramFact, ...]] = (
    column("direction", at("item.direction"), words, right=False),
    column("time", at("item.seconds"), lambda took: seconds(took, 2)),
    column("line", lambda row: row.short(row.item.where), gives_way=True),
)
LINES_TEXT: Final[tuple[ProgramFact, ...]] = (
    column("time", at("item.seconds"), lambda took: seconds(took, 2)),
    column("share", share, percent),
    column("line", lambda row: row.short(row.item.place), widest=28, gives_way=True),
    *pick(LINES, "function"),
    column("state", at("item.state"), lambda state: words(state or ""), right=False),
    *pick(LINES, "call"),
)
FUNCTIONS: Final[tuple[ProgramFact, ...]] = (
    column("times", at("item.count"), integer),
    column("time", at("item.seconds"), seconds),
    column("share", share, percent),
    column(
        "function",
        lambda row: f"{row.item.function} (op by op)" if row.item.op_by_op else row.item.function,
        gives_way=True,
    ),
    CALLED_FROM,
    column("cache", lambda row: cache(row.item.rows)),
)
"""Columns of the compile ledger by function; the reasons are below each."""


@dataclass(frozen=True, slots=True)
class TimeLineRow:
    """A state of the main thread in the time line, or the wall time below all states."""

    state: str
    time: str
    """Rounded so that the column adds up to the wall time."""
    share: float | None
    how: str = ""
    """`exact` or `estimate`; empty for the wall time."""
    letter: str = ""
    bar: str = ""


TIME_LINE: Final[tuple[Fact[TimeLineRow], ...]] = (
    column("", at("letter"), str, right=False),
    column("", at("state")),
    column("time", at("time"), right=True),
    column("share", at("share"), percent),
    column("", at("bar"), str, right=False, gives_way=True),
    column("", at("how"), str, right=False),
)
"""Columns of the time line, of which the first is for text alone."""


def time_line_rows(program: ProgramResult) -> list[TimeLineRow]:
    """Return a row for each state that took time, then one for the wall time; none if nothing was seen."""
    shown = [state for state in program.timeline if state.seconds > 0]
    if all(state.state == NOT_SEEN for state in shown):
        return []
    times, total = rounded([state.seconds for state in shown], program.wall_seconds)
    rows = []
    for state, time in zip(shown, times, strict=True):
        part = program.of_wall(state.seconds)
        how = "" if state.state == NOT_SEEN else "exact" if state.exact else "estimate"
        letter, bar = LETTERS[state.state], "█" * round(_BAR * (part or 0.0))
        rows.append(TimeLineRow(words(state.state), time, part, how, letter, bar))
    return [*rows, TimeLineRow("wall time", total, 1.0)]
