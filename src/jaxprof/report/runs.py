"""Report the measured runs of a session: their tables, speed, samples and phases; and of one workload over a range of
sizes, lines to plot, and where one variant overtakes the baseline.

Reports show a selection of the facts of a run, CSV all of them.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain, pairwise
from typing import TYPE_CHECKING

from jaxprof.analysis.runs.run_result import RunResult, result, results
from jaxprof.base.grouping import grouped
from jaxprof.base.units import UNKNOWN, and_more, between, counted, integer, percent, ratio, scaled, seconds, value_text
from jaxprof.base.values import frozen
from jaxprof.events import Scalar, WarningRaised
from jaxprof.facts import Fact, Facts, column, pick
from jaxprof.facts.runs import RUNS, RunRow, interval_beside, interval_text
from jaxprof.report import Headline, Piece, Prose, Table
from jaxprof.session import Run, Session
from jaxprof.session.run import UNLIKE_RESULTS
from jaxprof.stats.summary import modes_text

if TYPE_CHECKING:
    from jaxprof.analysis.runs.ab import AbResult


@frozen
class RunGroup:
    """Runs that can be compared with each other: those of one workload with one set of parameters, or the sides of one
    measured comparison."""

    workload: str
    parameters: dict[str, Scalar]
    preset: str
    runs: tuple[RunResult, ...]

    @property
    def comparison(self) -> str:
        """Id of the first side's run if the runs are the sides of a measured comparison; otherwise empty."""
        run = self.runs[0].run
        return run.id if run.plan.side and not run.plan.baseline else ""

    @property
    def devices(self) -> list[str]:
        return list(dict.fromkeys(result.run.plan.device for result in self.runs))

    def label(self, run: Run) -> str:
        """Return the variant of a run, with its side in a comparison, and its device if the group has several."""
        return run.variant if len(self.devices) == 1 else f"{run.variant} {run.plan.device}"


def groups(session: Session) -> list[RunGroup]:
    """Return the measured runs of a session in groups, in the order of the plan, without imported profiles."""
    return group_runs(
        result for result in results(session) if not result.run.is_program and result.run.plan.how != "imported"
    )


def group_runs(runs: Iterable[RunResult]) -> list[RunGroup]:
    """Group runs by workload and parameters, and the sides of a measured comparison whatever these are."""
    by_key: dict[Hashable, list[RunResult]] = {}
    for each in runs:
        plan = each.run.plan
        key: Hashable = plan.workload, tuple(sorted(plan.parameters.items()))
        by_key.setdefault((plan.baseline or each.run.id) if plan.side else key, []).append(each)
    return [
        RunGroup(
            " | ".join(dict.fromkeys(result.run.plan.workload for result in members)),
            dict(members[0].run.plan.parameters),
            members[0].run.plan.preset,
            tuple(members),
        )
        for members in by_key.values()
    ]


def parameters_text(parameters: dict[str, Scalar]) -> str:
    """Return parameters as people read them: `n = 1 000 000, k = 32`."""
    return ", ".join(f"{name} = {value_text(value)}" for name, value in parameters.items())


def rows_of_group(group: RunGroup) -> list[RunRow]:
    return [RunRow(group.label(result.run), result) for result in group.runs]


def versus_text(result: RunResult) -> str:
    """Return the speed-up of a run, `6.9× (6.8-7.0)`; `1×` for a baseline, `0-copy` if nothing was moved."""
    if not result.run.plan.baseline:
        return "1×" if result.summary is not None else UNKNOWN
    if result.moved_nothing:
        return "0-copy"
    return UNKNOWN if result.versus is None else result.versus.speedup.ratio_text


def versus_sentence(result: RunResult, baseline: str) -> str:
    """Return the speed-up in words, `6.9× (6.8-7.0) as fast as numpy`; empty if unknown, or if nothing was moved."""
    if result.versus is None or result.moved_nothing:
        return ""
    if result.versus.speedup.verdict == "inconclusive":
        return f"inconclusive beside {baseline}: {versus_text(result)}"
    return f"{versus_text(result)} as fast as {baseline}"


