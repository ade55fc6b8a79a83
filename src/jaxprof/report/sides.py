"""The sides of a comparison in words and as JSON: the verdict in one line, and what it stands on.

Whatever shows a session that holds a comparison shows these: `ab` itself, `show`, `compare`, the app.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from jaxprof.analysis import RunResult
from jaxprof.analysis.ab import AbResult, AbVersus
from jaxprof.events import ResultsCompared, SideSpec
from jaxprof.report.renderers import wrap
from jaxprof.report.runs import interval_text
from jaxprof.units import UNKNOWN, integer, percent, ratio_interval, seconds


def head_lines(result: AbResult) -> Iterator[str]:
    """The verdicts, what the sides are and what the ratios stand on, each a line without layout."""
    yield from map(verdict_line, result.versus)
    yield from (f"{side.label}: {side.title}" for side in result.plan.sides)
    yield from (*result.plan.notes, inputs_line(result))
    yield from (f"{label}: {text}" for label, text in basis_lines(result))


def ab_head(result: AbResult, width: int) -> Iterator[str]:
    """The verdicts, what the sides are, and what the ratios stand on."""
    for versus in result.versus:
        yield from wrap(verdict_line(versus), width=width, indent="  ", first="")
    yield ""
    yield from _labelled(((side.label, side.title) for side in result.plan.sides), width)
    for note in (*result.plan.notes, inputs_line(result)):
        yield from wrap(note, width=width, indent="       ")
    yield ""
    yield from _labelled(basis_lines(result), width)


def _labelled(lines: Iterable[tuple[str, str]], width: int) -> Iterator[str]:
    for label, text in lines:
        yield from wrap(text, width=width, indent="       ", first=f"  {label:<5}")


def basis_lines(result: AbResult) -> Iterator[tuple[str, str]]:
    """What the verdicts stand on, each with its label: the ratio of each side, the control, the times of a call."""
    yield from ((versus.label, _ratio_line(versus)) for versus in result.versus)
    if result.control is not None:
        yield result.control.label, _control_line(result.control)
    if medians := " · ".join(_medians(result)):
        yield "call", medians


def verdict_line(versus: AbVersus) -> str:
    """`B is faster than A, and the results agree to 1.2e-07 (2 ULP)`."""
    verdict = versus.verdict
    if verdict == "same":
        sentence = f"{versus.label} is as fast as A, within ± {percent(versus.times.margin)}"
    elif verdict == "inconclusive":
        sentence = f"{versus.label} against A: inconclusive, {versus.reason}"
        more = versus.times.launches_to_decide()
        sentence += f" (about {integer(more)} more launches would decide it)" if more else ""
    else:
        sentence = f"{versus.label} is {verdict} than A"
    if versus.results is not None and not versus.results.alike:
        return sentence  # that is the reason
    return f"{sentence}{'; ' if verdict == 'inconclusive' else ', and '}{results_text(versus.results)}"


def results_text(results: ResultsCompared | None) -> str:
    """`the results agree to 1.2e-07 (2 ULP)`, `differs by 3e-02`."""
    if results is None:
        return "the results were not compared"
    if not results.alike:
        return f"the results are not alike: {results.note}"
    if results.equal:
        return "the results are equal, bit for bit"
    if results.agree:
        ulps = "" if results.ulps is None else f" ({integer(results.ulps)} ULP)"
        return f"the results agree to {results.relative:.1e}{ulps}"
    return f"differs {results.how_far}"


def _ratio_line(versus: AbVersus) -> str:
    times = versus.times
    if times.ratio is None:
        return "not measured"
    parts = [f"{ratio_interval(times.ratio, times.low, times.high)} as fast as A"]
    parts.append(_units(versus))
    if times.between_share is not None:
        parts.append(f"{percent(times.between_share)} of the variance is between launches")
    return "; ".join(parts)


def _units(versus: AbVersus) -> str:
    times = versus.times
    launches = "1 launch: holds for these processes" if times.launches == 1 else f"{times.launches} launches"
    return f"{launches}, measured {times.measured}" if times.launches > 1 else launches


def _control_line(control: AbVersus) -> str:
    times = control.times
    if times.ratio is None:
        return "the control was not measured"
    if times.half_width is None:
        return f"A against itself: {ratio_interval(times.ratio, None, None)}, and {times.reason()} for an interval"
    half = f"± {percent(times.half_width)}"
    floor = "" if times.floor is None else f"; a difference below {percent(times.floor)} cannot be told here"
    return f"A against itself: {ratio_interval(times.ratio, times.low, times.high)}, {half}{floor}"


def inputs_line(result: AbResult) -> str:
    """What all sides are called with."""
    inputs = result.plan.inputs
    if not inputs:
        return "inputs: none"
    shown = ", ".join(inputs[:6]) + (f" and {len(inputs) - 6} more" if len(inputs) > 6 else "")
    if result.plan.same_inputs:
        return f"the same inputs for all (seed {result.baseline.plan.seed}): {shown}"
    return f"inputs of the same shapes, but other numbers, because each side makes its own: {shown}"


def _medians(result: AbResult) -> Iterator[str]:
    for side in result.sides:
        if side.summary is not None:
            yield f"{side.run.plan.side} {seconds(side.summary.median)} {interval_text(side)}".removesuffix(
                f" {UNKNOWN}"
            )


def plan_json(result: AbResult) -> dict[str, Any]:
    """What is compared: the inputs of all sides, and what differs between them in words."""
    plan = result.plan
    return {
        "inputs": {"arrays": plan.inputs, "same_numbers": plan.same_inputs, "seed": result.baseline.plan.seed},
        "notes": plan.notes,
    }


def kept_json(result: AbResult) -> dict[str, Any]:
    """A comparison as a part of its session's JSON: without what `ab_json` derives of the two programs."""
    return {
        **plan_json(result),
        "versus": [versus_json(versus) for versus in result.versus],
        "control": None if result.control is None else versus_json(result.control),
        "sides": [spec_json(side.run.id, spec_of(side, result)) for side in result.sides],
    }


def versus_json(versus: AbVersus) -> dict[str, Any]:
    """A side beside A."""
    times, results = versus.times, versus.results
    return {
        "side": versus.label,
        "verdict": None if versus.run.plan.is_control else versus.verdict,
        "sentence": None if versus.run.plan.is_control else verdict_line(versus),
        "reason": versus.reason or None,
        "margin": versus.times.margin,
        "ratio": times.ratio,
        "low": times.low,
        "high": times.high,
        "half_width": times.half_width,
        "launches": times.launches,
        "launches_to_decide": times.launches_to_decide(),
        "unit": times.unit,
        "units": times.units,
        "measured": times.measured,
        "between_share": times.between_share,
        "results": None if results is None else {
            "alike": results.alike,
            "agree": results.agree,
            "equal": results.equal,
            "relative": results.relative,
            "ulps": results.ulps,
            "where": results.where or None,
            "note": results.note or None,
        },
    }  # fmt: skip


def spec_of(side: RunResult, result: AbResult) -> SideSpec:
    """What was kept of a side; the control is the side that it repeats."""
    label = side.run.plan.side.removesuffix("'")
    found = next((spec for spec in result.plan.sides if spec.label == label), None)
    return replace(found, label=side.run.plan.side) if found is not None else SideSpec(label=label, title="")


def spec_json(run: str, spec: SideSpec) -> dict[str, Any]:
    """What a session keeps of a side."""
    return {
        "side": spec.label,
        "title": spec.title,
        "run": run,
        "variables": spec.environment,
        "revision": spec.revision or None,
        "commit": spec.commit or None,
        "dirty": spec.dirty,
    }
