"""The table of HLO ops of a trace: how often, how long, on how many threads at once.

Wall time is the union of an op's intervals on its device, CPU time their sum; the two differ where several threads
work on one op. Self time leaves out what ran inside (a while loop holds the ops of its body).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jaxprof.trace.intervals import distinct, medians_by_group, self_times, union_by_group
from jaxprof.trace.model import NO_OP, Lane, Op, Trace

PS = 1e-12


@dataclass(frozen=True, slots=True)
class OpTime:
    """One op on one device. Times in seconds."""

    op: Op
    device: str
    count: int
    total_seconds: float
    """Sum of its intervals: CPU time on a CPU, time on the stream on a GPU."""
    self_seconds: float
    """That sum without what ran inside."""
    wall_seconds: float
    """Union of its intervals."""
    median_seconds: float
    minimum_seconds: float
    maximum_seconds: float
    kernels: tuple[str, ...]
    """Names of the device's kernels that it launched; of a CPU op its own."""

    @property
    def parallelism(self) -> float | None:
        """How many threads worked on it at once, on average."""
        return self.total_seconds / self.wall_seconds if self.wall_seconds > 0 else None


def op_times(trace: Trace) -> list[OpTime]:
    """The table, the longest self time first."""
    rows: list[OpTime] = []
    devices = list(dict.fromkeys(lane.device for lane in trace.op_lanes()))
    for device in devices:
        rows += _of_device(trace, device, [lane for lane in trace.op_lanes() if lane.device == device])
    return sorted(rows, key=lambda row: -row.self_seconds)


def unattributed_seconds(trace: Trace) -> dict[str, float]:
    """Time on device streams that belongs to no HLO op (copies, library kernels without a name), by device."""
    found: dict[str, float] = {}
    for lane in trace.op_lanes():
        if lane.kind == "stream":
            seconds = float(lane.durations[lane.op_of == NO_OP].sum()) * PS
            found[lane.device] = found.get(lane.device, 0.0) + seconds
    return found


def _of_device(trace: Trace, device: str, lanes: list[Lane]) -> list[OpTime]:
    count = len(trace.ops)
    op_of, starts, durations, own = [], [], [], []
    kernels: dict[int, set[str]] = {}
    for lane in lanes:
        there = lane.op_of != NO_OP
        if not there.any():
            continue
        op_of.append(lane.op_of[there])
        starts.append(lane.starts[there])
        durations.append(lane.durations[there])
        nests = lane.kind != "stream"  # kernels of one stream may overlap, and then none holds the other
        own.append(self_times(starts[-1], durations[-1]) if nests else durations[-1])
        pairs = distinct(lane.op_of[there] * len(lane.names) + lane.name_of[there])[0]
        for pair in pairs.tolist():
            kernels.setdefault(pair // len(lane.names), set()).add(lane.names[pair % len(lane.names)])
    if not op_of:
        return []
    group, begin, length = np.concatenate(op_of), np.concatenate(starts), np.concatenate(durations)
    numbers = np.bincount(group, minlength=count)
    total = np.bincount(group, weights=length.astype(np.float64), minlength=count)
    self_total = np.bincount(group, weights=np.concatenate(own).astype(np.float64), minlength=count)
    wall = union_by_group(group, begin, length, count)
    median, least, greatest = medians_by_group(group, length, count)
    return [
        OpTime(
            op=trace.ops[index],
            device=device,
            count=int(numbers[index]),
            total_seconds=float(total[index]) * PS,
            self_seconds=float(self_total[index]) * PS,
            wall_seconds=float(wall[index]) * PS,
            median_seconds=float(median[index]) * PS,
            minimum_seconds=float(least[index]) * PS,
            maximum_seconds=float(greatest[index]) * PS,
            kernels=tuple(sorted(kernels.get(index, ()))),
        )
        for index in np.flatnonzero(numbers).tolist()
    ]
