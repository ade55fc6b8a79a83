"""What a worker's environment must be so that it uses one device and leaves the others alone."""

from __future__ import annotations

from jaxprof.targets import wheels
from jaxprof.telemetry.devices import gather, local_devices
from jaxprof.telemetry.join import merge
from jaxprof.telemetry.placement import WorkerEnvironment, probe_environment, worker_environment
from jaxprof.worker.interpreter import Interpreter
from jaxprof.worker.planning import HOST, Planned
from jaxprof.worker.queries import jax_devices


def place(planned: Planned, interpreter: Interpreter) -> WorkerEnvironment:
    """The environment for one planned run. Raises JaxprofError for a device that is not there, or cannot be used.

    A worker that compiles for devices elsewhere runs on the CPU, with their compiler beside its jax.
    """
    if planned.profile is not None:
        return WorkerEnvironment(environment={}, device=HOST)
    if planned.elsewhere is not None:
        variables = wheels.environment(planned.elsewhere.chip.vendor, interpreter.path)
        return WorkerEnvironment(environment=variables, device=HOST)
    if planned.device.startswith("cpu:"):
        return WorkerEnvironment(environment={"JAX_PLATFORMS": "cpu"}, device=planned.device)
    devices = local_devices(gather(interpreter.path))
    known = {device.id: device for device in devices}
    if planned.device not in known or known[planned.device].used_by_jax is False:  # a forecast: JAX itself can tell
        devices = merge(devices, jax_devices(interpreter, probe_environment()))
    return worker_environment(planned.device, devices)
