"""Export the times of a session in the JSON of pytest-benchmark, which benchmark dashboards read.

A round is a sample, and `iterations` is the number of calls in each; times are seconds of one call. What the session
does not know is null. Quartiles are inclusive (`statistics.quantiles`). The exact facts of a program are in
`extra_info`.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from typing import Any

from jaxprof.analysis.run_difference import facts_of
from jaxprof.analysis.run_result import result
from jaxprof.analysis.speedup import steady_samples
from jaxprof.exports.formats import ExportSource
from jaxprof.session import Run, Session
from jaxprof.text import json_text

FORMAT = "5.2.3"
"""Version of pytest-benchmark whose format this is."""


def runs(session: Session) -> list[Run]:
    """Return the runs that have samples."""
    return [run for run in session.runs.values() if run.samples("run")]


def pieces(source: ExportSource) -> Iterator[str]:
    """Yield the times of the runs."""
    yield json_text(to_pytest_benchmark(source.session, source.runs))
    yield "\n"


def to_pytest_benchmark(session: Session, timed: Sequence[Run]) -> dict[str, Any]:
    """Return the times of these runs of a session, all of which have samples, as JSON-ready data."""
    header = session.header
    facts = header.environment
    return {
        "machine_info": {
            "node": header.host,
            "machine": facts.get("machine"),
            "system": facts.get("system"),
            "release": facts.get("kernel"),
            "python_version": facts.get("python"),
            "cpu": {"brand_raw": facts.get("cpu_model"), "count": facts.get("cores")},
        },
        "commit_info": {"id": None, "time": None, "author_time": None, "dirty": None, "project": None, "branch": None},
        "benchmarks": [_benchmark(session, run) for run in timed],
        "datetime": header.created,
        "version": FORMAT,
    }


def _benchmark(session: Session, run: Run) -> dict[str, Any]:
    plan = run.plan
    test = plan.workload.rpartition("::")[2]
    rest = [plan.variant, plan.device, *(f"{name}={value}" for name, value in plan.parameters.items())]
    exact_facts = {code: value for code, value in facts_of(session, run).items() if value is not None}
    summary = result(session, run.id).summary
    interval = summary.ci95 if summary is not None else None
    return {
        "group": None,
        "name": " ".join([test, *rest]),
        "fullname": " ".join([plan.workload, *rest]),
        "params": dict(plan.parameters) or None,
        "param": "-".join(map(str, plan.parameters.values())) or None,
        "extra_info": {
            "device": run.device_kind,
            "launches": len(run.launches) or None,
            "median_interval_95_seconds": list(interval) if interval is not None else None,
            **exact_facts,
        },
        "options": {"timer": "perf_counter", "max_time": plan.timing_seconds, "warmup": True},
        "stats": _stats(steady_samples(run), run.series["run"].calls_per_sample),
    }


def _stats(samples: Sequence[float], iterations: int) -> dict[str, Any]:
    ordered = sorted(samples)
    mean = statistics.fmean(ordered)
    deviation = statistics.stdev(ordered) if len(ordered) > 1 else 0.0
    first, median, third = (
        statistics.quantiles(ordered, n=4, method="inclusive") if len(ordered) > 1 else [ordered[0]] * 3
    )
    low, high = first - 1.5 * (third - first), third + 1.5 * (third - first)
    inside = [value for value in ordered if low <= value <= high]
    beyond = sum(abs(value - mean) > deviation for value in ordered)
    total = sum(ordered)
    return {
        "min": ordered[0],
        "max": ordered[-1],
        "mean": mean,
        "stddev": deviation,
        "rounds": len(ordered),
        "median": median,
        "iqr": third - first,
        "q1": first,
        "q3": third,
        "iqr_outliers": len(ordered) - len(inside),
        "stddev_outliers": beyond,
        "outliers": f"{beyond};{len(ordered) - len(inside)}",
        "ld15iqr": inside[0],
        "hd15iqr": inside[-1],
        "ops": len(ordered) / total if total else None,
        "total": total,
        "data": list(samples),
        "iterations": iterations,
    }
