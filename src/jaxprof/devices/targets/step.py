"""How long one run of a program takes on a machine: a lower bound, and separately an estimate.

The **bound**: kernels at their ceilings one after the other, collectives at the bound of their links, asynchronous ones
beside what stands between their start and their done; and never less than the time for which all kernels together use
main memory, or any level of links. Of a conditional, the shorter branch counts.

The **estimate**: the same with the collectives' times from the model of their algorithm; of a conditional, the longer
branch. It is not a forecast of kernels, which it counts at their ceilings.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from jaxprof.devices.targets.exchange import Exchange, exchange
from jaxprof.hlo.analysis.collectives import FINISHES, collectives
from jaxprof.hlo.analysis.cost.roofline import roofline
from jaxprof.hlo.analysis.kernels import kernels
from jaxprof.hlo.analysis.schedule import elapsed_seconds

if TYPE_CHECKING:
    from jaxprof.devices.targets.machine import Machine
    from jaxprof.hlo.analysis.kernel import Kernel
    from jaxprof.hlo.model import Module

Key = tuple[str, str]
"""A kernel's computation and name."""


@dataclass(frozen=True, slots=True)
class StepTime:
    """Seconds of one run of a program; None if a loop's trip count is unknown."""

    bound_seconds: float | None
    estimate_seconds: float | None
    limit: str
    """What sets the bound: `kernels` (one after the other, with what they wait for), `memory`, or a link's name."""


def exchanges(module: Module, machine: Machine) -> dict[Key, Exchange]:
    """One execution of each collective of `module` on `machine`."""
    return {
        (collective.kernel.computation, collective.kernel.name): exchange(collective, machine)
        for collective in collectives(module)
    }


def least_kernel_seconds(kernel: Kernel, machine: Machine, over: Exchange | None) -> float | None:
    """The bound of one execution of a kernel; for a collective the longer of its memory's time and its links' time.

    Arrays travel while they are read and written, so the two times are not added.
    """
    least = roofline(kernel, machine.device).least_seconds
    links = over.bound_seconds if over is not None else None
    bounds = [seconds for seconds in (least, links) if seconds is not None]
    return max(bounds, default=None)


def bound_of(kernel: Kernel, machine: Machine, over: Exchange | None) -> str:
    """What bounds a kernel: `links`, `memory`, `compute`; empty if unknown."""
    ceiling = roofline(kernel, machine.device)
    links = over.bound_seconds if over is not None else None
    return "links" if links is not None and links > (ceiling.least_seconds or 0.0) else ceiling.bound


def step_time(module: Module, machine: Machine) -> StepTime:
    """The bound and the estimate of one run of `module` on `machine`."""
    exchanged = exchanges(module, machine)

    def bound(kernel: Kernel) -> float:
        return least_kernel_seconds(kernel, machine, exchanged.get((kernel.computation, kernel.name))) or 0.0

    def estimate(kernel: Kernel) -> float:
        over = exchanged.get((kernel.computation, kernel.name))
        links = over.estimate_seconds if over is not None else None
        return max(bound(kernel), links or 0.0)

    elapsed = elapsed_seconds(module, bound, min)
    expected = elapsed_seconds(module, estimate, max)
    if elapsed is None or expected is None:
        return StepTime(None, None, "")
    in_use = {"kernels": elapsed, "memory": 0.0}
    for kernel in kernels(module):
        if kernel.conditional or kernel.count is None or kernel.name.startswith(FINISHES):
            continue
        in_use["memory"] += kernel.count * kernel.bytes / machine.device.bandwidth
        over = exchanged.get((kernel.computation, kernel.name))
        for level, busy in zip(machine.levels, over.busy if over is not None else (), strict=False):
            in_use[level.name] = in_use.get(level.name, 0.0) + kernel.count * busy
    limit = max(in_use, key=lambda name: in_use[name])
    return StepTime(in_use[limit], max(in_use[limit], expected), limit)
