"""A session as JSON, with the keys that `docs/json.md` promises.

A key that does not apply to a variant is absent; a value that could not be measured is null. Times are seconds, sizes
are bytes. Keys are only ever added within one `schema` major.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from jaxprof.analysis import RunResult, result
from jaxprof.analysis.ab import ab_results
from jaxprof.analysis.speedup import steady_samples
from jaxprof.events import PHASES, SCHEMA_MAJOR, SCHEMA_MINOR, STARTUP_PHASES, CheckReported
from jaxprof.report.captures import captures_json, kernels_measured_json
from jaxprof.report.kernels import kernels_json
from jaxprof.report.memory import run_memory_json
from jaxprof.report.recording.json import program_keys
from jaxprof.report.runs import environment, published
from jaxprof.report.sides import kept_json
from jaxprof.session import Run, Session
from jaxprof.stats import Summary

_PHASES_OF = {
    "numpy": ("run",),
    "eager": ("first_run", "run"),
    "jit": ("trace", "lower", "compile", "first_run", "run"),
}
"""Phases that a run of this kind always has: null if the run ended earlier. Others are present if they happened."""
_TRANSFERS = ("transfer_in", "transfer_out")
_OF_PROGRAM = ("program", "compiles", "findings", "transfers")
"""Keys of a session's first program that also stand at the top of the session."""
_MEMORY = (
    "argument_bytes",
    "output_bytes",
    "temporary_bytes",
    "alias_bytes",
    "generated_code_bytes",
    "allocator_peak_bytes",
    "allocator_limit_bytes",
)


def to_dict(session: Session, *, live: bool = False) -> dict[str, Any]:
    """The documented form as plain dicts, lists, text and numbers. `live`: the file is being written now."""
    header = session.header
    runs = [_run(session, run, live) for run in session.runs.values()]
    return {
        "schema": f"{SCHEMA_MAJOR}.{SCHEMA_MINOR}",
        "jaxprof": header.jaxprof,
        "session": {
            "id": header.session,
            "created": header.created,
            "complete": session.complete,
            "ended": session.closed.reason if session.closed is not None else None,
            "host": header.host,
            "process_index": session.process_index,
            "process_count": session.process_count or None,
            "command": list(header.command),
            "notices": session.notices,
        },
        "environment": _environment(session),
        **next(({name: run[name] for name in _OF_PROGRAM} for run in runs if "program" in run), {}),
        "runs": runs,
        **({"comparisons": comparisons} if (comparisons := list(map(kept_json, ab_results(session)))) else {}),
    }


def _environment(session: Session) -> dict[str, Any]:
    reported = environment(session)
    devices: dict[str, dict[str, Any]] = {}
    for run in session.runs.values():
        for device in run.environment.devices if run.environment is not None else []:
            devices.setdefault(str(device.get("id")), dict(device))
    return {
        "jax": reported.jax if reported else None,
        "jaxlib": reported.jaxlib if reported else None,
        "numpy": (reported.numpy or None) if reported else None,
        "python": (reported.python or None) if reported else None,
        "devices": list(devices.values()),
        "settings": dict(reported.settings) if reported else {},
        "machine": dict(session.header.environment),
    }


def _run(session: Session, run: Run, live: bool) -> dict[str, Any]:
    derived, plan, ended = result(session, run.id), run.plan, run.end(deserted=not live)
    data: dict[str, Any] = {
        "id": run.id,
        "workload": plan.workload,
        "variant": plan.variant,
        "how": plan.how,
        "device": plan.device,
        **({"side": plan.side} if plan.side else {}),
        "parameters": dict(plan.parameters),
        "preset": plan.preset,
        "status": ended.status,
        "error": ended.error or None,
        "advice": ended.advice or None,
        "phases": _phases(derived),
        "samples_seconds": list(steady_samples(run)),
    }
    jit = plan.how == "jit"
    if jit or derived.cost.source:
        data["flops"], data["accessed_bytes"] = derived.flops, derived.bytes_accessed
        data["flops_per_second"], data["bytes_per_second"] = derived.flops_per_second, derived.bytes_per_second
        data["cost_source"], data["cost_note"] = derived.cost.source or None, derived.cost.note or None
    memory = _memory(session, run)
    if jit or memory is not None:
        data["memory"] = memory
    if run.check is not None:
        data["check"] = {
            "passed": run.check.passed,
            "max_relative_error": run.check.max_relative_error,
            "tolerance": run.check.tolerance,
            "against": run.check.against,
            "precision": run.check.precision or None,
            "note": run.check.note or None,
            "elements": run.check.elements,
            "wrong_elements": run.check.wrong_elements,
            "worst": _worst(run.check),
        }
    if plan.baseline:
        data["versus"] = _versus(derived)
    if jit or run.measured:
        data["kernels"] = kernels_measured_json(session, run, kernels_json(session, run))
    data |= captures_json(session, run)
    if run.is_program:
        data |= program_keys(session, run)
    if run.environment is not None:
        data["settings"] = dict(run.environment.settings)
    if run.revision is not None:
        read = run.revision
        data["revision"] = {"repository": read.repository, "commit": read.commit, "dirty": read.dirty}
    figures = published(plan.workload, [plan.variant])
    if figures:
        data["published"] = [
            {name: None if value == "" else value for name, value in asdict(figure).items()} for figure in figures
        ]
    data["warnings"] = [
        {"code": warning.code, "message": warning.message, "advice": warning.advice or None}
        for warning in derived.warnings
    ]
    return data


