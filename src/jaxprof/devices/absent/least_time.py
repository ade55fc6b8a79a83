"""Compute the least time of a collective over the links of a machine, and of one call of a program on it.

A collective: the bytes that a unit (a device, a chip, a host) must send to the others, whatever the algorithm, follow
from what the others lack, and its bandwidth is known; the slowest level decides. For an array of S bytes in m units:

    all-gather, reduce-scatter   S (m - 1) / m
    all-reduce                   2 S (m - 1) / m, or S if the switch can add
    all-to-all                   what its devices have for devices of other units
    collective-permute           what its devices send to devices of other units

(Chan et al., "Collective communication: theory, practice, and experience", Concurrency and Computation 19(13), 2007;
Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms", JPDC 69(2), 2009.) Groups that exchange at the same time
share a unit's bandwidth. Latencies, contention and the network's protocol overhead are not in the bound.

A run: kernels are at their ceilings one after the other, collectives at the bound of their links, asynchronous ones
overlap the kernels between their start and their done, which waits only for the rest; and a call is never shorter than
the time for which all kernels together use main memory, or any level of links. The shorter branch of a conditional
counts. The order is that of the text, which is the schedule if the header contains `is_scheduled`; otherwise XLA has
not decided yet what overlaps, and everything asynchronous may.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from jaxprof.base.grouping import grouped
from jaxprof.base.values import frozen
from jaxprof.hlo.kernels import FINISHING
from jaxprof.hlo.kernels.collectives import FINISHES, STARTS, Collective, collectives
from jaxprof.hlo.kernels.cost.peaks import Roofline, roofline
from jaxprof.hlo.kernels.execution import CallEdge, Execution
from jaxprof.hlo.kernels.kernels import Kernel, kernels
from jaxprof.hlo.text.model import Computation, Instruction, Module

if TYPE_CHECKING:
    from jaxprof.devices.absent import Level, Machine


@frozen
class Exchange:
    """The least time of a collective on a machine, in seconds; None if the links or the groups are unknown."""

    bound_seconds: float | None
    """Lower bound: no algorithm is faster."""
    link: str
    """Name of the level that takes longest; empty if none is known, or if nothing leaves a device."""
    busy: tuple[float, ...]
    """Least time that each level of the machine is in use."""


UNKNOWN = Exchange(None, "", ())


def exchange(collective: Collective, machine: Machine) -> Exchange:
    """Return the least time of one execution of `collective` on `machine`, whose devices are numbered host by host."""
    if not machine.levels or collective.groups is None:
        return UNKNOWN
    sent = [_bytes_sent(collective, level) for level in machine.levels]
    busy: tuple[float, ...] = ()
    for at, (level, moved) in enumerate(zip(machine.levels, sent, strict=True), start=1):
        # A unit sends over the level itself, and to units further away over its share of the outer levels.
        outer = (further for further, more in zip(machine.levels[at:], sent[at:], strict=True) if more)
        bandwidth = level.bandwidth + sum(further.bandwidth * level.devices / further.devices for further in outer)
        busy += (moved / bandwidth,)
    slowest = max(range(len(busy)), key=lambda at: busy[at])
    if not any(busy):
        # One device exchanges nothing; no document gives the speed between the devices of one chip.
        alone = all(len(group) == 1 for group in collective.groups)
        return Exchange(0.0 if alone else None, "", busy)
    return Exchange(busy[slowest], machine.levels[slowest].name, busy)


def _bytes_sent(collective: Collective, level: Level) -> float:
    """Return the least bytes that the busiest unit of a level sends, for all groups together."""
    whole = float(collective.bytes)
    if collective.opcode == "collective-permute":
        # the pairs that leave the busiest unit, or enter it
        pairs = [(source // level.devices, target // level.devices) for source, target in collective.groups or ()]
        crossing = [pair for pair in pairs if pair[0] != pair[1]]
        return whole * max(
            (count for side in zip(*crossing, strict=True) for count in Counter(side).values()), default=0
        )
    spreads = [Counter(number // level.devices for number in group) for group in collective.groups or ()]
    units = max(map(len, spreads), default=0)
    if units < 2:
        return 0.0
    part = (units - 1) / units
    # Several groups may cross the border of one unit.
    whole *= max(Counter(unit for spread in spreads if len(spread) > 1 for unit in spread).values())
    if collective.opcode == "all-reduce":
        return whole * (1.0 if level.reduces else 2 * part)
    if collective.opcode in ("all-to-all", "ragged-all-to-all"):
        members = max(most for spread in spreads for most in spread.values())
        return whole * members * part
    return whole if collective.opcode == "collective-broadcast" else whole * part


def makespan_seconds(module: Module, seconds: Callable[[Kernel], float]) -> float | None:
    """Return the seconds from the first kernel to the last if each takes `seconds` and asynchronous ones overlap;
    None if a trip count is not known."""
    if module.entry is None:
        return None
    by_computation = {(kernel.computation, kernel.name): kernel for kernel in kernels(module)}
    elapsed: dict[str, float | None] = {}
    for name in module.once(Execution).post_order:
        computation = module.get(name)
        if computation is not None:
            elapsed[name] = _seconds_of(computation, by_computation, seconds, elapsed)
    return elapsed.get(module.entry.name)


def _seconds_of(
    computation: Computation,
    kernels: Mapping[tuple[str, str], Kernel],
    seconds: Callable[[Kernel], float],
    elapsed: Mapping[str, float | None],
) -> float | None:
    """Return the seconds of one execution of `computation`; `elapsed` has those of the computations that it calls."""
    module = computation.module
    edges = grouped((edge.caller.name, edge) for edge in module.once(Execution).edges[computation.name])
    now = 0.0
    running: dict[str, float] = {}
    for instruction in computation.instructions:
        if instruction.opcode in FINISHING or instruction.name.startswith(FINISHES):
            started = _start_of(instruction, running)
            if started is not None and module.is_scheduled:
                now = max(now, running[started])
            continue
        took: float | None
        if called := edges.get(instruction.name):
            took = _callee_seconds(called, elapsed)
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


def _callee_seconds(edges: list[CallEdge], elapsed: Mapping[str, float | None]) -> float | None:
    """Return the seconds of the computations that an instruction calls, of its branches only the fastest; None if a
    number of calls is unknown."""
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
    for _ in range(64):
        earlier = earlier.operand(0) if earlier is not None else None
        if earlier is None:
            return None
        if earlier.name in running:
            return earlier.name
    return None


Key = tuple[str, str]
"""Computation and name of a kernel."""


@frozen
class StepTime:
    """The least time of one call of a program, in seconds; None if a loop's trip count is unknown."""

    bound_seconds: float | None
    limit: str
    """What sets the bound: `kernels` (one after the other, with what they wait for), `memory`, or a link's name."""