def leading_run(group: RunGroup, chosen: RunResult) -> RunResult:
    """Return the run that the verdict of a group is about: `chosen`, or if it is not compared, the fastest of those
    that are, a run with a wrong result last."""
    compared = [result for result in group.runs if versus_sentence(result, "")]
    if chosen in compared or not compared:
        return chosen

    def preference(result: RunResult) -> tuple[bool, float]:
        wrong = result.run.check is not None and result.run.check.passed is False
        return not wrong, (result.versus.speedup.ratio if result.versus is not None else None) or 0.0

    return max(compared, key=preference)


_PAYS = {"never": "never pays", UNKNOWN: ""}
_OUTCOMES = {"ok": "same result", UNKNOWN: ""}


def verdict_parts(group: RunGroup, result: RunResult) -> list[str]:
    """Return the verdict on a run in a few words each: its speed, whether its result is right, and from which call on
    it pays, if its speed is decided and it is no side; only the time of a call if it is not compared."""
    if result.summary is None:
        return []
    label, check = group.label(result.run), check_text(result)
    if result.versus is None or result.moved_nothing:
        return [f"{label}: {seconds(result.summary.median)} a call{interval_beside(result)}"]
    if check.startswith("WRONG"):
        return [f"{label}: {check.replace('WRONG', 'wrong result')}"]
    baseline = result.session.runs[result.versus.baseline].as_baseline
    calls = break_even_text(result)
    pays = f"ahead {calls}" if calls.startswith("until") else _PAYS.get(calls, f"pays after {calls}")
    parts = [f"{label}: {versus_sentence(result, baseline)}", _OUTCOMES.get(check.partition(",")[0], check)]
    is_decided = result.versus.speedup.verdict != "inconclusive" and not result.run.plan.side
    return [part for part in (*parts, pays if is_decided else "") if part]


def break_even_text(result: RunResult) -> str:
    """Return after how many calls a run has won back its one-time cost: `12 calls`, `never`; `until call 12` where it
    has the lesser one-time cost and the longer calls; a dash for a baseline, and if it is unknown."""
    if result.versus is None:
        return UNKNOWN
    calls, last_ahead = result.versus.break_even_calls, result.versus.ahead_until_calls
    if calls is not None or last_ahead is not None:
        counted_calls = calls or last_ahead or 0
        number = integer(counted_calls) if counted_calls < 10_000 else scaled(counted_calls, significant=2)
        return f"until call {number}" if calls is None else f"{number} call{'s' if calls != 1 else ''}"
    return "never" if result.once_seconds is not None and (result.versus.speedup.ratio or 0.0) <= 1 else UNKNOWN


def one_time_text(result: RunResult) -> str:
    """Return the parts of the one-time cost of a run: `trace 2.1 ms, lower 3.4 ms, compile 61 ms, first run 0.7 ms`."""
    parts = [(name, spent) for name, spent in result.one_time_phases.items() if spent]
    return ", ".join(f"{name.replace('_', ' ')} {seconds(spent)}" for name, spent in parts)


def check_text(result: RunResult) -> str:
    """Return the outcome of the check: `ok, 1.2e-07`; `WRONG, 41 %` (of the numbers); `unstable`; `not checked`."""
    check = result.run.check
    if check is not None and check.unstable_elements is not None:
        return "unstable"
    if check is None or (check.passed is None and not result.run.plan.baseline):
        return UNKNOWN
    if check.passed is None:
        return "not checked"
    word = "ok" if check.passed else "WRONG"
    if not check.passed and check.wrong_elements and check.elements:
        return f"{word}, {percent(check.wrong_elements / check.elements)}"
    return word if check.max_relative_error is None else f"{word}, {check.max_relative_error:.1e}"


def _transfer(name: str, title: str) -> Fact[RunRow]:
    def value(row: RunRow) -> str:
        recorded = row.run.phases.get(name)
        zero_copy = recorded is not None and recorded.zero_copy
        return "0-copy" if zero_copy else seconds(row.result.phase_seconds.get(name))

    return column(title, value, right=True)


