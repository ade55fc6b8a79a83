"""The measured kernels of a run: the rows of its captures joined with the HLO, which has their cost and origin. A loop,
branch or call that a capture names has those of what it runs. Also the self times of the passes of its compilation,
which add up to the whole.

A row of the capture is one op on one device. Here an op is one kernel: its devices are summed, and rates are those of
one device. Shares use self time, so that a loop does not count the kernels inside it again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from jaxprof.analysis.kernels import MeasuredKernel, module_of
from jaxprof.base.grouping import grouped, totals
from jaxprof.base.values import frozen
from jaxprof.events import CopyTimes, KernelsMeasured, PassTimes
from jaxprof.session import Run, Session

if TYPE_CHECKING:
    from jaxprof.hlo.kernels.cost.peaks import DevicePeaks
    from jaxprof.hlo.kernels.kernels import Kernel

KINDS = ("attribution", "run", "imported")
"""Captures that a run's kernels may come from, best first: a capture made only for the names precedes the capture that
it serves."""


def seconds_without_op(transfers: Sequence[CopyTimes], unattributed_seconds: Mapping[str, float]) -> float:
    """Return the time of the kernels that name no HLO op, on all devices, without the copies, which are no kernels.
    `unattributed_seconds`: time without an op by device."""
    copies = totals((row.device, row.total_seconds) for row in transfers)
    return sum(max(0.0, took - copies.get(device, 0.0)) for device, took in unattributed_seconds.items())


@frozen
class MeasuredKernels:
    """Kernels of a run according to its capture."""

    kernels: tuple[MeasuredKernel, ...]
    """Kernels, longest self time first."""
    transfers: tuple[CopyTimes, ...]
    unattributed_seconds: Mapping[str, float]

    @property
    def unmatched_share(self) -> float | None:
        """Share of the self time that belongs to no kernel of the HLO; None without HLO, or without any time. Such time
        is in ops that the HLO lacks (loops around their bodies, other programs), and in kernels without an op."""
        if any(kernel.in_hlo is None for kernel in self.kernels):
            return None
        nameless = seconds_without_op(self.transfers, self.unattributed_seconds)
        whole = sum(kernel.self_seconds for kernel in self.kernels) + nameless
        matched = sum(kernel.self_seconds for kernel in self.kernels if kernel.in_hlo)
        return 1 - matched / whole if whole > 0 else None

    def by_name(self) -> dict[str, MeasuredKernel]:
        """Return the kernels by their HLO name; if several programs share a name, the one that took longest."""
        return {kernel.name: kernel for kernel in reversed(self.kernels)}


def measure_kernels(session: Session, run_id: str) -> MeasuredKernels | None:
    """Return the measured kernels of a run; None if it has no capture. A capture without ops gives no kernels."""
    run = session.runs[run_id]
    event = capture_of(run)
    if event is None:
        return None
    kernels, device = kernels_of(session, run_id, running=True), None
    if kernels:
        from jaxprof.analysis.runs.ceilings import ceilings_for

        device = ceilings_for(session, run)
    # Shares of a run's kernels are of the time of its capture; in a profile or a capture window, of all its programs'.
    events = [event]
    if event is run.measured.get("imported"):
        captures = (capture_of(each) for each in session.runs.values() if "imported" in each.measured)
        events = [each for each in captures if each is not None]
    return MeasuredKernels(
        kernels=_kernels(event, sum(row.self_seconds for each in events for row in each.rows), kernels, device),
        transfers=tuple(event.transfers),
        unattributed_seconds=dict(event.unattributed_seconds),
    )


def seconds_per_call(run: Run | None) -> dict[str, float]:
    """Return the self seconds of each HLO op in one call on one device, by name; empty if no capture has them. Reads no
    HLO, and so takes no noticeable time."""
    event = capture_of(run) if run is not None else None
    kernels = _kernels(event, 0.0) if event is not None else ()
    # If several programs share a name, the one that took longest stays, as in `MeasuredKernels.by_name`.
    return {kernel.name: kernel.per_call_seconds for kernel in reversed(kernels) if kernel.per_call_seconds is not None}


def whole_profile(session: Session) -> tuple[MeasuredKernel, ...]:
    """Return the kernels of all programs in a session made from a profile, with their shares of the whole."""
    runs = [run.id for run in session.runs.values() if "imported" in run.measured]
    return tuple(kernel for _, kernel in kernels_together(session, runs))


def device_count(kernels: Iterable[MeasuredKernel]) -> int:
    """Return on how many devices the kernels ran, at least 1. Times of a profile in sentences are the mean of one
    device, which compares with wall time; tables of kernels have the sum over devices, and their number."""
    return len({device for kernel in kernels for device in kernel.devices}) or 1


def kernels_together(session: Session, runs: Iterable[str]) -> list[tuple[str, MeasuredKernel]]:
    """Return the kernels of several runs, each with the id of its run and its share of the whole, longest self time
    first."""
    kernels = [
        (run, kernel)
        for run in runs
        if (found := measure_kernels(session, run)) is not None
        for kernel in found.kernels
    ]
    whole = sum(kernel.self_seconds for _, kernel in kernels)
    shared = [
        (run, replace(kernel, share=kernel.self_seconds / whole if whole > 0 else None)) for run, kernel in kernels
    ]
    return sorted(shared, key=lambda pair: -pair[1].self_seconds)


def capture_of(run: Run) -> KernelsMeasured | None:
    """Return the capture that a run's kernels come from: the best one that has ops."""
    events = [run.measured[kind] for kind in KINDS if kind in run.measured]
    return next((event for event in events if event.rows), events[0] if events else None)


