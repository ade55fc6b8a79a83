"""How long a module takes if each kernel takes a given time: one after the other, except for what overlaps.

An asynchronous kernel runs from its start until it is done, beside the kernels between the two; its `done` waits only
for the rest. The order is that of the text, which is the schedule where the header says `is_scheduled`; where it does
not, XLA has not decided yet what overlaps, and everything asynchronous may.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from jaxprof.hlo.analysis.collectives import FINISHES, STARTS
from jaxprof.hlo.analysis.kernels import analysis_of
from jaxprof.hlo.analysis.opcodes import FINISHING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from jaxprof.hlo.analysis.execution import CallEdge
    from jaxprof.hlo.analysis.kernel import Kernel
    from jaxprof.hlo.analysis.kernels import KernelAnalysis
    from jaxprof.hlo.model import Computation, Instruction, Module

    Pick = Callable[[list[float]], float]


_MOST_UPDATES = 64


def elapsed_seconds(module: Module, seconds: Callable[[Kernel], float], branch: Pick = max) -> float | None:
    """Seconds from the first kernel to the last if each takes `seconds` a run and asynchronous ones overlap; None where
    a trip count is not known. `branch` chooses among the branches of a conditional: `min` for a bound, `max` for a
    forecast."""
    table = analysis_of(module)
    if module.entry is None:
        return None
    kernels = {(kernel.computation, kernel.name): kernel for kernel in table.kernels}
    scheduled = module.attributes.get("is_scheduled") == "true"
    elapsed: dict[str, float | None] = {}
    for name in table.execution.post_order():
        computation = module.get(name)
        if computation is not None:
            elapsed[name] = _elapsed(computation, table, kernels, seconds, elapsed, branch, scheduled=scheduled)
    return elapsed.get(module.entry.name)


def _elapsed(
    computation: Computation,
    table: KernelAnalysis,
    kernels: Mapping[tuple[str, str], Kernel],
    seconds: Callable[[Kernel], float],
    elapsed: Mapping[str, float | None],
    branch: Pick,
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
            took = _called(called, elapsed, branch)
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


def _called(edges: list[CallEdge], elapsed: Mapping[str, float | None], branch: Pick) -> float | None:
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
    return total + (branch(branches) if branches else 0.0)


def _start_of(done: Instruction, running: Mapping[str, float]) -> str | None:
    """The start that a `done` waits for, through the updates (and fusions that work meanwhile) between them."""
    earlier: Instruction | None = done
    for _ in range(_MOST_UPDATES):
        earlier = earlier.operand(0) if earlier is not None else None
        if earlier is None:
            return None
        if earlier.name in running:
            return earlier.name
    return None
