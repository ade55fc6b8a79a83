"""The table of HLO ops of a trace: how often, how long, on how many threads at once.

On a CPU an execution of an op is a slice on a thread, or several; on a GPU one or more kernels, each of which is
counted, as in xprof. Wall time is the union of an op's intervals on its device, CPU time their sum; the two differ if
several threads work on one op. Self time leaves out what ran inside (a while loop holds the ops of its body).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from jaxprof.base.errors import JaxprofError
from jaxprof.base.grouping import grouped, totals
from jaxprof.events import KernelLaunch, KernelTimes
from jaxprof.hlo.kernels.execution import Execution
from jaxprof.hlo.text.parse import modules
from jaxprof.hlo.text.proto import text as hlo_text
from jaxprof.trace.intervals import (
    by_group,
    distinct,
    joined,
    medians_by_group,
    reached_before,
    self_times,
    union_by_group,
)
from jaxprof.trace.launch import launches_of
from jaxprof.trace.model import NO_OP, PS, Flags, Ints, Lane, Program, Trace, program_proto


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
    which = op_executions(program_of[op], runs, op, starts, starts + durations, lambda ops: _by_hlo(trace, ops))
    slices = np.bincount(which)
    op_of = np.zeros(len(slices), np.int64)
    took = np.zeros(len(slices), np.int64)
    op_of[which], took[which] = op, durations
    several = slices[which] > 1
    if several.any():
        groups, part = distinct(which[several])
        took[groups] = union_by_group(part, starts[several], durations[several], len(groups))
    return op_of, took


def op_executions(
    program: Ints, run: Ints, op: Ints, starts: Ints, ends: Ints, by_hlo: Callable[[list[int]], tuple[Ints, Flags]]
) -> Ints:
    """Return for each slice the number of its execution, from 0 on. All columns have one length.

    XLA:CPU runs an op as one task on one thread, so a slice is an execution, also in a loop, which may go on in another
    thread without a `while` around it. Only a sort is several tasks: it copies its operands first. Slices of an op in a
    run of its program may therefore be parts of one execution where they overlap, or where no other op comes between
    them. `by_hlo` returns for ops with such neighbours how often each runs in a run of its program (0: unknown), by
    which the slices are divided, and whether it is a sort, whose neighbours are parts if they cannot be divided. A
    slice without a run (`run` 0) is an execution of its own.
    """
    if not len(op):
        return np.zeros(0, np.int64)
    runs = _pairs(program, run)
    order = by_group(runs, starts, int(runs.max()) + 1)
    pair = _pairs(runs[order], op[order])
    rows = by_group(pair, np.arange(len(pair)), int(pair.max()) + 1)
    pair, place = pair[rows], order[rows]
    new = np.diff(pair, prepend=-1) != 0
    same = ~new & (run[place] != 0)
    parts = same & (starts[place] < reached_before(pair, starts[place], ends[place]))
    neighbours = same & ~parts & (np.diff(rows, prepend=-2) == 1)
    if neighbours.any():
        often, is_sort = by_hlo(distinct(op[place][neighbours])[0].tolist())
        first, which = np.flatnonzero(new), np.cumsum(new) - 1
        size = np.diff(np.append(first, len(pair)))[which]
        times = np.maximum(often[op[place]], 1)
        divides = (often[op[place]] > 0) & (size % times == 0) & same
        number = np.arange(len(pair)) - first[which]
        parts = np.where(divides, number % np.maximum(size // times, 1) != 0, parts | (neighbours & is_sort[op[place]]))
    numbers = np.empty(len(op), np.int64)
    numbers[place] = np.cumsum(~parts) - 1
    return numbers


def _by_hlo(trace: Trace, ops: list[int]) -> tuple[Ints, Flags]:
    """Return for each op of the trace how often it runs in one run of its program, and whether it is a sort, as the HLO
    of the profile states it for these `ops`. Without HLO its name says whether it is a sort."""
    often, is_sort = np.zeros(len(trace.ops), np.int64), np.zeros(len(trace.ops), np.bool_)
    for program, numbers in grouped(((trace.ops[each].module, trace.ops[each].program), each) for each in ops).items():
        text, _ = text_of(trace, program)
        module = modules(text)[0] if text is not None else None
        for number in numbers:
            name = trace.ops[number].name
            is_sort[number] = name.startswith("sort")
            holders = module.computations.values() if module is not None else ()
            instruction = next((found for holder in holders if (found := holder.get(name)) is not None), None)
            if module is not None and instruction is not None:
                count, conditional = module.once(Execution).runs(instruction.computation)
                often[number] = 0 if conditional or count is None else count
                is_sort[number] = instruction.opcode == "sort"
    return often, is_sort


def text_of(trace: Trace, program: Program) -> tuple[str | None, str]:
    """Return the HLO text of a program, or the reason why there is none."""
    held = program_proto(trace, *program)
    if held is None:
        return None, "the profile does not hold its HLO"
    try:
        return hlo_text(held.proto), ""
    except (JaxprofError, RecursionError) as error:
        return None, f"its HLO cannot be read: {error}"


def _pairs(first: Ints, second: Ints) -> Ints:
    """Return a number for each pair: equal pairs have equal numbers, which ascend with the first of the pair."""
    values, which = distinct(second)
    return distinct(distinct(first)[1] * len(values) + which)[1]