def exchanges(module: Module, machine: Machine) -> dict[Key, Exchange]:
    """Return the times of one execution of each collective of `module` on `machine`."""
    return {
        (collective.kernel.computation, collective.kernel.name): exchange(collective, machine)
        for collective in collectives(module)
    }


def kernel_bound(kernel: Kernel, machine: Machine, over: Exchange | None) -> tuple[Roofline, float | None, str]:
    """Return the roofline of a kernel, the least seconds of one execution, and what bounds it: `links`, `memory`,
    `compute`; empty if unknown. A collective takes the longer of its memory's and its links' time: arrays travel while
    they are read and written, so the two are not added."""
    roof = roofline(kernel, machine.device)
    links = over.bound_seconds if over is not None else None
    bounds = [seconds for seconds in (roof.least_seconds, links) if seconds is not None]
    bound = "links" if links is not None and links > (roof.least_seconds or 0.0) else roof.bound
    return roof, max(bounds, default=None), bound


def step_time(module: Module, machine: Machine) -> StepTime:
    exchanged = exchanges(module, machine)

    def least_seconds(kernel: Kernel) -> float:
        return kernel_bound(kernel, machine, exchanged.get((kernel.computation, kernel.name)))[1] or 0.0

    elapsed = makespan_seconds(module, least_seconds)
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
