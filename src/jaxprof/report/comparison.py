"""Report a comparison, of two sessions or of the sides of a measured one: environments, then for each run its times,
exact facts, kernels, collectives, findings.

Text shows what differs and counts the rest; JSON has everything. A value that a side does not have is a dash, and its
row has no difference. Two HLO modules are also compared as text, a diff with some lines around each change.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from jaxprof.analysis.runs.ab import AbResult, ab_results
from jaxprof.base.text import safe
from jaxprof.base.units import counted, integer, seconds
from jaxprof.facts import Fact, Facts, column
from jaxprof.facts.comparisons import (
    BUFFERS_COMPARED,
    COLLECTIVES_COMPARED,
    ENVIRONMENT,
    EXACT,
    FINDINGS_COMPARED,
    FUNCTIONS_COMPARED,
    KERNELS_COMPARED,
    PHASES,
    PROGRAM_FINDINGS_COMPARED,
    STAGES_COMPARED,
    STATES_COMPARED,
    SUMS,
    answer,
    comparable_environment,
    exact_facts,
    figure_text,
    growth_text,
    kernel_counts,
    seconds_difference,
)
from jaxprof.facts.gate import LIMITS, notes, reason_text
from jaxprof.facts.runs import RunRow
from jaxprof.facts.sides import verdict_line
from jaxprof.findings.compare import Difference, FigureDifference
from jaxprof.findings.compare.gate import GateResult
from jaxprof.findings.compare.kernel_difference import KernelDifference, KernelDifferences
from jaxprof.findings.compare.session_difference import (
    ModuleDifference,
    RunDifference,
    SessionDifference,
    ab_difference,
    module_difference,
)
from jaxprof.hlo.text.model import Instruction, Module
from jaxprof.hlo.text_difference import text_difference
from jaxprof.report import WIDE, Headline, Piece, Prose, Table, report_lines
from jaxprof.report.program_words import words
from jaxprof.report.runs import ab_head, parameters_text, problems
from jaxprof.session import Session

_CONTEXT_LINES = 2
"""Unchanged lines that are shown before and after each change."""
_SETTINGS_SHOWN = 12
_SIGNS = {"same": " ", "new": "+", "gone": "-"}


def difference_pieces(before: Module, after: Module) -> Iterator[Piece]:
    """Yield the report: the kernels, the exact figures, then the text, a line at a time."""
    difference = text_difference(before, after)
    # how the same result is computed: the schedule, settings of kernels, the code of custom kernels
    for name, ours, theirs in difference.reordered:
        yield safe(f"%{name} runs in another order: the first that differ are %{ours} and %{theirs}")
    for setting in difference.settings[:_SETTINGS_SHOWN]:
        yield safe(f"%{setting.kernel}: {setting.name} {setting.before or '-'} → {setting.after or '-'}")
    if len(difference.settings) > _SETTINGS_SHOWN:
        yield f"and {len(difference.settings) - _SETTINGS_SHOWN} more settings of kernels"
    if difference.code:
        named = ", ".join(f"%{name}" for name in difference.code[:3])
        yield safe(
            f"the code of {counted(len(difference.code), 'custom kernel')} has different bytes ({named}): whether it "
            "computes the same is unknown, because the code includes source line numbers"
        )
    if difference.reordered or difference.settings or difference.code:
        yield ""
    if not difference.differs:
        yield "no difference in the computation: names, numbering and source locations are ignored"
        return
    exact = module_difference(before, after)
    if exact.kernels is not None and exact.kernels.rows:
        yield f"kernels: {kernel_counts(exact.kernels)}"
        yield from (kernels_table(exact.kernels), facts_table(exact), "")
    for attribute in difference.header:
        yield safe(f"- {attribute.name}={attribute.before}") if attribute.before else safe(f"- no {attribute.name}")
        yield safe(f"+ {attribute.name}={attribute.after}") if attribute.after else safe(f"+ no {attribute.name}")
    for number, computation in enumerate(difference.computations):
        if number or difference.header:
            yield ""
        pair = computation.computation
        names = dict.fromkeys(f"%{side.name}" for side in (pair.before, pair.after) if side is not None)
        yield safe(f"@@ {' → '.join(names)}: {pair.status}")
        shown: set[int] = set()
        for number, line in enumerate(computation.lines):
            if line.status != "same":
                shown.update(
                    range(max(0, number - _CONTEXT_LINES), min(len(computation.lines), number + _CONTEXT_LINES + 1))
                )
        last = -1
        for number, line in enumerate(computation.lines):
            if number not in shown:
                continue
            if number > last + 1:
                yield "  ..."
            last = number
            if line.status == "changed" and line.before is not None and line.after is not None:
                yield safe(f"- {_text(line.before)}")
                yield safe(f"+ {_text(line.after)}")
            else:
                yield safe(f"{_SIGNS[line.status]} {_text(line.either)}")
        if last < len(computation.lines) - 1:
            yield "  ..."


def _text(instruction: Instruction) -> str:
    """Return the instruction's line without its source location and the settings of the backend and frontend."""
    text = instruction.text
    for key in ("metadata", "backend_config", "frontend_attributes"):
        if key in instruction.attributes:
            text = text.replace(f", {key}={instruction.attributes[key]}", "")
    return text


