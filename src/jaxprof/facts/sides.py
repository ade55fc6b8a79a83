"""Describe the sides of a measured comparison in words and as JSON: the verdict in one line, and what it rests on.

Everything that shows a session with a measured comparison uses these: `compare` itself, `open`, the app.
"""

from __future__ import annotations

from collections.abc import Iterator

from jaxprof.analysis.runs.ab import AbResult
from jaxprof.analysis.runs.run_result import RunResult
from jaxprof.analysis.runs.speedup import AbVersus
from jaxprof.base.units import and_more, counted, percent, seconds
from jaxprof.base.values import frozen
from jaxprof.events import ResultsCompared, SideSpec
from jaxprof.facts import Fact, Facts, optional, pick, within
from jaxprof.facts.runs import REVISION, TIMES_COMPARED, interval_beside
from jaxprof.facts.units import INDEX, LIST, NUMBER, OBJECT, ROWS, TEXT, TEXT_BY_NAME, TRUTH
from jaxprof.findings.trials import compile_seconds_beside_none, times_tried, trial_of
from jaxprof.stats.comparison import TimeComparison, more_launches


def basis_lines(result: AbResult) -> Iterator[tuple[str, str]]:
    """Yield label and text of what the verdicts rest on: the ratio of each side, then the times of a call."""
    for versus in result.versus:
        times = versus.times
        if times.ratio is None:
            yield versus.label, "not measured"
            continue
        measured = f", measured {_HOW.get(times.measured, times.how)}" if times.launches > 1 else ""
        if times.launches == 1:
            measured = ": holds for these processes" if times.measured == "in turns" else ", not in turns"
        ratio = f"{times.ratio_text} {'as fast as A' if times.low is not None else 'without an interval'}"
        parts = [ratio, counted(times.launches, "launch") + measured]
        if times.between_share is not None:
            parts.append(f"{percent(times.between_share)} of the variance is between launches")
        yield versus.label, "; ".join(parts)
    medians = [
        f"{side.run.plan.side} {seconds(side.summary.median)}{interval_beside(side)}"
        for side in result.sides
        if side.summary is not None
    ]
    if medians:
        yield "call", "; ".join(filter(None, (" · ".join(medians), how_medians_differ(result))))


def how_medians_differ(result: AbResult) -> str:
    """Return why a ratio is not that of the medians, if that shows; otherwise an empty text."""
    medians = {side.run.id: side.summary.median for side in result.sides if side.summary is not None}
    first = medians.get(result.baseline.id)
    for versus in result.versus:
        own = medians.get(versus.run.id)
        if first and own and (why := versus.times.why_not_of_medians(first / own)):
            return why
    return ""


def verdict_line(versus: AbVersus) -> str:
    """Return the verdict in a sentence: `B is faster than A, and the results agree to 1.2e-07`."""
    if versus.run.plan.trial:
        # What a change did: `B, vmap → lax.map at f.py:17: 4.3 times as fast (3.3-5.6), same bits`.
        run, times, trial = versus.run, times_tried(versus), trial_of(versus.run.plan.trial)
        lines = run.trial.lines if run.trial is not None else ()
        folder = run.plan.target.rpartition(":")[0].rpartition("/")[0]
        where = f" at {and_more([line.short(folder) for line in lines], 3)}" if lines else ""
        head = f"{versus.label}, {trial.title}{where}{', compile' * trial.compiles}"
        if run.over and run.status != "ok" and trial.compiles and run.cut_compile_seconds is not None:
            return f"{head}: not over after {seconds(run.cut_compile_seconds)} ({run.status})"
        if run.over and run.status != "ok":
            return f"{head}: {run.status}, {run.error.partition(chr(10))[0]}"
        ratio = times.ratio_text.replace("×", " times as fast", 1)
        measured = {
            "faster": ratio,
            "slower": f"slower, {ratio}",
            "same": f"no faster, within ± {percent(times.margin)}",
            "inconclusive": f"inconclusive: {', '.join(filter(None, (ratio if times.ratio else '', times.reason)))}",
        }[times.verdict]
        if (ends := compile_seconds_beside_none(versus)) is not None:
            return f"{head}: {seconds(ends[0])}; that of A was not over after {seconds(ends[1])}"
        results = run.results
        expected = ", as expected" if trial.other_numbers else ""
        if results is None:
            return f"{head}: {measured}, {'other numbers, as expected' if expected else 'results not compared'}"
        if not results.alike:
            return f"{head}: {measured}"
        if results.equal:
            return f"{head}: {measured}, same bits"
        if results.agree:
            return f"{head}: {measured}, the same to {results.relative:.1e}"
        return f"{head}: {measured}, other numbers ({results.how_far}{expected})"
    verdict = versus.times.verdict
    if verdict == "same":
        sentence = f"{versus.label} is as fast as A, within ± {percent(versus.times.margin)}"
    elif verdict == "inconclusive":
        sentence = f"{versus.label} against A: inconclusive, {versus.times.reason}"
        sentence += more_launches_text(versus.times)
    else:
        sentence = f"{versus.label} is {verdict} than A"
    if versus.run.results is not None and not versus.run.results.alike:
        return sentence  # results that are not alike are the reason of the verdict, which the sentence has
    return f"{sentence}{'; ' if verdict == 'inconclusive' else ', and '}{results_text(versus.run.results)}"


