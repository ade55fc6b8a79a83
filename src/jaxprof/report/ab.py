"""A comparison of sides as text and as JSON: the verdict in one line, what it stands on, exact facts, then times."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from jaxprof.analysis import RunResult
from jaxprof.analysis.ab import AbResult, AbVersus
from jaxprof.analysis.agreement import Agreement, how_far
from jaxprof.report.comparison import PHASES, answer, environment_table, named, tables
from jaxprof.report.comparison_report import pair_json
from jaxprof.report.renderers import records, text_lines, wrap
from jaxprof.report.runs import interval_text
from jaxprof.text import safe
from jaxprof.units import UNKNOWN, integer, percent, ratio_interval, seconds

WIDTH = 100


@dataclass(frozen=True, slots=True)
class SidesDescription:
    """What the client knows of the sides beside their session."""

    titles: dict[str, str]
    """By label, what each side is."""
    inputs: tuple[str, ...]
    """Dtype and shape of each array that all sides are called with."""
    same_inputs: bool
    """Whether the numbers in them are the same, too."""
    seed: int
    notes: tuple[str, ...] = ()
    """What differs above the numbers: environments, revisions."""


def ab_lines(result: AbResult, about: SidesDescription) -> Iterator[str]:
    """The report."""
    for versus in result.versus:
        yield safe(verdict_line(versus))
    yield ""
    for label, title in about.titles.items():
        yield from wrap(title, width=WIDTH, indent="       ", first=f"  {label}    ")
    for note in (*about.notes, _inputs_line(about)):
        yield from wrap(note, width=WIDTH, indent="       ")
    yield ""
    for versus in result.versus:
        yield from wrap(_ratio_line(versus), width=WIDTH, indent="       ", first=f"  {versus.label}    ")
    if result.control is not None:
        yield from wrap(_control_line(result.control), width=WIDTH, indent="       ", first="  A'   ")
    yield from wrap(" · ".join(_medians(result)), width=WIDTH, indent="       ", first="  call ")
    for versus in result.versus:
        yield from _exact(versus)
    yield ""
    for side in result.failed:
        run = side.run
        yield from wrap(f"{run.plan.side} {run.status}: {run.error}", width=WIDTH, indent="    ", first="  ✗ ")
        yield from wrap(run.advice, width=WIDTH, indent="    ")
    yield from _warnings(result)


def verdict_line(versus: AbVersus) -> str:
    """`B is faster than A, and the results agree to 1.2e-07 (2 ULP)`."""
    verdict = versus.verdict
    if verdict == "same":
        sentence = f"{versus.label} is as fast as A, within ± {percent(versus.margin)}"
    elif verdict == "inconclusive":
        sentence = f"{versus.label} against A: inconclusive, {versus.reason}"
        more = versus.times.launches_to_decide(versus.margin)
        sentence += f" (about {integer(more)} more launches would decide it)" if more else ""
    else:
        sentence = f"{versus.label} is {verdict} than A"
    if versus.results is not None and not versus.results.alike:
        return sentence  # that is the reason
    return f"{sentence}{'; ' if verdict == 'inconclusive' else ', and '}{results_text(versus.results)}"


def results_text(results: Agreement | None) -> str:
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
    return f"differs {how_far(results)}"


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
    half = UNKNOWN if times.half_width is None else f"± {percent(times.half_width)}"
    floor = "" if times.floor is None else f"; a difference below {percent(times.floor)} cannot be told here"
    return f"A against itself: {ratio_interval(times.ratio, times.low, times.high)}, {half}{floor}"


def _inputs_line(about: SidesDescription) -> str:
    if not about.inputs:
        return "inputs: none"
    shown = ", ".join(about.inputs[:6]) + (f" and {len(about.inputs) - 6} more" if len(about.inputs) > 6 else "")
    if about.same_inputs:
        return f"the same inputs for all (seed {about.seed}): {shown}"
    return f"inputs of the same shapes, but other numbers, because each side makes its own: {shown}"


def _medians(result: AbResult) -> Iterator[str]:
    for side in result.sides:
        if side.summary is not None:
            yield f"{side.run.plan.side} {seconds(side.summary.median)} {interval_text(side)}".removesuffix(
                f" {UNKNOWN}"
            )


def _exact(versus: AbVersus) -> Iterator[str]:
    """What differs beside the time of a call: the environments, exact facts, kernels."""
    (pair,) = versus.difference.runs
    yield ""
    yield from wrap(f"A → {versus.label}: {answer(pair)}", width=WIDTH, indent="    ", first="  ")
    listed = list(tables(pair))
    times = [table for table in listed if table.columns is PHASES]
    exact = [table for table in listed if table.columns is not PHASES]
    for table in (environment_table(versus.difference), *exact, *times):
        lines = list(text_lines(named(table, "A", versus.label), width=WIDTH))
        if lines:
            yield ""
            yield from lines


def _warnings(result: AbResult) -> Iterator[str]:
    labels_by_message: dict[str, list[str]] = {}
    for side in result.sides:
        for warning in side.warnings:
            labels_by_message.setdefault(warning.message, []).append(side.run.plan.side)
    for message, labels in labels_by_message.items():
        yield from wrap(f"{', '.join(labels)}: {message}", width=WIDTH, indent="    ", first="  ! ")


def ab_json(result: AbResult, about: SidesDescription) -> dict[str, Any]:
    """The report for programs; times in seconds, shares from 0 to 1, null for unknown."""
    return {
        "inputs": {"arrays": list(about.inputs), "same_numbers": about.same_inputs, "seed": about.seed},
        "notes": list(about.notes),
        "versus": [_versus_json(versus) for versus in result.versus],
        "control": None if result.control is None else _versus_json(result.control),
        "sides": [_side_json(side, about) for side in result.sides],
    }


def _versus_json(versus: AbVersus) -> dict[str, Any]:
    times, results = versus.times, versus.results
    return {
        "side": versus.label,
        "verdict": versus.verdict,
        "reason": versus.reason or None,
        "margin": versus.margin,
        "ratio": times.ratio,
        "low": times.low,
        "high": times.high,
        "half_width": times.half_width,
        "launches": times.launches,
        "launches_to_decide": times.launches_to_decide(versus.margin),
        "unit": times.unit,
        "units": times.units,
        "measured": times.measured,
        "between_share": times.between_share,
        "results": None if results is None else {
            "alike": results.alike,
            "agree": results.agree,
            "equal": results.equal,
            "relative": results.relative if results.relative is not None and math.isfinite(results.relative) else None,
            "ulps": results.ulps,
            "where": results.where or None,
            "note": results.note or None,
        },
        **pair_json(versus.difference.runs[0]),
        "environment": list(records(environment_table(versus.difference))),
    }  # fmt: skip


def _side_json(side: RunResult, about: SidesDescription) -> dict[str, Any]:
    run, summary = side.run, side.summary
    return {
        "side": run.plan.side,
        "title": about.titles.get(run.plan.side.removesuffix("'"), ""),
        "run": run.id,
        "workload": run.plan.workload,
        "variant": run.plan.variant,
        "device": run.plan.device,
        "python": run.python,
        "jax": run.environment.jax if run.environment is not None else None,
        "status": run.status,
        "error": run.error or None,
        "median_seconds": summary.median if summary else None,
        "ci95_seconds": list(summary.ci95) if summary and summary.ci95 else None,
        "warnings": [{"code": warning.code, "message": warning.message} for warning in side.warnings],
    }