_FACTS = RUNS.facts
_LABEL: Fact[RunRow] = column("", "label")
BREAK_EVEN: Fact[RunRow] = column("break-even", lambda row: break_even_text(row.result), right=True)
CHECK: Fact[RunRow] = column("check", lambda row: check_text(row.result))
_SPREAD = pick(_FACTS, "samples", "minimum_seconds", "mean_seconds", "p95_seconds", "maximum_seconds")
MODES: Fact[RunRow] = column("two modes", lambda row: row.result.modes and modes_text(row.result.modes))
_BEFORE_STEADY: Facts[RunRow] = (
    *pick(_FACTS, "trace_seconds", "lower_seconds", "compile_seconds"),
    _transfer("transfer_in", "to device"),
    *pick(_FACTS, "first_run_seconds"),
    _transfer("transfer_out", "to host"),
)
_RATES = pick(
    _FACTS, "dispatch_median_seconds", "pipelined_median_seconds", "first_after_pause_seconds", "flops_per_second",
    "bytes_per_second", "peak_bytes", "transfer_in_bytes_per_second",
)  # fmt: skip


_ABOUT_RESULTS = frozenset(
    {UNLIKE_RESULTS, "results_differ", "wrong_result", "dead_code", "folded_constants", "dtype_narrowed"}
    | {"not_of_medians"}
)
"""Warnings that figures may be those of another program, or that a row contradicts itself. They are always shown."""
_WARNINGS_SHOWN = 2
_Notes = dict[str, dict[str, list[str]]]
"""Labels of the runs, by the hint and the message about them."""


def run_reports(session: Session) -> Iterator[Iterable[Piece]]:
    sweeps = {sweep.workload: sweep for sweep in sweep_groups(session)}
    for group in groups(session):
        if group.workload not in sweeps:
            yield group_report(session, group)
    for sweep in sweeps.values():
        rows: list[RunRow] = []
        for group in groups(session):
            if group.workload == sweep.workload:
                size = parameters_text({sweep.parameter: group.parameters[sweep.parameter]})
                rows += (replace(row, label=f"{row.label} at {size}") for row in rows_of_group(group))
        yield chain(sweep_report(sweep), problems(rows))


def group_report(session: Session, group: RunGroup, warnings: int | None = _WARNINGS_SHOWN) -> Iterator[Piece]:
    """Yield how fast each run of a group is, its samples, phases and traffic, and at most that many `warnings`."""
    device = group.devices[0] if len(group.devices) == 1 else ""
    parts = [group.workload, parameters_text(group.parameters), group.preset, device]
    yield Headline("  ·  ".join(part for part in parts if part))
    rows = rows_of_group(group)
    if group.comparison:
        from jaxprof.analysis.runs.ab import ab_result

        yield from (*ab_head(ab_result(session, group.comparison)), "")
    baseline = next((row.run.as_baseline for row in rows if not row.run.plan.baseline), "baseline")
    sampled = [row for row in rows if row.result.summary is not None]
    if sampled:
        columns: Facts[RunRow] = (
            _LABEL,
            column("median", "result.summary.median", seconds),
            column("95 %", lambda row: interval_text(row.result), right=True),
            column(f"vs {baseline}", lambda row: versus_text(row.result)),
            BREAK_EVEN,
            CHECK,
        )
        yield Table(columns, rows)
        if not group.comparison:  # otherwise the verdicts stand above
            # The verdict of each run after what it rests on: `3 launches: jit faster than numpy`.
            names = {each.run.id: each.run.as_baseline for each in rows}
            by_basis: dict[str, list[str]] = {}
            for each in rows:
                versus = each.result.versus
                if versus is not None:
                    words = versus.speedup.words(names.get(versus.baseline, "the baseline"))
                    by_basis.setdefault(versus.speedup.basis, []).append(f"{each.label} {words}")
            yield Prose("  ·  ".join(f"{basis}: {'; '.join(verdicts)}" for basis, verdicts in by_basis.items()), hang=2)
    yield from _table("samples", (*_SPREAD, MODES), sampled)
    yield from _table("phases", _BEFORE_STEADY, rows)
    for row in rows:
        if text := launches_text(row.result):
            yield Prose(f"{row.label}: {text}", hang=2)
    yield from _table("one call", _RATES, rows)
    for row in rows:
        if note := row.result.cost.note:
            yield Prose(f"{row.label}, FLOPs and bytes: {note}", hang=2)
    yield from problems(rows, warnings)