_ROWS_SHOWN = 20
_REST = "and {} more: --format json has all"
_BOTH_SHOWN: Facts[FigureDifference] = (
    column("first", lambda row: figure_text(row, "before"), right=True),
    column("second", lambda row: figure_text(row, "after"), right=True),
)
_TITLES = {fact.key: fact.title or "" for fact in EXACT}
_SUM_TITLES = {fact.key: fact.title for fact in SUMS}
_FIGURES_SHOWN: Facts[FigureDifference] = (
    column("exact fact", lambda row: _TITLES[row.code] + (" (estimate)" if row.estimate else "")),
    *_BOTH_SHOWN,
    column("difference", growth_text, right=True),
)


def title(pair: RunDifference) -> str:
    """Return the heading of a pair, `selu jit cpu:0  ·  n = 1 000 000`, with both labels if they differ."""
    before, after = pair.before, pair.after
    parameters = parameters_text(after.plan.parameters) if after.plan.how != "imported" else ""
    label = after.label if before.label == after.label else f"{before.label} → {after.label}"
    return f"{label}  ·  {parameters}" if parameters else label


def tables(pair: RunDifference) -> Iterator[Table[Any]]:
    """Yield the tables of a pair for people: what differs, and a note of how many rows do not."""
    program = pair.program
    if program is not None:
        known = [row for row in program.sums if row.before is not None or row.after is not None]
        yield Table((column("program", lambda row: _SUM_TITLES[row.code]), *_BOTH_SHOWN), known)
        goes_on = {stage.stage for side in (program.before, program.after) for stage in side.running}
        yield Table(
            (column("main thread", lambda row: words(row.code)), *STATES_COMPARED),
            [row for row in program.states if row.before or row.after or row.code in goes_on],
        )
        yield _differing(FUNCTIONS_COMPARED, program.functions, "functions")
        yield _differing(PROGRAM_FINDINGS_COMPARED, program.findings, "findings")
    yield Table(PHASES, pair.phases)
    yield facts_table(pair)
    if pair.kernels is not None:
        yield kernels_table(pair.kernels)
    if pair.collectives:
        yield Table(COLLECTIVES_COMPARED, pair.collectives)
    yield _differing(FINDINGS_COMPARED, pair.findings or (), "findings")
    yield _differing(BUFFERS_COMPARED, pair.buffers or (), "buffers")
    if pair.passes is not None:
        yield Table(STAGES_COMPARED, pair.passes, most=6, rest="and {} shorter ones")


def facts_table(difference: ModuleDifference) -> Table[FigureDifference]:
    """Return the table of the exact facts, without those that are 0 or unknown on both sides."""
    return Table(_FIGURES_SHOWN, [fact for fact in exact_facts(difference) if fact.before or fact.after])


def kernels_table(kernels: KernelDifferences) -> Table[KernelDifference]:
    """Return the table of the kernels that differ, and of those that take part in the difference of the times."""
    timed = kernels.difference_seconds is not None
    rows = [row for row in kernels.rows if row.status in ("new", "gone", "changed") or (timed and row.part_seconds)]
    notes: list[str] = []
    if same := len(kernels.rows) - len(rows):
        notes.append(f"kernels that are the same: {integer(same)}")
    if timed:
        notes.append(
            f"all kernels of a call: {seconds(kernels.before_seconds)} → {seconds(kernels.after_seconds)} "
            f"({seconds_difference(kernels.difference_seconds)}); the differences of all kernels add up to this. "
            "The two sides were captured at different times."
        )
    return Table(KERNELS_COMPARED, rows, notes=tuple(notes), most=_ROWS_SHOWN, rest=_REST)


def with_side_names(table: Table[Any], second: str) -> Table[Any]:
    def with_names(text: str) -> str:
        return re.sub(r"\bsecond$", lambda _: second, re.sub(r"\bfirst$", "A", text))

    columns = [fact if fact.title is None else replace(fact, title=with_names(fact.title)) for fact in table.columns]
    return replace(table, columns=columns)


def _differing(columns: Sequence[Fact[Any]], rows: Sequence[Any], what: str) -> Table[Any]:
    shown = [row for row in rows if row.status != "same"]
    same = len(rows) - len(shown)
    notes = (f"{what} that are the same: {integer(same)}",) if same else ()
    return Table(columns, shown, notes=notes, most=_ROWS_SHOWN, rest=_REST)


def environment_table(difference: SessionDifference) -> Table[Difference[str]]:
    listed, one_sided = comparable_environment(difference)
    rows = [row for row in listed if row.differs]
    same = len(listed) - len(rows)
    notes = ["one side reports no JAX, whose settings are left out"] if one_sided else []
    if not listed:
        notes = ["one side reports no environment" if difference.environment else "no run reports its environment"]
    elif rows and same:
        notes.append(f"{counted(same, 'other entry is', 'other entries are')} the same")
    elif not rows:
        notes.append(f"the environments are the same ({counted(same, 'entry', 'entries')})")
    return Table(ENVIRONMENT, rows, notes=tuple(notes))


