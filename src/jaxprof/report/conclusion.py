"""Write the last three lines of every command that measures: what costs most, how sure that is, what to do next.

The first line names the largest costs, whether or not anything can be done about them, and its parts add up to the
whole. What is not known is named in the line where it is missing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from jaxprof.base.grouping import totals
from jaxprof.base.text import safe
from jaxprof.base.units import UNKNOWN, counted, parts_of, percent, seconds, whole_percents
from jaxprof.base.values import frozen
from jaxprof.report import WIDTH, wrap
from jaxprof.session.files import lasting_name

if TYPE_CHECKING:
    from pathlib import Path

    from jaxprof.analysis.programs.result import ProgramResult
    from jaxprof.analysis.runs.ab import AbResult
    from jaxprof.analysis.runs.run_result import RunResult
    from jaxprof.findings import Explanation
    from jaxprof.findings.compare.gate import GateResult
    from jaxprof.findings.compare.session_difference import SessionDifference
    from jaxprof.jobs.findings import JobFigures
    from jaxprof.session import Session

_LARGEST = 3
_LEAST_SHARE = 0.005
"""Parts with a smaller share are not named, because they would show as 0 %."""
LABEL_WIDTH = 13
"""Columns of the label before each line of a conclusion."""
_NO_COST = "unknown: nothing was measured"
_STATES = {
    "compile": "compiling",
    "lower": "lowering",
    "trace": "tracing",
    "import": "imports",
    "calls": "calls of compiled functions",
    "ending": "after its last line",
}
"""Words for states and phases in a sentence. Those that are not listed go by their own names."""


@frozen
class Conclusion:
    """What costs most, how sure that is, and what to do."""

    cost: str
    """The largest costs; what is beside them stands in lines of its own."""
    certainty: str
    action: str
    command: str = ""
    from_file: bool = False
    """Whether the command has words of a file that this machine did not record."""


def conclusion_lines(result: Conclusion, width: int = WIDTH) -> Iterator[str]:
    """Yield the three parts with their labels, wrapped to `width` columns, and the command under them."""
    indent = " " * LABEL_WIDTH
    for label, text in (("costs most", result.cost), ("how sure", result.certainty), ("do next", result.action)):
        first, *others = text.split("\n")
        yield from wrap(first, first=f"{label:<{LABEL_WIDTH}}", width=width)
        for line in others:
            yield from wrap(line, first=indent, width=width)
    if result.command:
        yield f"{indent}{'from the file: ' if result.from_file else ''}{safe(result.command)}"


def closing_lines(session: Session, path: Path | None, width: int = WIDTH) -> Iterator[str]:
    """Yield the conclusion of a session that was just recorded. `path`: where it is; None if it could not be kept."""
    from jaxprof.findings.derive import explanation

    found = conclusion(explanation(session, "last" if path is None else lasting_name(path)))
    yield from conclusion_lines(found if path is not None else replace(found, command=""), width)


def conclusion(explanation: Explanation) -> Conclusion:
    from jaxprof.analysis.target import command
    from jaxprof.findings import comparison_command
    from jaxprof.findings.trials import PROPOSED, changeable_runs

    cost, certainty = cost_and_certainty(explanation)
    unknown = next((abstention for abstention in explanation.abstentions if abstention.command), None)
    leading = explanation.leading
    if leading is not None:
        count = len(explanation.findings) + explanation.left_out
        more = f" ({counted(count, 'finding')} about less)" if count else ""
        return Conclusion(cost, certainty, f"{leading.reason}{more}", leading.command, leading.from_file)
    if explanation.findings:
        first, others = explanation.findings[0], len(explanation.findings) - 1 + explanation.left_out
        at = first.where.short(first.directory) if first.where is not None else "".join(first.kernels[:1])
        action = f"{first.code} at {at}: " if at else f"{first.code}: "
        action += first.fix.split(". ")[0].rstrip(".")
        if others:
            action += f" ({counted(others, 'more finding')})"
        runs = explanation.session.runs.values() if explanation.session is not None else ()
        is_tried = first.code in PROPOSED and len(changeable_runs(runs)) == 1
        words = ("compare", explanation.name, "--try") if is_tried else ("explain", explanation.name)
        return Conclusion(cost, certainty, action, command(*words))
    session = explanation.session if explanation.is_unmeasured else None
    if session is not None and session.runs and all(run.over or run.deserted for run in session.runs.values()):
        recorded = explanation.subject == "program" and unknown is not None and unknown.command
        again = recorded or comparison_command(session) or command("run", "--from", explanation.name)
        return Conclusion(cost, certainty, "run it again to its end", again, session.from_file)
    if unknown is not None:
        action = f"{explanation.nothing_found}; unknown: {unknown.reason}"
        return Conclusion(cost, certainty, action, unknown.command, unknown.from_file)
    return Conclusion(cost, certainty, explanation.nothing_found)


def cost_and_certainty(explanation: Explanation) -> tuple[str, str]:
    if explanation.job is not None:
        return job_cost(explanation.job)
    assert explanation.session is not None
    derive_by_subject: Mapping[str, Callable[[Session], tuple[str, str]]] = {
        "program": longest_program_cost,
        "comparison": _comparison_cost,
        "runs": _runs_cost,
        "profile": _profile_cost,
    }
    derive = derive_by_subject.get(explanation.subject)
    return derive(explanation.session) if derive is not None else (_NO_COST, "no run was recorded")


def _state(name: str) -> str:
    return _STATES.get(name, name.replace("_", " "))


def largest(times: Mapping[str, float], whole: float, words: Callable[[str], str] = _state) -> str:
    """Return the largest parts of `whole` seconds, with printed figures that add up: `compiling 60.0 s (62 %), imports
    20.1 s (21 %), ..., the rest 4.9 s (5 %) of 97.0 s`. `words`: what each part is called."""
    ordered = sorted(((took, name) for name, took in times.items() if took > 0), reverse=True)
    least = _LEAST_SHARE * whole
    shown = [(words(name), took) for took, name in ordered[:_LARGEST] if took >= least]
    if not shown:
        return f"unknown: no sample shows where {seconds(whole)} went"
    rest = whole - sum(took for _, took in shown)
    if rest >= least:
        shown.append(("the rest", rest))
    else:
        whole = sum(took for _, took in shown)
    texts, total = parts_of([took for _, took in shown], whole)
    percents = whole_percents([took for _, took in shown])
    parts = [f"{name} {text} ({share} %)" for (name, _), text, share in zip(shown, texts, percents, strict=True)]
    return f"{', '.join(parts)} of {total}"


def longest_program_cost(session: Session) -> tuple[str, str]:
    """Return the first two lines of the program that took longest."""
    from jaxprof.findings.program_result import program_result

    programs = [program_result(session, run.id) for run in session.programs]
    return program_cost(max(programs, key=lambda program: program.wall_seconds or 0.0))


def program_cost(program: ProgramResult) -> tuple[str, str]:
    from jaxprof.report.program_words import verdict, widest_error

    times = {state: took for state, took in program.spent.items() if state != "not_seen"}
    if not times or not program.wall_seconds:
        return "unknown: where its time went was not recorded", "nothing was sampled"
    times["ending"] = program.ending_seconds
    parts = {_state(state): took for state, took in times.items()}
    outside = program.outside_loop
    if outside is not None:
        # The host's time outside the hot loop is a part of its own, if it is one of the largest.
        where, function = outside.where.short(program.directory), outside.where.function
        named = f"at {where}" if function in ("", "<module>") else f"in {function}(), {where}"
        label = safe(f"{'before' if outside.before else 'outside'} the loop (most {named})")
        apart = {_state(state): took - outside.states.get(state, 0.0) for state, took in times.items()}
        apart[label] = sum(outside.states.values())
        if label in sorted(apart, key=lambda name: -apart[name])[:_LARGEST]:
            parts = apart
    basis = "compile times are exact" if any(share.exact and share.seconds > 0 for share in program.timeline) else ""
    if program.samples:
        half = widest_error(program.samples)
        error = f", each within {percent(half)} of the wall time" if half < 0.5 else ", too few to say how exact"
        basis += f"{'; the rest' if basis else 'all'} from {counted(program.samples, 'sample')}{error}"
    basis = basis or "nothing was sampled"
    words = filter(None, (verdict(program) if program.verdict.kind is not None else "", basis))
    return largest(parts, program.wall_seconds, words=str), "; ".join(words)


def _runs_cost(session: Session) -> tuple[str, str]:
    """Return the first two lines of the run that takes most time before its second call. A function under `jax.jit`
    comes first, because that is what people deploy; where the same op by op takes longer, a further line says so."""
    from jaxprof.analysis.runs.run_result import results
    from jaxprof.facts.runs import interval_text
    from jaxprof.report.runs import check_text, versus_sentence

    measured = [result for result in results(session) if result.summary is not None]
    if not measured:
        runs = session.runs.values()
        ends = Counter(run.shown.status for run in runs)
        if any(run.plan.how == "compile" for run in runs):
            why = "compiled, and not run"
        elif len(ends) == 1:
            why = f"{counted(len(runs), 'run')}, {'all ' if len(runs) > 1 else ''}{next(iter(ends))}"
        else:
            why = f"{counted(len(runs), 'run')}, {', '.join(f'{count} {end}' for end, count in ends.items())}"
        return f"unknown: {why}", "no time was measured"
    compiled = [result for result in measured if any(result.one_time_phases.values())]
    jitted = [result for result in measured if result.run.plan.how == "jit"]
    run = max(jitted or compiled or measured, key=_start_seconds)
    once = {name: spent for name, spent in run.one_time_phases.items() if spent}
    call = f"{seconds(run.summary.median)} a call" if run.summary is not None else ""
    if not once.keys() - {"first_run"}:
        cost = f"{_name(run)}: {call}"
    else:
        cost = f"{_name(run)}: {largest(once, sum(once.values()))} up to the end of the first call; then {call}"
    started = (each for each in measured if each.run.plan.how == "eager" and each.one_time_phases)
    op_by_op = max(started, key=_start_seconds, default=run)
    if (took := _start_seconds(op_by_op)) > _start_seconds(run):
        cost += f"\nop by op, {_name(op_by_op)}: {seconds(took)} up to the end of the first call"
    # How certain its figures are: the intervals, the verdict, the check, the warnings.
    interval = interval_text(run)
    known = "the error of a call is unknown" if interval == UNKNOWN else f"a call {interval}"
    parts = [f"{known}, in {counted(max(1, len(run.run.launches)), 'launch')}"]
    baseline = session.runs.get(run.run.plan.baseline)
    if baseline is not None and run.versus is not None and not run.moved_nothing:
        speedup = run.versus.speedup
        decided = speedup.verdict != "inconclusive"
        words = f"beside {baseline.as_baseline} {speedup.words(baseline.as_baseline)}"
        parts.append(versus_sentence(run, baseline.as_baseline) if decided else words)
    if (check := check_text(run)) not in (UNKNOWN, "not checked"):
        parts.append(f"result {check}")
    doubts = [warning for warning in run.warnings if warning.code != "zero_copy"]
    if doubts:
        parts.append(counted(len(doubts), "warning"))
    return cost, "; ".join(parts)


def _start_seconds(run: RunResult) -> float:
    """Return the seconds up to the end of the first call; where they are unknown, those of a call."""
    median = run.summary.median if run.summary is not None else 0.0
    return sum(run.one_time_phases.values()) or median


def _name(run: RunResult) -> str:
    return safe(f"{run.run.id} {run.run.label}")


def _comparison_cost(session: Session) -> tuple[str, str]:
    from jaxprof.analysis.runs.ab import ab_results

    return comparison_cost(ab_results(session))


def comparison_cost(compared: Sequence[AbResult]) -> tuple[str, str]:
    """Return the first two lines of measured comparisons: what each side takes, and what the verdicts rest on."""
    from jaxprof.facts.sides import basis_lines, how_medians_differ, verdict_line

    verdicts = [verdict_line(versus) for result in compared for versus in result.versus]
    medians = [
        f"{side.run.plan.side} {seconds(side.summary.median)} a call"
        for result in compared
        for side in result.sides
        if side.summary is not None
    ]
    basis = [f"{label}: {text}" for result in compared for label, text in basis_lines(result) if label != "call"]
    basis += filter(None, map(how_medians_differ, compared))
    return "; ".join(filter(None, (", ".join(medians), *verdicts))) or _NO_COST, "; ".join(basis) or "not measured"


def _profile_cost(session: Session) -> tuple[str, str]:
    """Return the first two lines of a profile: which kernels took the time of its mean device, and whether the capture
    can be believed."""
    from jaxprof.analysis.kernels.measured import device_count, whole_profile
    from jaxprof.trace.checks import TRUST

    kernels = whole_profile(session)
    devices = device_count(kernels)
    whole = sum(kernel.self_seconds for kernel in kernels) / devices
    if not whole:
        return "unknown: no kernel was recorded", "nothing was captured"
    several = {name for name, count in Counter(kernel.name for kernel in kernels).items() if count > 1}
    times = totals(
        (f"{kernel.name} of {kernel.module}" if kernel.name in several else kernel.name, kernel.self_seconds / devices)
        for kernel in kernels
    )
    doubted = sorted(
        {row.code for run in session.runs.values() for trust in run.trust.values() for row in trust.rows
         if row.verdict != "good"}
    )  # fmt: skip
    titles = [TRUST[code][0] if code in TRUST else code for code in doubted]
    certain = f"doubtful: {'; '.join(titles)}" if doubted else "captured by the profiler, which also takes time"
    return largest(times, whole, words=str), certain


def job_cost(job: JobFigures) -> tuple[str, str]:
    goodput = job.goodput
    if goodput is None:
        return "unknown: no process was seen in a loop", f"{len(job.processes)} of {job.count} processes could be read"
    seen = f"{goodput.processes} of {counted(job.count, 'process', 'processes')}"
    return (
        f"{largest(goodput.causes, goodput.seconds)} ({seen} together)",
        "from samples; the useful part is an upper bound, because time that all wait together counts as useful",
    )


def gate_conclusion(result: GateResult, details: str) -> Conclusion:
    """Return the conclusion of a gate: the limit exceeded by most. `details`: the command that shows what differs."""
    from jaxprof.facts.gate import row_text

    by_severity = "exceeded", "undecided", "within"
    worst = min(result.rows, key=lambda row: (by_severity.index(row.state), -abs(row.growth or 0.0)), default=None)
    cost = row_text(worst) if worst is not None else "unknown: nothing was compared"
    if not any(row.limit.is_time for row in result.rows):
        certainty = "facts are exact, for this compiler"
    elif result.measured is not None:
        _, certainty = comparison_cost([result.measured])
    else:
        certainty = "times were not measured together, so the machine may explain them"
    if result.outcome == "within":
        return Conclusion(cost, certainty, "nothing: no limit was exceeded")
    action = {
        "exceeded": "find what grew",
        "undecided": "find out what is unknown: the reason stands beside each limit",
    }[result.outcome]
    return Conclusion(cost, certainty, action, details)


def difference_conclusion(difference: SessionDifference, name: str) -> Conclusion:
    """Return the conclusion of two sessions. `name`: what commands call the second one."""
    from jaxprof.analysis.target import command
    from jaxprof.facts.comparisons import answer
    from jaxprof.findings.compare.session_difference import compilers_between

    if not difference.runs:
        both = difference.before.runs and difference.after.runs
        action = "name a run of each" if both else "compare sessions that have runs"
        return Conclusion("unknown: the sessions have no run in common", "nothing was compared", action)
    answers = dict.fromkeys(answer(pair) for pair in difference.runs)
    known = [words for words in answers if not words.startswith("no exact fact")] or list(answers)
    cost = "; ".join(known[:_LARGEST])
    certainty = "exact facts do not vary; the verdict of each time stands in its row"
    if difference.before is not difference.after:
        certainty = "exact facts do not vary; times were not measured together, so the machine may explain them"
    cut = [
        name for name, side in (("first", difference.before), ("second", difference.after)) if not side.seen_to_its_end
    ]
    if cut:
        certainty = f"not seen to its end: the {' and the '.join(cut)}; {certainty}"
    compilers = [compilers_between(difference, pair) for pair in difference.runs]
    if all(compilers):
        made = ", ".join(f"{row.code} {row.before} and {row.after}" for row in compilers[0])
        return Conclusion(cost, certainty, f"nothing in the program: it is the same, compiled by {made}")
    return Conclusion(cost, certainty, "see what is left to change in the second", command("explain", name))
