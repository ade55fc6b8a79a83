"""The table of HLO ops of a trace: how often, how long, on how many threads at once.

On a CPU an execution of an op is one or more slices on threads; on a GPU one or more kernels, each of which is counted,
as in xprof. Wall time is the union of an op's intervals on its device, CPU time their sum; the two differ if several
threads work on one op. Self time leaves out what ran inside (a while loop holds the ops of its body).
"""

from __future__ import annotations

import numpy as np

from jaxprof.base.grouping import totals
from jaxprof.events import KernelLaunch, KernelTimes
from jaxprof.trace.intervals import (
    by_group,
    distinct,
    holds_others,
    joined,
    medians_by_group,
    reached_before,
    self_times,
    union_by_group,
)
from jaxprof.trace.launch import launches_of
from jaxprof.trace.model import NO_OP, PS, Flags, Ints, Lane, Trace


def op_times(trace: Trace) -> list[KernelTimes]:
    """Return the table, longest self time first. Times of an execution on a CPU are those in which at least one thread
    worked on it."""
    launches = launches_of(trace)
    devices = dict.fromkeys(lane.device for lane in trace.op_lanes())
    rows = [row for device in devices for row in _of_device(trace, device, launches)]
    return sorted(rows, key=lambda row: -row.self_seconds)


def unattributed_seconds(trace: Trace) -> dict[str, float]:
    """Return the time on device streams outside any HLO op (copies, library kernels without a name), by device."""
    return totals((lane.device, float(lane.durations[lane.op_of == NO_OP].sum()) * PS) for lane in trace.streams)


def _of_device(trace: Trace, device: str, launches: dict[tuple[str, int], KernelLaunch]) -> list[KernelTimes]:
    count = len(trace.ops)
    lanes = trace.ops_on(device)
    if not lanes:
        return []
    kernels: dict[int, set[str]] = {}
    for lane in lanes:
        for pair in distinct(lane.op_of * len(lane.names) + lane.name_of)[0].tolist():
            kernels.setdefault(pair // len(lane.names), set()).add(lane.names[pair % len(lane.names)])
    group, begin, length = (
        np.concatenate([getattr(lane, column) for lane in lanes]) for column in ("op_of", "starts", "durations")
    )
    # Kernels of one stream may overlap without one holding the other.
    own = joined(lane.durations if lane.kind == "stream" else self_times(lane.starts, lane.durations) for lane in lanes)
    once, took = group, length
    if lanes[0].kind == "thread":
        once, took = _executions(trace, lanes, group, begin, length)
    numbers = np.bincount(once, minlength=count)
    total = np.bincount(group, weights=length.astype(np.float64), minlength=count)
    self_total = np.bincount(group, weights=own.astype(np.float64), minlength=count)
    wall = union_by_group(group, begin, length, count)
    median, least, greatest = medians_by_group(once, took, count)
    return [
        KernelTimes(
            module=trace.ops[index].module,
            program=None if (program := trace.ops[index].program) is None else str(program),
            name=trace.ops[index].name,
            device=device,
            count=int(numbers[index]),
            total_seconds=float(total[index]) * PS,
            self_seconds=float(self_total[index]) * PS,
            wall_seconds=float(wall[index]) * PS,
            median_seconds=float(median[index]) * PS,
            minimum_seconds=float(least[index]) * PS,
            maximum_seconds=float(greatest[index]) * PS,
            kernels=tuple(sorted(kernels.get(index, ()))),
            launch=launches.get((device, index)),
        )
        for index in np.flatnonzero(numbers).tolist()
    ]


def _executions(trace: Trace, lanes: list[Lane], op: Ints, starts: Ints, durations: Ints) -> tuple[Ints, Ints]:
    """Return the op of each execution on a CPU, and how long at least one of its slices ran."""
    _, program_of = trace.programs_of_ops()
    runs = joined(lane.executions for lane in lanes)
    holds = np.concatenate([holds_others(lane.starts, lane.durations) for lane in lanes])
    which = op_executions(program_of[op], runs, op, starts, starts + durations, holds)
    slices = np.bincount(which)
    op_of = np.zeros(len(slices), np.int64)
    took = np.zeros(len(slices), np.int64)
    op_of[which], took[which] = op, durations
    several = slices[which] > 1
    if several.any():
        groups, part = distinct(which[several])
        took[groups] = union_by_group(part, starts[several], durations[several], len(groups))
    return op_of, took


def op_executions(program: Ints, run: Ints, op: Ints, starts: Ints, ends: Ints, holds: Flags) -> Ints:
    """Return for each slice the number of its execution, from 0 on. All columns have one length.

    An op outside of loops runs once in a run of its program. In a loop (`holds` marks slices that hold others) slices
    belong to one execution if they overlap, or if no other op of the loop comes between them. A slice without a run
    (`run` 0) is an execution of its own.
    """
    if not len(op):
        return np.zeros(0, np.int64)
    runs = _pairs(program, run)
    order = by_group(runs, starts, int(runs.max()) + 1)
    run_of, op_of, held = runs[order], op[order], holds[order]
    begin, end = starts[order], ends[order]
    in_loop = begin < reached_before(run_of, begin, np.where(held, end, begin))
    sole = _sole(in_loop, held, op_of)
    pair = _pairs(run_of, op_of)
    rows = by_group(pair, np.arange(len(pair)), int(pair.max()) + 1)
    same = np.diff(pair[rows], prepend=-1) == 0
    overlap = begin[rows] < reached_before(pair[rows], begin[rows], end[rows])
    follows = np.diff(rows, prepend=-2) == 1
    joined = same & (run[order][rows] != 0) & (~in_loop[rows] | overlap | (follows & ~sole[rows]))
    numbers = np.empty(len(op), np.int64)
    numbers[order[rows]] = np.cumsum(~joined) - 1
    return numbers


def _pairs(first: Ints, second: Ints) -> Ints:
    """Return a number for each pair: equal pairs have equal numbers, which ascend with the first of the pair."""
    values, which = distinct(second)
    return distinct(distinct(first)[1] * len(values) + which)[1]


def _sole(in_loop: Flags, held: Flags, op: Ints) -> Flags:
    """Return where an op is the only one of its loop, so that its parts and its iterations cannot be told apart."""
    loop = np.cumsum(~in_loop) - 1
    if not in_loop.any():
        return in_loop
    leaf = in_loop & ~held
    first = np.flatnonzero(np.diff(loop, prepend=-1))
    least = np.minimum.reduceat(np.where(leaf, op, np.iinfo(np.int64).max), first)
    most = np.maximum.reduceat(np.where(leaf, op, -1), first)
    sole: Flags = (least == most)[np.maximum(loop, 0)] & in_loop
    return sole