def ab_head(result: AbResult) -> Iterator[Piece]:
    """Yield the verdicts of a measured comparison, what the sides are, and what the ratios rest on."""
    from jaxprof.facts.sides import basis_lines, inputs_line, verdict_line

    yield from (Prose(verdict_line(versus), "", 2) for versus in result.versus)
    yield ""
    yield from (Prose(side.title, f"  {side.label:<5}") for side in result.plan.sides)
    yield from (Prose(note, " " * 7) for note in (*result.plan.notes, inputs_line(result)))
    yield ""
    yield from (Prose(text, f"  {label:<5}") for label, text in basis_lines(result))


def _table(title: str, columns: Sequence[Fact[RunRow]], rows: list[RunRow]) -> Iterator[Piece]:
    """Yield a table without the rows that have no value in it; nothing if no row has one."""
    useful = [row for row in rows if any(column.text(row) != UNKNOWN for column in columns)]
    if useful:
        yield from ("", Table((replace(_LABEL, title=title), *columns), useful))


_WIDEST = 1000.0
"""Ratio of the ends of an interval from which it says nothing."""


def launches_text(run_result: RunResult) -> str:
    """Return `95 % over 3 launches: compile 37.0 ms to 39.1 ms, ...`; empty for a single launch. An interval from next
    to nothing to for ever, as two launches that differ give, is left out."""
    over = run_result.over_launches
    phases = {name: over[name] for name in ("trace", "lower", "compile", "first_run") if name in over}
    intervals = [
        f"{name.replace('_', ' ')} {between(summary.low, summary.high)}"
        for name, summary in phases.items()
        if summary.low is not None and summary.high is not None and summary.high < _WIDEST * summary.low
    ]
    launches = max((summary.launches for summary in phases.values()), default=0)
    return f"95 % over {counted(launches, 'launch')}: {', '.join(intervals)}" if intervals else ""


def problems(rows: Iterable[RunRow], most: int | None = _WARNINGS_SHOWN) -> Iterator[Piece]:
    """Yield failures and at most that many warnings, those about wrong results first, each once for all its runs."""
    failure_notes: _Notes = {}
    warning_notes: _Notes = {}
    warnings: list[tuple[WarningRaised, str]] = []
    for row in rows:
        ended = row.run.shown
        if ended.status != "ok":
            failure_notes.setdefault(ended.hint, {}).setdefault(ended.text, []).append(row.label)
        # The table of phases shows this one (`0-copy`), and every run on a CPU has it.
        warnings += [(warning, row.label) for warning in row.result.warnings if warning.code != "zero_copy"]
    about_results = dict.fromkeys(warning.message for warning, _ in warnings if warning.code in _ABOUT_RESULTS)
    messages = list(about_results | dict.fromkeys(warning.message for warning, _ in warnings))
    shown = messages if most is None else messages[: max(most, len(about_results))]
    for warning, label in warnings:
        if warning.message in shown:
            warning_notes.setdefault(warning.advice, {}).setdefault(warning.message, []).append(label)
    if failure_notes or warning_notes:
        yield ""
    yield from (*_notes("✗", failure_notes), *_notes("!", warning_notes))
    if more := len(messages) - len(shown):
        yield Prose(f"and {counted(more, 'more warning')}: --format json has them", "    ")


def _notes(mark: str, notes: _Notes) -> Iterator[Piece]:
    """Yield the messages that share a hint, then the hint."""
    for hint, messages in notes.items():
        for message, labels in messages.items():
            distinct = list(dict.fromkeys(labels))
            named = and_more(distinct, 4 if len(distinct) <= 4 else 3)
            yield Prose(f"{named}: {message}", f"  {mark} ")
        yield Prose(hint, "    ")


def sweep_report(sweep: SweepGroup) -> Iterator[Piece]:
    yield from (Headline(f"{sweep.workload}  ·  {sweep.parameter} swept"), sweep_table(sweep))
    if crossovers := sweep.crossovers():
        yield ""
    yield from (Prose(crossover, hang=2) for crossover in crossovers)


def sweep_table(sweep: SweepGroup) -> Table[float]:
    several = len({line.device for line in sweep.lines}) > 1

    def cell(line: SweepLine, size: float) -> str | None:
        result = line.points.get(size)
        if result is None or result.summary is None:
            return None
        text = seconds(result.summary.median)
        return f"{text} {ratio(result.versus.speedup.ratio)}" if result.versus is not None else text

    sized: Fact[float] = column(sweep.parameter, lambda size: size, scaled)
    columns = (column(line.label if several else line.variant, partial(cell, line), right=True) for line in sweep.lines)
    return Table((sized, *columns), sweep.sizes)