def more_launches_text(times: TimeComparison) -> str:
    """Return what more launches would show, in parentheses after a space; an empty text if that is not known."""
    shown = more_launches(times.launches_to_decide, is_near=times.is_near)
    if not shown:
        return ""
    return f" ({shown}, within ± {percent(times.margin)})" if times.is_near else f" ({shown})"


def results_text(results: ResultsCompared | None) -> str:
    """Return how far the results agree: `the results agree to 1.2e-07`, `differs by 3e-02`."""
    if results is None:
        return "the results were not compared"
    if not results.alike:
        return f"the results are not alike: {results.note}"
    if results.equal:
        return "the results are equal, bit for bit"
    if results.agree:
        return f"the results agree to {results.relative:.1e}"
    return f"differs {results.how_far}"


_HOW = {"launches in turns": "one process after the other"}
"""Words for a way of measuring that is a noun in JSON."""


def inputs_line(result: AbResult) -> str:
    inputs = result.plan.inputs
    if not inputs:
        return "inputs: none"
    shown = and_more(inputs, 6)
    if result.plan.same_inputs:
        return f"the same inputs for all (seed {result.baseline.plan.seed}): {shown}"
    return f"inputs of the same shapes, but other numbers, because each side makes its own: {shown}"


VERSUS: Facts[AbVersus] = (
    Fact("side", TEXT, "The side that is compared with A", "label"),
    Fact("sentence", TEXT, "The verdict in words", verdict_line),
    *within("times", TIMES_COMPARED),
    Fact("results", OBJECT, "How far the results of the sides agree", "run.results", inside=(
        Fact("alike", TRUTH, "Whether they have the same structure, shapes and dtypes"),
        Fact("agree", TRUTH, "Whether the numbers agree within the tolerance"),
        Fact("equal", TRUTH, "Whether they are equal bit for bit"),
        Fact("relative", NUMBER, "The largest relative difference; null where not finite"),
        Fact("at", TEXT, "Index of the number with the largest difference", "where"),
        Fact("note", TEXT, "What else is to be known"),
    )),
)  # fmt: skip


@frozen
class SideRow:
    result: RunResult
    spec: SideSpec


SPEC: Facts[SideRow] = (
    Fact("side", TEXT, "A, B...", "spec.label"),
    Fact("title", TEXT, "What it is, in words", "spec.title"),
    Fact("run", TEXT, "Id of its run", "result.run.id"),
    Fact("variables", TEXT_BY_NAME, "Environment variables of the side", "spec.environment"),
    Fact("revision_name", TEXT, "The git revision, as it was named", "spec.revision"),
    *within("spec", pick(REVISION, "commit", "dirty")),
    optional("trial", TEXT, "Name of the change that it tries", "result.run.plan.trial"),
    optional("finding", TEXT, "Finding that proposes the change", "spec.finding"),
)
PLAN: Facts[AbResult] = (
    Fact("inputs", OBJECT, "The inputs of all sides", lambda result: result, inside=(
        Fact("arrays", LIST, "Arrays of the inputs", "plan.inputs"),
        Fact("same_numbers", TRUTH, "Whether all sides had the same numbers", "plan.same_inputs"),
        Fact("seed", INDEX, "The seed of the inputs", "baseline.plan.seed"),
    )),
    Fact("notes", LIST, "What to know about the whole", "plan.notes"),
)  # fmt: skip


def side_rows(result: AbResult) -> list[SideRow]:
    """Return the sides with their descriptions; a side that the session does not describe has an empty one."""
    by_label = {spec.label: spec for spec in reversed(result.plan.sides)}
    labelled = ((side, side.run.plan.side) for side in result.sides)
    return [SideRow(side, by_label.get(label) or SideSpec(label=label, title="")) for side, label in labelled]


KEPT: Facts[AbResult] = (
    *PLAN,
    Fact("versus", ROWS, "Each side beside A", inside=VERSUS),
    Fact("sides", ROWS, "What was compared", side_rows, inside=SPEC),
)
"""A measured comparison as a part of its session, without the differences between the programs that `facts.comparisons`
has."""