def _session_line(name: str, session: Session) -> str:
    header = session.header
    return safe(f"{name}: {header.session}  ·  {header.created}  ·  {header.host}  ·  {session.state_words}")


def comparison_head(difference: SessionDifference) -> Iterator[Piece]:
    """Yield what was not seen, and what explains all that follows: the answer of programs, the verdict of two runs of
    one session."""
    # What is unknown of the two sessions stands before their differences.
    sides = {"the first": difference.before, "the second": difference.after}
    if difference.before is difference.after:
        sides = {"the session": difference.before}
    notices = [f"{name}: {text}" for name, session in sides.items() for text in session.unseen]
    yield from (Prose(notice, "note: ") for notice in notices)
    yield from [""] * bool(notices)
    for pair in difference.runs:
        phase = next((phase for phase in pair.phases if phase.code == "run"), None)
        if pair.program is not None:
            yield from (Prose(answer(pair), "", 2), "")
        elif difference.before is not difference.after:
            continue
        elif pair.side is not None:
            yield from (Prose(verdict_line(pair.side), "", 2), "")
        elif phase is not None and phase.times.ratio is not None:
            speedup = phase.times
            ours, theirs = pair.before.plan.variant, pair.after.plan.variant
            if ours == theirs:
                ours, theirs = (f"{run.plan.variant} ({run.id})" for run in (pair.before, pair.after))
            start = f"{theirs} against {ours}: " if speedup.verdict == "inconclusive" else f"{theirs} is "
            yield Headline(start + speedup.words(ours))
            medians = f"{seconds(phase.before)} → {seconds(phase.after)} a call, medians"
            yield from (Prose(f"{speedup.ratio_text}  {speedup.basis}  ·  {medians}"), "")


def comparison_body(difference: SessionDifference) -> Iterator[Piece]:
    """Yield what differs: the environments, then for each pair of runs its tables."""
    if difference.before is difference.after:  # two of its runs
        yield _session_line("session", difference.before)
    else:
        for name, session in (("first", difference.before), ("second", difference.after)):
            yield _session_line(name, session)
            yield from (Prose(verdict_line(kept), hang=2) for result in ab_results(session) for kept in result.versus)
    yield from ("", environment_table(difference))
    for pair in difference.runs:
        yield from ("", Headline(title(pair)))
        if pair.side is not None and difference.before is not difference.after:
            yield Prose(verdict_line(pair.side))
        if pair.program is None:
            yield Prose(answer(pair))
        yield from (Prose(f"not the same measurement: {reason}") for reason in pair.unlike)
        yield from _apart(tables(pair))
    notes: list[str] = []
    if not difference.runs:
        first, second = (next(iter(session.runs), None) for session in (difference.before, difference.after))
        if first is None or second is None:
            why = f"the {'first' if first is None else 'second'} has no runs."
        else:
            why = (
                "workload, variant, kind of device and parameters must be equal. To compare two runs all the same, "
                f"name a run of each: jaxprof compare FIRST:{first} SECOND:{second}."
            )
        notes.append(f"No run of the first session matches a run of the second: {why}")
    for side, runs in (("first", difference.only_before), ("second", difference.only_after)):
        for run in runs:
            parameters = parameters_text(run.plan.parameters)
            notes.append(f"only in the {side} session: {run.id} {run.label}{f' ({parameters})' if parameters else ''}")
    if notes:
        yield ""
        yield from (Prose(note, "", 2) for note in notes)


def _apart(listed: Iterable[Table[Any]]) -> Iterator[Piece]:
    for table in listed:
        if table.rows or table.notes:
            yield from ("", table)


def ab_lines(result: AbResult) -> Iterator[str]:
    pieces = list(ab_head(result))
    for versus in result.versus:  # environments, exact facts and kernels, and last the phases
        difference = ab_difference(result, versus)
        (pair,) = difference.runs
        pieces += ["", Prose(f"A → {versus.label}: {answer(pair)}", hang=2)]
        listed = sorted(tables(pair), key=lambda table: table.columns is PHASES)
        pieces += _apart(with_side_names(table, versus.label) for table in (environment_table(difference), *listed))
    sides = (RunRow(side.run.plan.side, side) for side in result.sides)
    yield from report_lines((*pieces, *problems(sides), ""), WIDE)


def gate_report(result: GateResult) -> Iterator[Piece]:
    exceeded = sum(row.state == "exceeded" for row in result.rows)
    if result.outcome == "exceeded":
        yield Prose("a limit was exceeded" if exceeded == 1 else f"{exceeded} limits were exceeded", "", 2)
    else:
        yield Prose("undecided" if result.outcome == "undecided" else "within the limits", "", 2)
    yield from map(Prose, notes(result))
    yield Table(LIMITS, result.rows, is_wide=True)
    for row in result.rows:
        if reason := reason_text(row):
            yield Prose(f"{row.limit.text} {row.state}: {reason}", hang=2)
