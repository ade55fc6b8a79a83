"""From a planned run to what is written in the log and what the engine is asked for."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jaxprof.engine.request import CompileRequest, OpenTraceRequest, Request, RunRequest
from jaxprof.events import RunPlanned
from jaxprof.store.codec import EXTENSION
from jaxprof.targets.chips import target_config
from jaxprof.worker.planning import Planned
from jaxprof.workloads import names


def plan_event(run: str, plan: Planned, ids: Mapping[Planned, str]) -> RunPlanned:
    """The event that a run joined the queue; `ids` are those of all runs so far."""
    return RunPlanned(
        run=run,
        workload=plan.workload,
        variant=plan.variant,
        how=plan.how,
        device=plan.device,
        parameters=plan.parameters,
        preset=plan.preset,
        baseline=ids[plan.baseline] if plan.baseline is not None else "",
        budget_seconds=plan.budget_seconds,
        max_seconds=plan.max_seconds,
        precision=plan.precision,
        target=_found_again_at(plan),
        arguments=list(plan.arguments),
    )


def _found_again_at(plan: Planned) -> str:
    """Where a user's function is, from whatever folder it is asked for again; empty for what is no user's function."""
    if plan.profile is not None or plan.target in names():
        return ""
    place, colon, name = plan.target.rpartition(":")
    return f"{Path(place).expanduser().resolve()}{colon}{name}" if place.endswith(".py") else plan.target


def run_request(run: str, plan: Planned, device: str, log: Path | None) -> Request:
    """What the engine is asked for; `device` is the name that it has in the worker, `log` the session's file."""
    if plan.profile is not None:
        return OpenTraceRequest(
            run=run, path=plan.profile.path, profile_run=plan.profile.run, hosts=list(plan.profile.hosts)
        )
    if plan.compile_only:
        return _compile_request(run, plan, device)
    return RunRequest(
        run=run,
        workload=plan.target,
        variant=plan.variant,
        device=device,
        parameters=plan.parameters,
        arguments=list(plan.arguments),
        budget_seconds=plan.budget_seconds,
        max_seconds=plan.max_seconds,
        keep_constants=plan.keep_constants,
        compilation_cache=plan.compilation_cache,
        check=plan.check,
        capture=plan.capture,
        keep_trace=str(_trace_path(log, run)) if plan.keep_trace and log is not None else "",
        seed=plan.seed,
    )


def _compile_request(run: str, plan: Planned, device: str) -> CompileRequest:
    common: dict[str, Any] = {
        "run": run,
        "workload": plan.target,
        "variant": plan.variant,
        "parameters": plan.parameters,
        "arguments": list(plan.arguments),
        "keep_constants": plan.keep_constants,
        "seed": plan.seed,
        "device": device,
    }
    if plan.elsewhere is None:
        return CompileRequest(**common)
    chip = plan.elsewhere.chip
    return CompileRequest(
        **common,
        platform="tpu" if chip.vendor == "tpu" else "cuda",
        topology=plan.elsewhere.topology,
        topology_name=chip.name,
        target_config=target_config(chip) if chip.vendor == "nvidia" else "",
        devices=plan.elsewhere.devices,
        shard=list(plan.shard),
    )


def _trace_path(log: Path, run: str) -> Path:
    """Beside the session: `NAME.r2.xplane.pb`."""
    return log.with_name(f"{log.name.removesuffix(EXTENSION)}.{run}.xplane.pb")
