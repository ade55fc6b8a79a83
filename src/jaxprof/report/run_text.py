"""Render the measured runs of a session as plain text: speed, samples and phases of each, and published figures."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import Final

from jaxprof.analysis.run_result import RunResult
from jaxprof.analysis.sweeps import SweepGroup, SweepLine, sweep_groups
from jaxprof.events import WarningRaised
from jaxprof.facts import Fact, at, column
from jaxprof.facts.runs import RunRow
from jaxprof.grouping import grouped
from jaxprof.report.renderers import text_lines, wrap
from jaxprof.report.runs import (
    BEFORE_STEADY,
    BREAK_EVEN,
    CHECK,
    INTERVAL,
    LABEL,
    MEDIAN,
    MODES,
    RATES,
    SPEEDUP,
    SPREAD,
    RunGroup,
    groups,
    parameters_text,
    published,
    rows_of_group,
    verdicts_text,
)  # fmt: skip
from jaxprof.report.table import Table
from jaxprof.session import Session
from jaxprof.session.run import UNLIKE_RESULTS
from jaxprof.text import safe
from jaxprof.units import UNKNOWN, and_more, counted, integer, ratio, scaled, seconds
from jaxprof.workloads.model import Published

WIDTH = 80
TABLED: Final = frozenset({"zero_copy"})
"""Warnings that are not listed, because the table of phases shows them (`0-copy`) and every run on a CPU has them."""
_ABOUT_RESULTS: Final = frozenset(
    {UNLIKE_RESULTS, "results_differ", "wrong_result", "dead_code", "folded_constants", "dtype_narrowed"}
)
"""Warnings that the figures may be those of another program. They are always shown."""
_WARNINGS_SHOWN: Final = 2
_Notes = dict[str, dict[str, list[str]]]
"""Labels of the runs, by the advice and the message about them."""


def run_lines(session: Session, *, live: bool) -> Iterator[str]:
    """Yield all groups of runs that can be compared, then the sweeps, with an empty line before each."""
    sweeps = {sweep.workload: sweep for sweep in sweep_groups(session)}
    for group in groups(session):
        if group.workload not in sweeps:
            yield from ("", *_group(session, group, live))
    for sweep in sweeps.values():
        yield from ("", *_sweep(session, sweep, live))


def _group(session: Session, group: RunGroup, live: bool) -> Iterator[str]:
    device = group.devices[0] if len(group.devices) == 1 else ""
    parts = [group.workload, parameters_text(group.parameters), group.preset, device]
    title = wrap("  ·  ".join(part for part in parts if part), width=WIDTH, indent="  ", first="")
    yield from title
    yield "─" * max(map(len, title))
    rows = rows_of_group(session, group, live=live)
    if group.comparison:
        from jaxprof.analysis.ab import ab_result
        from jaxprof.report.sides import ab_head

        yield from ab_head(ab_result(session, group.comparison), WIDTH)
        yield ""
    yield from _tables(rows, judged=bool(group.comparison))
    yield from _problems(rows)
    yield from published_lines(group)


def _tables(rows: list[RunRow], *, judged: bool) -> Iterator[str]:
    """Yield how fast each run is, its samples, its phases and what a call moves, without empty tables. `judged`: the
    verdicts were already printed above."""
    baseline = next((row.run.as_baseline for row in rows if not row.run.plan.baseline), "baseline")
    versus = replace(SPEEDUP, title=f"vs {baseline}", right=False)
    sampled = [row for row in rows if row.result.summary is not None]
    if sampled:
        yield from text_lines(Table((LABEL, MEDIAN, INTERVAL, versus, BREAK_EVEN, CHECK), rows), width=WIDTH)
        if not judged:
            yield from wrap(verdicts_text(rows), width=WIDTH, indent="    ", first="  ")
    yield from _table("samples", (*SPREAD, MODES), sampled)
    yield from _table("phases", BEFORE_STEADY, rows)
    for row in rows:
        if launches := launches_text(row.result):
            yield from wrap(f"{row.label}: {launches}", width=WIDTH, indent="    ", first="  ")
        if row.result.stage_spreads:
            spread = stage_spread_text(row.result)
            yield from wrap(f"{row.label}: {spread}", width=WIDTH, indent="    ", first="  ")
    yield from _table("one call", RATES, rows)
    for row in rows:
        if note := row.result.cost.note:
            yield from wrap(f"{row.label}, FLOPs and bytes: {note}", width=WIDTH, indent="    ", first="  ")


def _table(title: str, columns: Sequence[Fact[RunRow]], rows: list[RunRow]) -> Iterator[str]:
    """Yield a table without the rows that have no value in it; nothing if no row has one."""
    useful = [row for row in rows if any(column.text(row) != UNKNOWN for column in columns)]
    if useful:
        yield ""
        yield from text_lines(Table((replace(LABEL, title=title), *columns), useful), width=WIDTH)


_PHASES_OVER_LAUNCHES = ("trace", "lower", "compile", "first_run")


def launches_text(run_result: RunResult) -> str:
    """Return the intervals of the phases that each launch has once, `95 % over 3 launches: compile 37.0 ms to 39.1 ms,
    ...`; an empty text for a single launch."""
    over = run_result.over_launches
    phases = {name: over[name] for name in _PHASES_OVER_LAUNCHES if name in over}
    intervals = [
        f"{name.replace('_', ' ')} {seconds(summary.low)} to {seconds(summary.high)}"
        for name, summary in phases.items()
        if summary.low is not None and summary.high is not None
    ]
    launches = max((summary.launches for summary in phases.values()), default=0)
    return f"95 % over {counted(launches, 'launch')}: {', '.join(intervals)}" if intervals else ""


def stage_spread_text(result: RunResult) -> str:
    """Return the stages that a run has more than once: `compile: 6 times, 1.20 ms to 8.04 ms each; lower: ...`."""
    return "; ".join(
        f"{stage}: {integer(spread.count)} times, {seconds(spread.minimum)} to {seconds(spread.maximum)} each"
        for stage, spread in result.stage_spreads.items()
    )


def _problems(rows: Iterable[RunRow]) -> list[str]:
    """Return failures and warnings, under an empty line. Those that several runs share are written once."""
    failure_notes: _Notes = {}
    warning_notes: _Notes = {}
    warnings: list[tuple[WarningRaised, str]] = []
    for row in rows:
        ended = row.outcome
        if ended.status != "ok":
            failure = ended.status if ended.error in ("", ended.status) else f"{ended.status}: {ended.error}"
            failure_notes.setdefault(ended.advice, {}).setdefault(failure, []).append(row.label)
        warnings += [(warning, row.label) for warning in row.result.warnings if warning.code not in TABLED]
    shown, more = most_important([warning for warning, _ in warnings])
    for warning, label in warnings:
        if warning.message in shown:
            warning_notes.setdefault(warning.advice, {}).setdefault(warning.message, []).append(label)
    lines = [*_note_lines("✗", failure_notes), *_note_lines("!", warning_notes), *more]
    return ["", *lines] if lines else []


def most_important(warnings: Sequence[WarningRaised]) -> tuple[list[str], list[str]]:
    """Return the messages of `warnings` to show, those about wrong results first, and a line that counts the others, if
    there are any."""
    about_results = dict.fromkeys(warning.message for warning in warnings if warning.code in _ABOUT_RESULTS)
    messages = dict.fromkeys(warning.message for warning in warnings if warning.code not in TABLED)
    shown = list(about_results)
    shown += [message for message in messages if message not in shown][: max(0, _WARNINGS_SHOWN - len(shown))]
    more = len(messages) - len(shown)
    return shown, [f"    and {counted(more, 'more warning')}: --format json has them"] if more else []


def _note_lines(mark: str, notes: _Notes) -> Iterator[str]:
    """Yield the messages that share an advice, then the advice."""
    for advice, messages in notes.items():
        for message, labels in messages.items():
            yield from wrap(f"{_labels_text(labels)}: {message}", width=WIDTH, indent="    ", first=f"  {mark} ")
        yield from wrap(advice, width=WIDTH, indent="    ")


def _labels_text(labels: list[str]) -> str:
    distinct = list(dict.fromkeys(labels))
    return and_more(distinct, 4 if len(distinct) <= 4 else 3)


def published_lines(group: RunGroup, width: int = WIDTH) -> Iterator[str]:
    """Yield the published figures of these sizes, by source; then those that are given in words, then the caveats."""
    known = published(group.workload, [result.run.plan.variant for result in group.runs])
    by_source = grouped((figure.source, figure) for figure in known if _is_of(figure, group))
    for source, figures in by_source.items():
        caveats = dict.fromkeys(figure.caveat for figure in figures if figure.caveat)
        numbers = {caveat: f"[{at}]" for at, caveat in enumerate(caveats, start=1)}
        common = statistics.pop() if len(statistics := {figure.statistic for figure in figures}) == 1 else ""
        columns: list[Fact[Published]] = [
            column("", at("variant")),
            column("", lambda figure: figure.phase.replace("_", " ")),
            column("", at("figure"), right=True),
            column("", lambda figure: "" if common else figure.statistic),  # noqa: B023  it is printed at once
            column("", at("hardware"), gives_way=True),
            column("", lambda figure: numbers.get(figure.caveat, ""), str, right=False),  # noqa: B023
        ]
        rows = [figure for figure in figures if figure.seconds is not None]
        yield ""
        yield from wrap(
            f"published in {source}{f' ({common})' if common else ''}", width=width, indent="    ", first="  "
        )
        yield from islice(text_lines(Table(columns, rows), width=width), 1, None)  # no heading
        for figure in figures:
            if figure.seconds is None:
                words = f"{figure.variant} on {figure.hardware}: {figure.text} {numbers.get(figure.caveat, '')}"
                yield from wrap(words, width=width, indent="    ", first="  ")
        for caveat, number in numbers.items():
            yield from wrap(caveat, width=width, indent="      ", first=f"  {number} ")


def _is_of(figure: Published, group: RunGroup) -> bool:
    """Return whether a published figure is of the group's parameters: one of another size says nothing beside it."""
    return all(group.parameters.get(name) == value for name, value in figure.parameters.items())


