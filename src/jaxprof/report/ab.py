"""What `jaxprof ab` prints: the verdicts, what they stand on, exact facts, then times; and the same as JSON."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from jaxprof.analysis import RunResult
from jaxprof.analysis.ab import AbResult, AbVersus
from jaxprof.report.comparison import PHASES, WIDTH, answer, environment_table, named, tables
from jaxprof.report.comparison_report import pair_json
from jaxprof.report.renderers import records, text_lines, wrap
from jaxprof.report.sides import ab_head, plan_json, spec_json, spec_of, versus_json


def ab_lines(result: AbResult) -> Iterator[str]:
    """The report."""
    yield from ab_head(result, WIDTH)
    for versus in result.versus:
        yield from _exact(result, versus)
    yield ""
    for side in result.failed:
        run = side.run
        yield from wrap(f"{run.plan.side} {run.status}: {run.error}", width=WIDTH, indent="    ", first="  ✗ ")
        yield from wrap(run.advice, width=WIDTH, indent="    ")
    yield from _warnings(result)


def _exact(result: AbResult, versus: AbVersus) -> Iterator[str]:
    """What differs beside the time of a call: the environments, exact facts, kernels."""
    difference = result.difference(versus)
    (pair,) = difference.runs
    yield ""
    yield from wrap(f"A → {versus.label}: {answer(pair)}", width=WIDTH, indent="    ", first="  ")
    listed = list(tables(pair))
    times = [table for table in listed if table.columns is PHASES]
    exact = [table for table in listed if table.columns is not PHASES]
    for table in (environment_table(difference), *exact, *times):
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


def ab_json(result: AbResult) -> dict[str, Any]:
    """The report for programs; times in seconds, shares from 0 to 1, null for unknown."""

    def whole(versus: AbVersus) -> dict[str, Any]:
        difference = result.difference(versus)
        environment = list(records(environment_table(difference)))
        return {**versus_json(versus), **pair_json(difference.runs[0]), "environment": environment}

    return {
        **plan_json(result),
        "versus": [whole(versus) for versus in result.versus],
        "control": None if result.control is None else whole(result.control),
        "sides": [_side_json(side, result) for side in result.sides],
    }


def _side_json(side: RunResult, result: AbResult) -> dict[str, Any]:
    run, summary = side.run, side.summary
    return {
        **spec_json(run.id, spec_of(side, result)),
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
