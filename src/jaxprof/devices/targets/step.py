"""Compute how long one run of a program takes on a machine at least.

Kernels are at their ceilings one after the other, collectives at the bound of their links, asynchronous ones overlap
the kernels between their start and their done; and a run is never shorter than the time for which all kernels together
use main memory, or any level of links. Of a conditional, the shorter branch counts.

An asynchronous kernel runs from its start until it is done, beside the kernels between the two; its `done` waits only
for the rest. The order is that of the text, which is the schedule if the header contains `is_scheduled`; otherwise XLA
has not decided yet what overlaps, and everything asynchronous may.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from jaxprof.devices.targets.exchange import Exchange, exchange
from jaxprof.hlo.analysis.collectives import FINISHES, STARTS, collectives
from jaxprof.hlo.analysis.cost.peaks import roofline
from jaxprof.hlo.analysis.kernels import analysis_of, kernels
from jaxprof.hlo.analysis.opcodes import FINISHING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from jaxprof.devices.targets.machine import Machine
    from jaxprof.hlo.analysis.execution import CallEdge
    from jaxprof.hlo.analysis.kernels import Kernel, KernelAnalysis
    from jaxprof.hlo.model import Computation, Instruction, Module

_MOST_UPDATES = 64


def elapsed_seconds(module: Module, seconds: Callable[[Kernel], float]) -> float | None:
    """Return the seconds from the first kernel to the last if each takes `seconds` a run and asynchronous ones overlap;
    None if a trip count is not known."""
    table = analysis_of(module)
    if module.entry is None:
        return None
    kernels = {(kernel.computation, kernel.name): kernel for kernel in table.kernels}
    scheduled = module.attributes.get("is_scheduled") == "true"
    elapsed: dict[str, float | None] = {}
    for name in table.execution.post_order:
        computation = module.get(name)
        if computation is not None:
            elapsed[name] = _elapsed(computation, table, kernels, seconds, elapsed, scheduled=scheduled)
    return elapsed.get(module.entry.name)


def _elapsed(
    computation: Computation,
    table: KernelAnalysis,
    kernels: Mapping[tuple[str, str], Kernel],
    seconds: Callable[[Kernel], float],
    elapsed: Mapping[str, float | None],
    *,
    scheduled: bool,
) -> float | None:
    edges: dict[str, list[CallEdge]] = {}
    for edge in table.execution.edges[computation.name]:
        edges.setdefault(edge.caller.name, []).append(edge)
    now = 0.0
    running: dict[str, float] = {}
    for instruction in computation.instructions:
        if instruction.opcode in FINISHING or instruction.name.startswith(FINISHES):
            started = _start_of(instruction, running)
            if started is not None and scheduled:
                now = max(now, running[started])
            continue
        took: float | None
        if called := edges.get(instruction.name):
            took = _called(called, elapsed)
            if took is None:
                return None
            asynchronous = instruction.opcode == "async-start"
        else:
            kernel = kernels.get((computation.name, instruction.name))
            if kernel is None:
                continue
            took, asynchronous = seconds(kernel), kernel.asynchronous or kernel.name.startswith(STARTS)
        if asynchronous:
            running[instruction.name] = now + took
        else:
            now += took
    return max(now, *running.values()) if running else now


def _called(edges: list[CallEdge], elapsed: Mapping[str, float | None]) -> float | None:
    total = 0.0
    branches: list[float] = []
    for edge in edges:
        once = elapsed.get(edge.callee, 0.0)
        if once is None or edge.times is None:
            return None
        if edge.branch:
            branches.append(once)
        else:
            total += once * edge.times
    return total + min(branches, default=0.0)


def _start_of(done: Instruction, running: Mapping[str, float]) -> str | None:
    """Return the start that a `done` waits for, through the updates (and fusions that work meanwhile) between them."""
    earlier: Instruction | None = done
    for _ in range(_MOST_UPDATES):
        earlier = earlier.operand(0) if earlier is not None else None
        if earlier is None:
            return None
        if earlier.name in running:
            return earlier.name
    return None


Key = tuple[str, str]
"""Computation and name of a kernel."""


@dataclass(frozen=True, slots=True)
class StepTime:
    """The least time of one run of a program, in seconds; None if a loop's trip count is unknown."""

    bound_seconds: float | None
    limit: str
    """What sets the bound: `kernels` (one after the other, with what they wait for), `memory`, or a link's name."""


def exchanges(module: Module, machine: Machine) -> dict[Key, Exchange]:
    """Return the times of one execution of each collective of `module` on `machine`."""
    return {
        (collective.kernel.computation, collective.kernel.name): exchange(collective, machine)
        for collective in collectives(module)
    }


def least_kernel_seconds(kernel: Kernel, machine: Machine, over: Exchange | None) -> float | None:
    """Return the bound of one execution of a kernel; for a collective the longer of its memory's and its links' time.

    Arrays travel while they are read and written, so the two times are not added.
    """
    least = roofline(kernel, machine.device).least_seconds
    links = over.bound_seconds if over is not None else None
    bounds = [seconds for seconds in (least, links) if seconds is not None]
    return max(bounds, default=None)


def bound_of(kernel: Kernel, machine: Machine, over: Exchange | None) -> str:
    """Return what bounds a kernel: `links`, `memory`, `compute`; empty if unknown."""
    ceiling = roofline(kernel, machine.device)
    links = over.bound_seconds if over is not None else None
    return "links" if links is not None and links > (ceiling.least_seconds or 0.0) else ceiling.bound


def step_time(module: Module, machine: Machine) -> StepTime:
    """Return the least time of one run of `module` on `machine`."""
    exchanged = exchanges(module, machine)

    def bound(kernel: Kernel) -> float:
        return least_kernel_seconds(kernel, machine, exchanged.get((kernel.computation, kernel.name))) or 0.0

    elapsed = elapsed_seconds(module, bound)
    if elapsed is None:
        return StepTime(None, "")
    in_use = {"kernels": elapsed, "memory": 0.0}
    for kernel in kernels(module):
        if kernel.conditional or kernel.count is None or kernel.name.startswith(FINISHES):
            continue
        in_use["memory"] += kernel.count * kernel.bytes / machine.device.bandwidth
        over = exchanged.get((kernel.computation, kernel.name))
        for level, busy in zip(machine.levels, over.busy if over is not None else (), strict=False):
            in_use[level.name] = in_use.get(level.name, 0.0) + kernel.count * busy
    limit = max(in_use, key=lambda name: in_use[name])
    return StepTime(in_use[limit], limit)
