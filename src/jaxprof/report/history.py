"""Render histories as text, CSV and JSON: an overview, or each with its points and lasting changes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Final

from jaxprof.analysis.difference import EnvironmentDifference
from jaxprof.analysis.history import FEWEST, HistoryPoint, LastingChange, LibraryHistory, MeasurementHistory
from jaxprof.facts import Fact, at, column, pick, recorder, within
from jaxprof.facts.units import BY_NAME, COUNT, LIST, NUMBER, NUMBER_BY_NAME, RATIO, ROWS, TEXT, TRUTH
from jaxprof.report.comparison import ENVIRONMENT, figure, signed
from jaxprof.report.renderers import WIDTH, Table, text_lines, to_csv_text, wrap
from jaxprof.report.runs import parameters_text
from jaxprof.stats.changes import LONGEST, SIGNIFICANCE
from jaxprof.text import safe, shorten
from jaxprof.units import UNKNOWN, counted, integer, percent, ratio

POINTS_SHOWN: Final = 20
"""Most points of a history that the text lists by default, the newest ones."""
APART: Final = (
    "The sessions were not measured together: a slower machine looks the same as a slower program. jaxprof compare "
    "measures two in turns."
)
_SPARKS: Final = "▁▂▃▄▅▆▇█"
_TREND_POINTS: Final = 12
_VALUE_CHARACTERS: Final = 48
_LEAST_SPAN: Final = 1.1
"""Least ratio of the highest to the lowest value that fills the height of a trend. With it, noise of a few percent does
not look like a mountain."""


def date(wall_seconds: float) -> str:
    """Return the day of a Unix time in UTC, in the form that names of sessions have: `2026-11-26`."""
    return _utc(wall_seconds).strftime("%Y-%m-%d")


def _utc(wall_seconds: float) -> datetime:
    return datetime.fromtimestamp(wall_seconds, UTC)


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


def direction(history: LibraryHistory, change: LastingChange) -> str:
    """Return `slower` or `faster` for a time, `more` or `less` for an exact fact."""
    words = ("slower", "faster") if history.unit == "second" else ("more", "less")
    return words[change.after < change.before]


def change_text(history: LibraryHistory, change: LastingChange) -> str:
    """Return a lasting change in words: `slower: 1.00 ms → 1.25 ms (0.80×), p = 0.0025`."""
    text = f"{direction(history, change)}: {figure(change.before, history.unit)} → {figure(change.after, history.unit)}"
    if change.p_value is not None:
        return f"{text} ({ratio(change.ratio)}), p = {change.p_value:.2g}"
    if not change.before:
        return text
    growth = change.after / change.before - 1
    return f"{text} ({signed(growth, percent(growth))})"


def changed_text(changed: Sequence[EnvironmentDifference]) -> str:
    """Return what changed in the environment, `jax 0.9.0 → 0.10.2, its source`; an empty text for nothing."""
    return ", ".join(map(_environment_change, changed))


def _environment_change(entry: EnvironmentDifference) -> str:
    if entry.name == "source" and entry.before and entry.after:
        return "its source"
    before, after = (shorten(value or UNKNOWN, _VALUE_CHARACTERS) for value in (entry.before, entry.after))
    return f"{entry.name} {before} → {after}"


def outcome(history: LibraryHistory, series: MeasurementHistory) -> str:
    """Return what was found in a history, in a sentence."""
    used = sum(not point.wrong for point in series.points)
    wrong = len(series.points) - used
    aside = f"; {counted(wrong, 'wrong result')} left aside" if wrong else ""
    count = len(series.changes)
    if history.unit != "second":
        return (f"{counted(count, 'change')}, exact" if count else f"the same in {counted(used, 'point')}") + aside
    if not series.searched:
        return f"{counted(used, 'point')}: changes are searched for from {FEWEST} points on{aside}"
    method = f"e-divisive over {min(used, LONGEST)} points, at a significance of {SIGNIFICANCE:g}"
    verdict = counted(count, "lasting change") if count else "no lasting change"
    if series.unclear:
        verdict = f"{verdict}; no verdict of the rest" if count else "no verdict"
        verdict += f": {series.unclear}"
    return f"{verdict} ({method}){aside}"


@dataclass(frozen=True, slots=True)
class PointRow:
    """A point of a measurement, as a row of a table."""

    history: LibraryHistory
    series: MeasurementHistory
    point: HistoryPoint

    @property
    def change(self) -> LastingChange | None:
        """The lasting change that begins at this point; None if none does."""
        return next((change for change in self.series.changes if change.first == self.point), None)

    @property
    def what_changed(self) -> str:
        """The lasting change that begins at this point, if one does, and what changed in the environment."""
        change = self.change
        if change is None:
            return changed_text(self.point.changed)
        environment = changed_text(change.changed)
        return change_text(self.history, change) + (f"; with it changed {environment}" if environment else "")

    @property
    def interval(self) -> str | None:
        low, high = self.point.low, self.point.high
        if low is None or high is None:
            return None
        ends = [figure(end, self.history.unit) for end in (low, high)]
        (lowest, of_low), (highest, of_high) = (end.rsplit(" ", 1) for end in ends)
        return f"{lowest}-{highest} {of_high}" if of_low == of_high else " - ".join(ends)


def _version(name: str) -> Fact[PointRow]:
    return Fact(name, TEXT, f"Version of {name}", lambda row: row.point.environment.get(name))


_CHANGED: Final = pick(ENVIRONMENT, "name", "before", "after")
_SERIES: Final[tuple[Fact[PointRow], ...]] = (
    *within(at("series"), (
        Fact("workload", TEXT, "Name of the workload, the function or the program", at("plan.workload")),
        Fact("variant", TEXT, "numpy, jax, jit, or a name of the user's", at("plan.variant")),
        Fact("target", TEXT, "The function, FILE.py:function; null for a workload", at("plan.target")),
        Fact("device_kind", TEXT, "Kind of the device"),
        Fact("machine", TEXT, "The machine"),
        Fact("parameters", BY_NAME, "Parameters of the workload", at("plan.parameters")),
        Fact("arguments", LIST, "The arguments as they were given, f32[1024,1024]", at("plan.arguments")),
        Fact("precision", TEXT, "The effective precision of matrix products", at("plan.precision")),
    )),
    Fact("measure", TEXT, "Which figure: run, compile, flops", at("history.measure")),
)  # fmt: skip
_POINT: Final[tuple[Fact[PointRow], ...]] = (
    Fact("name", TEXT, "Name of the session's file", at("point.name"), "session", widest=26),
    Fact("session", TEXT, "Identity of the session", at("point.session")),
    Fact("run", TEXT, "Id of the run", at("point.run")),
    Fact("path", TEXT, "The session's file", lambda row: str(row.point.path)),
    Fact("ended", TEXT, "When it ended, in UTC",
         lambda row: _utc(row.point.wall_seconds).strftime("%Y-%m-%dT%H:%M:%SZ")),
    Fact("value", NUMBER, "The figure", at("point.value")),
    Fact("low", NUMBER, "Lower bound of its 95 % interval", at("point.low")),
    Fact("high", NUMBER, "Upper bound of the 95 % interval", at("point.high")),
    Fact("unit", TEXT, "second, flop, byte", at("history.unit")),
    column("value", lambda row: figure(row.point.value, row.history.unit), right=True),
    column("95 % interval", at("interval"), right=True),
    Fact("launches", COUNT, "Fresh processes that measured it", at("point.launches"), "launches"),
    Fact("check_failed", TRUTH, "Whether the result was wrong", at("point.wrong")),
    column("check", lambda row: "wrong" if row.point.wrong else None),
    replace(_version("jax"), title="jax", widest=14),
    _version("jaxlib"),
    _version("python"),
)  # fmt: skip


def points_table(history: LibraryHistory, series: MeasurementHistory) -> Table[PointRow]:
    """Return the table of the points of a measurement, the oldest first."""
    return Table(_POINT, _rows(history, series))


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
            column("latest", lambda series: figure(series.points[-1].value, history.unit), right=True),
            column("last change", lambda series: _last_change(history, series)),
        ),
        history.series,
    )


def _last_change(history: LibraryHistory, series: MeasurementHistory) -> str:
    if not series.changes:
        unsearched = "" if series.searched or history.unit != "second" else "too few points"
        return "no verdict" if series.unclear else unsearched
    change = series.changes[-1]
    size = ratio(change.ratio) if history.unit == "second" else direction(history, change)
    return f"{size} {date(change.first.wall_seconds)}"


def notes(history: LibraryHistory) -> list[str]:
    """Return what was left out, a sentence each, and a caution if times changed."""
    lines = [APART] if history.unit == "second" and any(series.changes for series in history.series) else []
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
    """Return each measurement with its trend, its newest `shown` points (None: all) and its changes."""
    lines: list[str] = []
    for series in history.series:
        lines += [*_series_lines(history, series, shown), ""]
    for note in notes(history) or ([] if history.series else ["No points."]):
        lines += wrap(note, first="", hang=2)
    return "\n".join(lines).rstrip("\n")


def _series_lines(history: LibraryHistory, series: MeasurementHistory, shown: int | None) -> Iterator[str]:
    name = safe(series_name(series))
    yield from wrap(name, first="", hang=2)
    yield "─" * min(WIDTH, len(name))
    values = [point.value for point in series.points]
    ends = " to ".join(dict.fromkeys(figure(value, history.unit) for value in (min(values), max(values))))
    yield f"  {trend(series, WIDTH - 4)}"
    yield from wrap(f"{history.title}, {ends}; {outcome(history, series)}")
    yield ""
    rows = _rows(history, series)[-shown if shown else None :]
    heading, *drawn = text_lines(Table(_POINT, rows), width=WIDTH)
    yield heading
    if left := len(series.points) - len(rows):
        yield f"  … {left} earlier: --last {len(series.points)} shows them"
    for number, (row, line) in enumerate(zip(rows, drawn, strict=True)):
        if (number or row.change) and row.what_changed:
            mark = "══ " if row.change else " · "
            yield from wrap(row.what_changed, first=f"  {mark}", hang=2)
        yield line


def history_csv(history: LibraryHistory) -> str:
    """Return a row for each point of each measurement."""
    rows = [row for series in history.series for row in _rows(history, series)]
    change: Fact[PointRow] = Fact("change_ratio", RATIO, "Ratio of the change that begins here", at("change.ratio"))
    return to_csv_text(Table((*_SERIES, *_POINT, change), rows))


_CHANGE: Final[tuple[Fact[LastingChange], ...]] = (
    Fact("last_session", TEXT, "The last session before the change", at("last.session")),
    Fact("first_session", TEXT, "The first session after it", at("first.session")),
    Fact("before", NUMBER, "The figure before it"),
    Fact("after", NUMBER, "The figure after it"),
    Fact("ratio", RATIO, "The figure before over the figure after; above 1: faster, or less"),
    Fact("p_value", NUMBER, "How likely such a change is in a history without one; null for an exact fact"),
    Fact("measured_together", TRUTH, "Whether the two were measured in turns", lambda change: False),
    Fact("changed", ROWS, "What of the environment changed with it", inside=_CHANGED),
)
HISTORY: Final[tuple[Fact[LibraryHistory], ...]] = (
    Fact("measure", TEXT, "Which figure: run, compile, flops"),
    Fact("unit", TEXT, "second, flop, byte"),
    Fact("sessions", COUNT, "Sessions that were read"),
    Fact("left_out", NUMBER_BY_NAME, "Runs that are no points, by reason", lambda history: dict(history.left_out)),
    Fact("copies", COUNT, "Sessions that were there twice"),
    Fact("refused", LIST, "Files that could not be read, with the reason"),
    Fact("notices", NUMBER_BY_NAME, "What could not be read, with the number of sessions",
         lambda history: dict(history.notices)),
    Fact("series", ROWS, "Measurements of one thing over the sessions",
         lambda history: [_rows(history, series)[0] for series in history.series], inside=(
             *_SERIES,
             Fact("searched", TRUTH, "Whether there were enough points to look for a change",
                  lambda row: row.series.searched or row.history.unit != "second"),
             Fact("unclear", TEXT, "Why there is no verdict on whether it changed", at("series.unclear")),
             Fact("points", ROWS, "Its points, the oldest first", lambda row: _rows(row.history, row.series),
                  inside=(*_POINT, Fact("changed", ROWS, "What of the environment changed since the point before",
                                        at("point.changed"), inside=_CHANGED))),
             Fact("changes", ROWS, "Where it changed for good", at("series.changes"), inside=_CHANGE),
         )),
)  # fmt: skip
history_json: Final = recorder(HISTORY)
"""Return a history as JSON-ready data, with nothing rounded or left out."""