def _kernels(
    event: KernelsMeasured,
    whole: float,
    in_hlo: Sequence[Kernel] | None = None,
    device: DevicePeaks | None = None,
) -> tuple[MeasuredKernel, ...]:
    """Return the kernels of a capture, longest self time first. `whole`: the self time that their shares are of."""
    groups = grouped(((row.module, row.program, row.name), row) for row in event.rows)
    by_name = {kernel.name: kernel for kernel in in_hlo} if in_hlo is not None else None
    self_seconds = totals((row.name, row.self_seconds) for row in event.rows)
    by_computation = totals((kernel.computation, self_seconds.get(kernel.name, 0.0)) for kernel in in_hlo or ())
    kernels: list[MeasuredKernel] = []
    for rows in groups.values():
        longest = max(rows, key=lambda row: row.self_seconds)
        name, count = longest.name, sum(row.count for row in rows)
        wall, own_seconds = sum(row.wall_seconds for row in rows), sum(row.self_seconds for row in rows)
        devices = tuple(dict.fromkeys(row.device for row in rows))
        static = (by_name or {}).get(name)
        flops_per_second = bytes_per_second = of_peak = of_bandwidth = None
        # The data of an asynchronous kernel moves until the matching done.
        has_rates = static is not None and wall > 0 and not static.asynchronous
        if static is not None and static.runs_kernels:
            # XLA:CPU goes on with a loop in another thread: then its own interval does not last until its end.
            inside = sum(by_computation.get(name, 0.0) for name in static.computations_inside)
            has_rates &= inside <= (sum(row.total_seconds for row in rows) - own_seconds) * (1 + _ROUNDING)
        if static is not None and has_rates:
            # An op of a GPU's library can launch several kernels for its work: then the calls say how often it ran.
            ran = (event.calls or 0) * (static.count or 0) * len(devices)
            times = ran if ran and count % ran == 0 else count
            flops_per_second = static.flops * times / wall if static.flops is not None else None
            bytes_per_second = None if static.unsized else static.bytes * times / wall
            if device is not None:
                from jaxprof.hlo.kernels.cost.peaks import roofline

                of_peak = _share(flops_per_second, roofline(static, device).peak)
                of_bandwidth = _share(bytes_per_second, device.bandwidth)
        kernels.append(
            MeasuredKernel(
                name=name,
                module=longest.module,
                devices=devices,
                count=count,
                calls=event.calls,
                total_seconds=sum(row.total_seconds for row in rows),
                self_seconds=own_seconds,
                wall_seconds=wall,
                median_seconds=longest.median_seconds,
                minimum_seconds=min(row.minimum_seconds for row in rows),
                maximum_seconds=max(row.maximum_seconds for row in rows),
                share=own_seconds / whole if whole > 0 else None,
                flops_per_second=flops_per_second,
                bytes_per_second=bytes_per_second,
                of_peak=of_peak,
                of_bandwidth=of_bandwidth,
                kernel=static,
                in_hlo=None if by_name is None else static is not None,
                names=tuple(dict.fromkeys(kernel_name for row in rows for kernel_name in row.kernels)),
                launch=longest.launch,
            )
        )
    return tuple(sorted(kernels, key=lambda kernel: -kernel.self_seconds))


def kernels_of(session: Session, run_id: str, *, running: bool = False) -> tuple[Kernel, ...] | None:
    """Return the kernels in order of execution; None if the run has no HLO, or it cannot be read. With `running`, also
    the loops, branches and calls that its capture names, last."""
    run = session.runs[run_id]
    module = module_of(session, run)
    if module is None:
        return None
    from jaxprof.hlo.kernels.kernels import kernels, with_running

    event = capture_of(run) if running else None
    return with_running(module, {row.name for row in event.rows}) if event is not None else kernels(module)


_ROUNDING = 1e-6
"""By which part sums of times may differ."""


def _share(reached: float | None, ceiling: float | None) -> float | None:
    return None if reached is None or not ceiling else reached / ceiling


@frozen
class StageTime:
    """One of XLA's stages, over all threads: stages on parallel threads add up to more than the wall time."""

    stage: str
    seconds: float
    """Self time in seconds."""
    passes: int


def passes_in(tree: PassTimes) -> Iterator[PassTimes]:
    """Yield the pass and all passes inside it, in no particular order."""
    pending = [tree]
    while pending:
        node = pending.pop()
        yield node
        pending += node.children


def stage_times(tree: PassTimes) -> tuple[StageTime, ...]:
    """Return the stages that took any time, longest first."""
    by_stage: dict[str, tuple[float, int]] = {}
    for node in passes_in(tree):
        seconds, passes = by_stage.get(node.stage, (0.0, 0))
        by_stage[node.stage] = seconds + node.self_seconds, passes + node.count
    stages = (StageTime(stage, *rest) for stage, rest in by_stage.items() if rest[0] > 0)
    return tuple(sorted(stages, key=lambda spent: (-spent.seconds, spent.stage)))


def longest_kernel(session: Session) -> tuple[str, MeasuredKernel] | None:
    """Return the longest kernel of all captures of a session together, with the id of its run and its share of the
    whole; None if there is no kernel."""
    run, longest = next(iter(kernels_together(session, session.runs)), ("", None))
    return None if longest is None or longest.share is None else (run, longest)
