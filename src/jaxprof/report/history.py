"""Render histories as text, CSV and JSON: an overview, or each with its points."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from jaxprof.analysis.difference import Difference
from jaxprof.analysis.history import HistoryPoint, LibraryHistory, MeasurementHistory
from jaxprof.facts import Fact, Facts, column, pick, within
from jaxprof.facts.units import BY_NAME, COUNT, LIST, NUMBER, NUMBER_BY_NAME, ROWS, TEXT, TRUTH
from jaxprof.frozen import frozen
from jaxprof.report.comparison import ENVIRONMENT
from jaxprof.report.renderers import WIDTH, Headline, Prose, Table, report_lines, text_lines, to_csv_text, wrap
from jaxprof.report.runs import parameters_text
from jaxprof.text import shorten
from jaxprof.units import UNKNOWN, counted, integer, seconds

POINTS_SHOWN = 20
"""Most points of a history that the text lists by default, the newest ones."""
APART = (
    "The sessions were not measured together: a slower machine looks the same as a slower program. jaxprof compare "
    "measures two in turns."
)
_SPARKS = "▁▂▃▄▅▆▇█"
_TREND_POINTS = 12
_VALUE_CHARACTERS = 48
_LEAST_SPAN = 1.1
"""Least ratio of the highest to the lowest value that fills the height of a trend. With it, noise of a few percent does
not look like a mountain."""


def series_name(series: MeasurementHistory, *, where: bool = True) -> str:
    """Return all that distinguishes a measurement, `matmul jit · n = 1 000 · cpu`; `where` includes the device and the
    machine."""
    plan = series.plan
    parts = [f"{plan.workload} {plan.variant}", parameters_text(plan.parameters), ", ".join(plan.arguments)]
    parts.append(plan.precision)
    if where:
        parts += [series.device_kind, series.machine]
    return " · ".join(part for part in parts if part)


def shares(values: Sequence[float]) -> list[float]:
    """Return the place of each value between the lowest (0) and the highest (1); values that hardly differ lie low."""
    low, high = min(values), max(values)
    span = max(high, low * _LEAST_SPAN) - low
    return [(value - low) / span if span > 0 else 0.0 for value in values]


def trend(series: MeasurementHistory, most: int = _TREND_POINTS) -> str:
    """Draw the newest points, at most `most`, as columns of eight heights."""
    values = [point.value for point in series.points[-most:]]
    return "".join(_SPARKS[min(7, int(share * 8))] for share in shares(values))


def changed_text(changed: Sequence[Difference[str]]) -> str:
    """Return what changed in the environment, `jax 0.9.0 → 0.10.2, its source`; an empty text for nothing."""
    return ", ".join(map(_environment_change, changed))


def _environment_change(entry: Difference[str]) -> str:
    if entry.code == "source" and entry.before and entry.after:
        return "its source"
    before, after = (shorten(value or UNKNOWN, _VALUE_CHARACTERS) for value in (entry.before, entry.after))
    return f"{entry.code} {before} → {after}"


def outcome(series: MeasurementHistory) -> str:
    """Return how many points a history has, and how many of them are wrong."""
    wrong = sum(point.wrong for point in series.points)
    aside = f"; {counted(wrong, 'wrong result')}" if wrong else ""
    return f"{counted(len(series.points) - wrong, 'point')}{aside}"


@frozen
class PointRow:
    """A point of a measurement, as a row of a table."""

    history: LibraryHistory
    series: MeasurementHistory
    point: HistoryPoint

    @property
    def interval(self) -> str | None:
        low, high = self.point.low, self.point.high
        if low is None or high is None:
            return None
        ends = [seconds(end) for end in (low, high)]
        (lowest, of_low), (highest, of_high) = (end.rsplit(" ", 1) for end in ends)
        return f"{lowest}-{highest} {of_high}" if of_low == of_high else " - ".join(ends)


def _version(name: str) -> Fact[PointRow]:
    return Fact(name, TEXT, f"Version of {name}", lambda row: row.point.environment.get(name))


_CHANGED = pick(ENVIRONMENT, "name", "before", "after")
_SERIES: Facts[PointRow] = (
    *within("series", (
        Fact("workload", TEXT, "Name of the workload, the function or the program", "plan.workload"),
        Fact("variant", TEXT, "numpy, jax, jit, or a name of the user's", "plan.variant"),
        Fact("target", TEXT, "The function, FILE.py:function; null for a workload", "plan.target"),
        Fact("device_kind", TEXT, "Kind of the device"),
        Fact("machine", TEXT, "The machine"),
        Fact("parameters", BY_NAME, "Parameters of the workload", "plan.parameters"),
        Fact("arguments", LIST, "The arguments as they were given, f32[1024,1024]", "plan.arguments"),
        Fact("precision", TEXT, "The effective precision of matrix products", "plan.precision"),
    )),
    Fact("measure", TEXT, "Which time: run, compile", "history.measure"),
)  # fmt: skip
_POINT: Facts[PointRow] = (
    Fact("name", TEXT, "Name of the session's file", "point.name", "session", widest=26),
    Fact("session", TEXT, "Identity of the session", "point.session"),
    Fact("run", TEXT, "Id of the run", "point.run"),
    Fact("path", TEXT, "The session's file", lambda row: str(row.point.path)),
    Fact("ended", TEXT, "When it ended, in UTC",
         lambda row: datetime.fromtimestamp(row.point.wall_seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")),
    Fact("value", NUMBER, "The time in seconds", "point.value"),
    Fact("low", NUMBER, "Lower bound of its 95 % interval", "point.low"),
    Fact("high", NUMBER, "Upper bound of the 95 % interval", "point.high"),
    column("value", "point.value", seconds),
    column("95 % interval", "interval", right=True),
    Fact("launches", COUNT, "Fresh processes that measured it", "point.launches", "launches"),
    Fact("check_failed", TRUTH, "Whether the result was wrong", "point.wrong"),
    column("check", lambda row: "wrong" if row.point.wrong else None),
    replace(_version("jax"), title="jax", widest=14),
    _version("jaxlib"),
    _version("python"),
)  # fmt: skip


def _rows(history: LibraryHistory, series: MeasurementHistory) -> list[PointRow]:
    return [PointRow(history, series, point) for point in series.points]


def overview_table(history: LibraryHistory) -> Table[MeasurementHistory]:
    """Return the table of the measurements, a row for each."""
    several = len({(series.device_kind, series.machine) for series in history.series}) > 1
    return Table(
        (
            column("measurement", lambda series: series_name(series, where=several), gives_way=True),
            column("points", lambda series: len(series.points), integer),
            column("trend", trend, right=True),
            column("latest", lambda series: series.points[-1].value, seconds),
        ),
        history.series,
    )


def notes(history: LibraryHistory) -> list[str]:
    """Return what was left out, a sentence each, and a caution about times."""
    lines = [APART] if any(len(each.points) > 1 for each in history.series) else []
    if history.left_out:
        reasons = ", ".join(f"{count} {reason}" for reason, count in history.left_out.items())
        lines.append(f"Runs that are no points: {reasons}.")
    if history.copies:
        verb = "holds" if history.copies == 1 else "hold"
        lines.append(f"{counted(history.copies, 'file')} {verb} a session that another file holds, too.")
    if history.refused:
        lines.append(f"{counted(len(history.refused), 'file')} not read: {history.refused[0]}.")
    lines += [f"{counted(count, 'session')}: {notice}." for notice, count in history.notices.items()]
    return lines


def overview_text(history: LibraryHistory) -> str:
    """Return a line for each measurement, without a line break at the end."""
    lines = [f"{history.title} in {counted(history.sessions, 'session')}, the latest first"]
    lines += text_lines(overview_table(history), width=WIDTH) if history.series else ["  no points"]
    for note in notes(history):
        lines += wrap(note)
    return "\n".join(lines)


def history_text(history: LibraryHistory, shown: int | None = POINTS_SHOWN) -> str:
    """Return each measurement with its trend, its newest `shown` points (None: all)."""
    lines: list[str] = []
    for series in history.series:
        lines += [*_series_lines(history, series, shown), ""]
    for note in notes(history) or ([] if history.series else ["No points."]):
        lines += wrap(note, first="", hang=2)
    return "\n".join(lines).rstrip("\n")


def _series_lines(history: LibraryHistory, series: MeasurementHistory, shown: int | None) -> Iterator[str]:
    values = [point.value for point in series.points]
    ends = " to ".join(dict.fromkeys(seconds(value) for value in (min(values), max(values))))
    about = Prose(f"{history.title}, {ends}; {outcome(series)}")
    yield from report_lines((Headline(series_name(series)), f"  {trend(series, WIDTH - 4)}", about, ""))
    rows = _rows(history, series)[-shown if shown else None :]
    heading, *drawn = text_lines(Table(_POINT, rows), width=WIDTH)
    yield heading
    if left := len(series.points) - len(rows):
        yield f"  … {left} earlier: --last {len(series.points)} shows them"
    for number, (row, line) in enumerate(zip(rows, drawn, strict=True)):
        if number and (changed := changed_text(row.point.changed)):
            yield from wrap(changed, first="   · ", hang=2)
        yield line


def history_csv(history: LibraryHistory) -> str:
    """Return a row for each point of each measurement."""
    rows = [row for series in history.series for row in _rows(history, series)]
    return to_csv_text(Table((*_SERIES, *_POINT), rows))


HISTORY: Facts[LibraryHistory] = (
    Fact("measure", TEXT, "Which time: run, compile"),
    Fact("sessions", COUNT, "Sessions that were read"),
    Fact("left_out", NUMBER_BY_NAME, "Runs that are no points, by reason", lambda history: dict(history.left_out)),
    Fact("copies", COUNT, "Sessions that were there twice"),
    Fact("refused", LIST, "Files that could not be read, with the reason"),
    Fact("notices", NUMBER_BY_NAME, "What could not be read, with the number of sessions",
         lambda history: dict(history.notices)),
    Fact("series", ROWS, "Measurements of one thing over the sessions",
         lambda history: [_rows(history, series)[0] for series in history.series], inside=(
             *_SERIES,
             Fact("points", ROWS, "Its points, the oldest first", lambda row: _rows(row.history, row.series),
                  inside=(*_POINT, Fact("changed", ROWS, "What of the environment changed since the point before",
                                        "point.changed", inside=_CHANGED))),
         )),
)  # fmt: skip