def _sweep(session: Session, sweep: SweepGroup, live: bool) -> Iterator[str]:
    yield from _sweep_lines(sweep)
    yield from _problems(
        replace(row, label=f"{row.label} at {parameters_text({sweep.parameter: group.parameters[sweep.parameter]})}")
        for group in groups(session)
        if group.workload == sweep.workload
        for row in rows_of_group(session, group, live=live)
    )


def _sweep_lines(sweep: SweepGroup) -> Iterator[str]:
    """Yield the title of a sweep, its table (a row for each size, a column for each variant), and its crossovers in
    words."""
    title = safe(f"{sweep.workload}  ·  {sweep.parameter} swept")
    yield title
    yield "─" * min(WIDTH, len(title))
    yield from text_lines(sweep_table(sweep), width=WIDTH)
    if crossovers := sweep.crossovers():
        yield ""
    for crossover in crossovers:
        yield from wrap(crossover.sentence(sweep.parameter), width=WIDTH, indent="    ", first="  ")


def sweep_table(sweep: SweepGroup) -> Table[float]:
    """Return the table of a sweep: a row for each size, a column for each variant."""
    sizes = sorted({size for line in sweep.lines for size in line.sizes})
    several = len({line.device for line in sweep.lines}) > 1
    columns = [_variant_column(line, line.label if several else line.variant) for line in sweep.lines]
    sized: Fact[float] = column(sweep.parameter, lambda size: size, scaled)
    return Table((sized, *columns), sizes)


def _variant_column(line: SweepLine, title: str) -> Fact[float]:
    """Return the column with the time and the speed-up of a variant at each size."""
    results = dict(zip(line.sizes, line.results, strict=True))

    def cell(size: float) -> str | None:
        result = results.get(size)
        if result is None or result.summary is None:
            return None
        text = seconds(result.summary.median)
        return f"{text} {ratio(result.versus.speedup.ratio)}" if result.versus is not None else text

    return column(title, cell, right=True)
