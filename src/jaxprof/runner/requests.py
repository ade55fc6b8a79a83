"""Turn a planned run into its worker's environment, the event for the log, and the request to the engine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from jaxprof.analysis.target import whole_word
from jaxprof.devices import Device
from jaxprof.devices.absent import target_config, wheels
from jaxprof.devices.inventory.machine import gather, local_devices
from jaxprof.devices.inventory.placement import WorkerEnvironment, worker_environment
from jaxprof.engine.protocol.request import CompileRequest, Request, RunRequest
from jaxprof.events import RunPlanned
from jaxprof.runner.device_choice import usable_devices
from jaxprof.runner.engine_questions import host_devices
from jaxprof.runner.interpreter import Interpreter
from jaxprof.runner.planning import HOST, PlannedRun
from jaxprof.workloads import names


def environment_for(planned: PlannedRun, interpreter: Interpreter) -> WorkerEnvironment:
    """Return the environment for one planned run. Raises JaxprofError for a device that is missing or unusable. A
    worker that compiles for devices elsewhere runs on the CPU. It has their compiler beside its jax, and as many CPU
    devices as there are devices elsewhere, from which the program's own meshes are made."""
    if planned.profile is not None:
        return WorkerEnvironment(environment={}, device=HOST)
    if planned.elsewhere is not None:
        variables = wheels.environment(planned.elsewhere.chip.vendor, interpreter.path)
        return WorkerEnvironment(environment={**variables, **host_devices(planned.elsewhere.devices)}, device=HOST)
    if planned.spec.device.startswith("cpu:"):
        return WorkerEnvironment(environment={"JAX_PLATFORMS": "cpu"}, device=planned.spec.device)
    devices: Sequence[Device] = local_devices(gather(interpreter.path))
    by_id = {device.id: device for device in devices}
    device = by_id.get(planned.spec.device)
    if device is None or device.used_by_jax is False:  # a forecast: JAX itself can tell for certain
        devices = usable_devices(interpreter)
    return worker_environment(planned.spec.device, devices)


def plan_event(run: str, plan: PlannedRun, ids: Mapping[PlannedRun, str], batch: int | None = None) -> RunPlanned:
    """Return the event that a run joined the queue, with a spec valid from any folder; `ids`: of all runs so far."""
    baseline = ids[plan.baseline] if plan.baseline is not None else ""
    lender = _found_again_at(plan.baseline) or plan.spec.inputs_from if plan.baseline and plan.spec.inputs_from else ""
    spec = replace(plan.spec, target=_found_again_at(plan), inputs_from=lender, baseline=baseline)
    return RunPlanned(run=run, spec=spec, batch=batch)


def _found_again_at(plan: PlannedRun) -> str:
    """Return the target of a user's function, valid from any folder; empty for a built-in workload."""
    target = plan.stays_at or plan.spec.target
    return "" if plan.profile is not None or target in names() else whole_word(target)


def request_for(run: str, plan: PlannedRun, device: str) -> Request:
    """Return the request to the engine; `device` is the device's name in the worker."""
    if plan.profile is not None:
        return replace(plan.profile, run=run)
    if plan.compile_only:
        spec = replace(plan.spec, device=device)
        if plan.elsewhere is None:
            return CompileRequest(run=run, spec=spec)
        chip = plan.elsewhere.chip
        return CompileRequest(
            run=run,
            spec=spec,
            platform="tpu" if chip.vendor == "tpu" else "cuda",
            topology=plan.elsewhere.topology,
            topology_name=chip.name,
            chip_config=chip.chip_config,
            target_config=target_config(chip) if chip.vendor == "nvidia" else "",
            devices=plan.elsewhere.devices,
            mesh=dict(plan.mesh),
            shard=list(plan.shard),
        )
    return timing_request(run, plan, device)


def timing_request(run: str, plan: PlannedRun, device: str) -> RunRequest:
    """Return what `request_for` does for a run that is timed."""
    return RunRequest(run=run, spec=replace(plan.spec, device=device), keep_output=plan.keep_output)
