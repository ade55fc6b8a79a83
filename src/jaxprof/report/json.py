"""A session as JSON, with the keys that `docs/json.md` promises.

What does not exist for a variant is absent; what could not be measured is null. Times are seconds, sizes are bytes.
Keys are only ever added within one `schema` major.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from jaxprof.events import PHASES, SCHEMA_MAJOR, SCHEMA_MINOR, STARTUP_PHASES
from jaxprof.report.captures import captures_json, kernels_measured_json
from jaxprof.report.groups import environment, published
from jaxprof.report.kernels import kernels_json
from jaxprof.report.memory import memory_json
from jaxprof.report.outcome import outcome
from jaxprof.report.recording.json import program_keys
from jaxprof.results import RunResult, result
from jaxprof.results.programs.derive import is_program
from jaxprof.session import Run, Session

_PHASES_OF = {
    "numpy": ("run",),
    "eager": ("first_run", "run"),
    "jit": ("trace", "lower", "compile", "first_run", "run"),
}
"""Phases that a run of this kind always has: null where it did not get so far. Others are there when they happened."""
_TRANSFERS = ("transfer_in", "transfer_out")
_OF_PROGRAM = ("program", "compiles", "findings", "transfers")
"""Keys of a program that a session which holds one has at its top, too: those of its first."""
_MEMORY = (
    "argument_bytes",
    "output_bytes",
    "temporary_bytes",
    "alias_bytes",
    "generated_code_bytes",
    "peak_bytes",
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
            "process_index": header.process_index,
            "process_count": header.process_count,
            "command": list(header.command),
            "notices": session.notices,
        },
        "environment": _environment(session),
        **next(({name: run[name] for name in _OF_PROGRAM} for run in runs if "program" in run), {}),
        "runs": runs,
    }


def _environment(session: Session) -> dict[str, Any]:
    found = environment(session)
    devices: dict[str, dict[str, Any]] = {}
    for run in session.runs.values():
        for device in run.environment.devices if run.environment is not None else []:
            devices.setdefault(str(device.get("id")), dict(device))
    return {
        "jax": found.jax if found else None,
        "jaxlib": found.jaxlib if found else None,
        "numpy": (found.numpy or None) if found else None,
        "python": (found.python or None) if found else None,
        "devices": list(devices.values()),
        "settings": dict(found.settings) if found else {},
        "machine": dict(session.header.environment),
    }


def _run(session: Session, run: Run, live: bool) -> dict[str, Any]:
    found, plan, ended = result(session, run.id), run.plan, outcome(session, run, live=live)
    data: dict[str, Any] = {
        "id": run.id,
        "workload": plan.workload,
        "variant": plan.variant,
        "how": plan.how,
        "device": plan.device,
        "parameters": dict(plan.parameters),
        "preset": plan.preset,
        "status": ended.status,
        "error": ended.error or None,
        "advice": ended.advice or None,
        "phases": _phases(found),
        "samples_seconds": list(run.samples("run")),
    }
    jit = plan.how == "jit"
    if jit or run.cost is not None:
        data["flops"], data["bytes_accessed"] = found.flops, found.bytes_accessed
        data["flops_per_second"], data["bytes_per_second"] = found.flops_per_second, found.bytes_per_second
        data["cost_source"] = run.cost.source if run.cost is not None else None
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
        }
    if plan.baseline:
        data["versus"] = _versus(found)
    if jit or run.measured:
        data["kernels"] = kernels_measured_json(session, run, kernels_json(session, run))
    data |= captures_json(session, run)
    if is_program(run):
        data |= program_keys(session, run)
    if run.environment is not None:
        data["settings"] = dict(run.environment.settings)
    figures = published(plan.workload, [plan.variant])
    if figures:
        data["published"] = [
            {name: None if value == "" else value for name, value in asdict(figure).items()} for figure in figures
        ]
    data["warnings"] = [
        {"code": warning.code, "message": warning.message, "advice": warning.advice or None}
        for warning in found.warnings
    ]
    return data


def _memory(session: Session, run: Run) -> dict[str, Any] | None:
    """XLA's and the allocator's figures, and what the peak is made of; None where nothing is known."""
    picture = memory_json(session, run)
    if run.memory is None and picture is None:
        return None
    figures: dict[str, Any] = {name: getattr(run.memory, name, None) for name in _MEMORY}
    if picture is not None:
        figures |= {name: picture[name] for name in ("parts", "asked_bytes", "buffers", "live_bytes")}
        figures |= {"buffers_source": picture["source"], "buffers_peak_bytes": picture["peak_bytes"]}
    return figures


def _phases(found: RunResult) -> dict[str, Any]:
    run, seconds = found.run, found.phase_seconds
    phases: dict[str, Any] = {}
    started = [name for name in STARTUP_PHASES if name in seconds]
    if started:
        known = [value for name in started if (value := seconds[name]) is not None]
        whole = sum(known) if len(known) == len(started) else None
        phases["startup"] = {"seconds": whole, **{name: seconds[name] for name in started}}
    for name in PHASES:
        if name in seconds or name in _PHASES_OF.get(run.plan.how, ()):
            phases[name] = _phase(found, name)
    return phases


def _phase(found: RunResult, name: str) -> dict[str, Any]:
    recorded = found.run.phases.get(name)
    seconds = found.phase_seconds.get(name)
    data: dict[str, Any] = {"seconds": seconds}
    if name in _TRANSFERS:
        moved = recorded.bytes if recorded is not None else None
        zero_copy = recorded.zero_copy if recorded is not None else None
        data |= _spread(found, name)
        data |= {
            "bytes": moved,
            "zero_copy": zero_copy,
            "bytes_per_second": moved / seconds if moved and seconds and not zero_copy else None,
        }
    elif name == "run":
        data |= _spread(found, name)
        if found.run.plan.how != "numpy":
            data["dispatch_median_seconds"] = found.dispatch_median_seconds
            data["pipelined_median_seconds"] = found.pipelined_median_seconds
        data["total_seconds"] = recorded.seconds if recorded is not None else None
    if recorded is not None and recorded.note:
        data["note"] = recorded.note
    return data


def _spread(found: RunResult, name: str) -> dict[str, Any]:
    """The statistics of a sampled phase."""
    summary = found.summary if name == "run" else found.transfers.get(name)
    series = found.run.series.get(name)
    return {
        "median_seconds": summary.median if summary else None,
        "mad_seconds": summary.mad if summary else None,
        "ci95_seconds": list(summary.ci95) if summary and summary.ci95 else None,
        "samples": summary.count if summary else 0,
        "calls_per_sample": series.calls_per_sample if series is not None else None,
    }


def _versus(found: RunResult) -> dict[str, Any]:
    versus = found.versus
    if versus is None:
        return {"run": found.run.plan.baseline, "speedup": None, "ci95": None, "break_even_calls": None}
    low, high = versus.speedup.low, versus.speedup.high
    return {
        "run": versus.baseline,
        "speedup": versus.speedup.ratio,
        "ci95": None if low is None or high is None else [low, high],
        "break_even_calls": versus.break_even_calls,
        "verdict": versus.speedup.verdict,
    }