def _worst(check: CheckReported) -> dict[str, str] | None:
    """The number with the largest error; None if all are equal."""
    if not check.worst_got:
        return None
    return {"at": check.worst_at, "got": check.worst_got, "expected": check.worst_expected}


def _memory(session: Session, run: Run) -> dict[str, Any] | None:
    """The peak memory and what it is made of, and XLA's and the allocator's other figures; None if nothing is known."""
    picture = run_memory_json(session, run)
    if run.memory is None and picture is None:
        return None
    figures: dict[str, Any] = {name: getattr(run.memory, name, None) for name in _MEMORY}
    figures |= {"xla_peak_bytes": getattr(run.memory, "peak_bytes", None), "peak_bytes": None, "peak_source": None}
    if picture is not None:
        names = ("peak_bytes", "parts", "asked_bytes", "buffers", "live_bytes", "peak_at")
        figures |= {name: picture[name] for name in names}
        figures["peak_source"] = picture["source"]
    return figures


def _phases(derived: RunResult) -> dict[str, Any]:
    run, seconds = derived.run, derived.phase_seconds
    phases: dict[str, Any] = {}
    started = [name for name in STARTUP_PHASES if name in seconds]
    if started:
        durations = [value for name in started if (value := seconds[name]) is not None]
        whole = sum(durations) if len(durations) == len(started) else None
        phases["startup"] = {"seconds": whole, **{name: seconds[name] for name in started}}
    for name in PHASES:
        if name in seconds or name in _PHASES_OF.get(run.plan.how, ()):
            phases[name] = _phase(derived, name)
    return phases


def _phase(derived: RunResult, name: str) -> dict[str, Any]:
    recorded = derived.run.phases.get(name)
    seconds = derived.phase_seconds.get(name)
    data: dict[str, Any] = {"seconds": seconds}
    if name in _TRANSFERS:
        moved = recorded.bytes if recorded is not None else None
        zero_copy = recorded.zero_copy if recorded is not None else None
        data |= _spread(derived, name)
        data |= {
            "bytes": moved,
            "zero_copy": zero_copy,
            "bytes_per_second": moved / seconds if moved and seconds and not zero_copy else None,
        }
    elif name == "run":
        data |= _spread(derived, name)
        if derived.run.plan.how != "numpy":
            data["dispatch_median_seconds"] = derived.dispatch_median_seconds
            data["pipelined_median_seconds"] = derived.pipelined_median_seconds
        data["first_after_pause_seconds"] = derived.first_after_pause_seconds
        data["total_seconds"] = recorded.seconds if recorded is not None else None
        data["zero_copy"] = derived.moved_nothing
        data["modes"] = _modes(derived)
    elif name in derived.stage_spreads:
        data |= _distribution(derived.stage_spreads[name])
    if name in derived.over_launches:
        over = derived.over_launches[name]
        data["ci95_seconds"] = None if over.low is None or over.high is None else [over.low, over.high]
        launches = [launch.phases for launch in derived.run.launches]
        data["launches_seconds"] = [phases[name].seconds for phases in launches if name in phases]
    if recorded is not None and recorded.note:
        data["note"] = recorded.note
    return data


def _spread(derived: RunResult, name: str) -> dict[str, Any]:
    """The statistics of a sampled phase."""
    summary = derived.summary if name == "run" else derived.transfers.get(name)
    series = derived.run.series.get(name)
    return {
        "median_seconds": summary.median if summary else None,
        "mad_seconds": summary.mad if summary else None,
        "minimum_seconds": summary.minimum if summary else None,
        "mean_seconds": summary.mean if summary else None,
        "p95_seconds": summary.p95 if summary else None,
        "maximum_seconds": summary.maximum if summary else None,
        "ci95_seconds": list(summary.ci95) if summary and summary.ci95 else None,
        "samples": summary.count if summary else 0,
        "calls_per_sample": series.calls_per_sample if series is not None else None,
    }


def _distribution(summary: Summary) -> dict[str, Any]:
    """The distribution of the times of something that happened more than once."""
    return {
        "count": summary.count,
        "minimum_seconds": summary.minimum,
        "median_seconds": summary.median,
        "mean_seconds": summary.mean,
        "maximum_seconds": summary.maximum,
    }


def _modes(derived: RunResult) -> list[dict[str, float]] | None:
    """The two modes of the samples, the faster one first; None if one may be all there is."""
    modes = derived.modes
    if modes is None:
        return None
    shares = ((modes.low, modes.low_share), (modes.high, 1 - modes.low_share))
    return [{"seconds": at, "share": share} for at, share in shares]


def _versus(derived: RunResult) -> dict[str, Any]:
    versus = derived.versus
    if versus is None:  # nothing was measured, or the call did no work
        return {"run": derived.run.plan.baseline, "speedup": None, "ci95": None, "break_even_calls": None}
    low, high, is_control = versus.speedup.low, versus.speedup.high, derived.run.plan.is_control
    return {
        "run": versus.baseline,
        "speedup": versus.speedup.ratio,
        "ci95": None if low is None or high is None else [low, high],
        "break_even_calls": versus.break_even_calls,
        "verdict": None if is_control else versus.speedup.verdict,
        "reason": None if is_control else versus.speedup.reason or None,
        "basis": versus.speedup.basis,
        "launches": versus.speedup.launches,
        "launches_to_decide": versus.speedup.launches_to_decide,
        "between_share": versus.speedup.between_share,
    }