@frozen
class SweepLine:
    """One variant on one device."""

    variant: str
    device: str
    points: Mapping[float, RunResult]
    """Runs that have a time, by size in ascending order."""

    @property
    def label(self) -> str:
        """Label of the line, such as `jit cpu:0`."""
        return f"{self.variant} {self.device}"

    @property
    def medians(self) -> dict[float, float]:
        """Median seconds of a call by size."""
        return {size: run.summary.median for size, run in self.points.items() if run.summary is not None}


@frozen
class SweepGroup:
    """One workload swept over one parameter."""

    workload: str
    parameter: str
    baseline: SweepLine | None
    lines: tuple[SweepLine, ...]
    """All lines, including the baseline."""

    @property
    def sizes(self) -> list[float]:
        """Sizes of all lines, in ascending order."""
        return sorted({size for line in self.lines for size in line.points})

    def crossovers(self) -> list[str]:
        """Return, for every other line, where it overtakes the baseline or falls behind it, such as
        `jit cpu:0 is faster from n ≈ 12 000 (between 10 000 and 31 623)`."""
        if self.baseline is None:
            return []
        others = (line for line in self.lines if line is not self.baseline)
        return [text for line in others if (text := _crossover(self.baseline, line, self.parameter))]


def sweep_groups(session: Session) -> list[SweepGroup]:
    """Return the sweeps of a session: workloads in which exactly one numeric parameter takes several values."""
    by_workload = grouped((run.plan.workload, result(session, run.id)) for run in session.runs.values())
    groups = []
    for workload, members in by_workload.items():
        values: dict[str, set[object]] = {}
        for member in members:
            for name, value in member.run.plan.parameters.items():
                values.setdefault(name, set()).add(value)
        varying = [name for name, seen in values.items() if len(seen) > 1]
        if len(varying) != 1 or not all(isinstance(value, int | float) for value in values[varying[0]]):
            continue
        (parameter,) = varying
        points: dict[tuple[str, str], dict[float, RunResult]] = {}
        baseline_key: tuple[str, str] | None = None
        for member in members:
            key = (member.run.plan.variant, member.run.plan.device)
            if not member.run.plan.baseline:
                baseline_key = key
            if member.summary is not None:
                points.setdefault(key, {})[float(member.run.plan.parameters[parameter])] = member
        lines = {key: SweepLine(*key, dict(sorted(at.items()))) for key, at in points.items()}
        baseline = lines.get(baseline_key) if baseline_key is not None else None
        groups.append(SweepGroup(workload, parameter, baseline, tuple(lines.values())))
    return groups


def _crossover(baseline: SweepLine, line: SweepLine, parameter: str) -> str:
    """Return where a line crosses the baseline, from the sizes whose verdict is certain; empty if there is no verdict
    at all. The size of a crossing is interpolated on a log-log scale between two certain sizes."""
    found = {size: run.versus.speedup for size, run in line.points.items() if run.versus and size in baseline.points}
    certain = [
        (size, times.ratio)
        for size, times in found.items()
        if times.verdict in ("faster", "slower") and times.ratio is not None
    ]
    if not found:
        return ""
    if not certain and {times.verdict for times in found.values()} == {"same"}:
        return f"{line.label} is as fast as the baseline at the sizes measured"
    if not certain:
        return f"{line.label} and the baseline cannot be told apart at the sizes measured"
    verdict = "faster" if certain[-1][1] > 1 else "slower"
    for (low, before), (high, after) in reversed(list(pairwise(certain))):
        if (before > 1) != (after > 1) and low > 0:
            share = math.log(before) / (math.log(before) - math.log(after))
            size = math.exp(math.log(low) + share * (math.log(high) - math.log(low)))
            rounded = round(size, 1 - math.floor(math.log10(size)))
            between = f"(between {integer(low)} and {integer(high)})"
            return f"{line.label} is {verdict} from {parameter} ≈ {integer(rounded)} {between}"
    if len(certain) < len(line.points):
        return f"{line.label} is {verdict} at {len(certain)} of {len(line.points)} sizes, unclear at the others"
    return f"{line.label} is {verdict} at every size measured"
