"""What a worker's environment must be so that it uses one device and leaves the others alone."""

from __future__ import annotations

from dataclasses import dataclass, field

from jaxprof.targets import wheels
from jaxprof.worker.interpreter import Interpreter
from jaxprof.worker.planning import HOST, Planned


@dataclass(frozen=True, slots=True)
class Placement:
    """For one worker: variables laid over ours, the device as JAX names it there, and what to say about it."""

    environment: dict[str, str]
    device: str
    notes: tuple[str, ...] = field(default=())


def place(planned: Planned, interpreter: Interpreter) -> Placement:
    """A CPU worker sees the CPU only: a process that prefers the CPU still takes memory on every GPU that it sees.

    A worker that compiles for devices elsewhere runs on the CPU, with their compiler. Raises JaxprofError where that is
    not installed.
    """
    if planned.elsewhere is not None:
        return Placement(wheels.environment(planned.elsewhere.chip.vendor, interpreter.path), HOST)
    platform = planned.device.partition(":")[0]
    if platform == "cpu":
        return Placement({"JAX_PLATFORMS": "cpu"}, planned.device)
    return Placement({"JAX_PLATFORMS": f"{platform},cpu"}, planned.device)
