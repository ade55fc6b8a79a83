"""Turn a recorded profile into the events of a run: what was captured, the kernel times, the steps, the timeline.

The events have neither sequence numbers nor times, which the pipe stamps. No jax is needed.

The timeline is one JSON text: lanes of intervals, small enough to keep in a session. Starts are differences to the
previous interval, so that the numbers stay short. `docs/traces.md` describes the format;
`jaxprof.analysis.timeline`
reads it for drawing and export.

On a CPU an execution of an op is a slice on a thread, or several; on a GPU one or more kernels, each of which is
counted, as in xprof. Wall time is the union of an op's intervals on its device, CPU time their sum; the two differ if
several threads work on one op. Self time leaves out what ran inside (a while loop holds the ops of its body).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Sequence
from statistics import median
from typing import Any

import numpy as np

from jaxprof.base.errors import JaxprofError
from jaxprof.base.grouping import grouped, totals
from jaxprof.events import (
    CaptureTaken,
    Event,
    KernelLaunch,
    KernelsMeasured,
    KernelTimes,
    StepsMeasured,
    TextRecorded,
    TrustReported,
)
from jaxprof.hlo.kernels.execution import Execution
from jaxprof.hlo.text.parse import modules
from jaxprof.hlo.text.proto import text as hlo_text
from jaxprof.trace.intervals import (
    Coverage,
    by_group,
    distinct,
    join,
    latest_end_before,
    medians_by_group,
    nesting_order,
    self_times,
    some_groups,
    union_by_group,
)
from jaxprof.trace.launch import launches_of, transfers_of
from jaxprof.trace.model import ABSENT, LONGEST_PS, NO_OP, PS, Flags, Ints, Lane, Program, Trace, program_proto
from jaxprof.trace.passes import compile_passes
from jaxprof.trace.steps import Steps, steps_of
from jaxprof.trace.trust import trust_rows

_ByHlo = Callable[[list[int]], tuple[Ints, Flags]]


def op_times(trace: Trace) -> list[KernelTimes]:
    """Return the table, longest self time first. Times of an execution on a CPU are those in which at least one thread
    worked on it."""
    launches = launches_of(trace)
    devices = dict.fromkeys(lane.device for lane in trace.op_lanes())
    rows = [row for device in devices for row in _of_device(trace, device, launches)]
    return sorted(rows, key=lambda row: -row.self_seconds)


def seconds_without_op(trace: Trace) -> dict[str, float]:
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
    own = join(lane.durations if lane.kind == "stream" else self_times(lane.starts, lane.durations) for lane in lanes)
    total = np.bincount(group, weights=length.astype(np.float64), minlength=count)
    wall = union_by_group(group, begin, length, count)
    once, took = group, length
    if lanes[0].kind == "thread":
        # On a CPU an execution takes as long as at least one of its slices runs.
        _, program_of = trace.programs_of_ops()
        runs = join(lane.executions for lane in lanes)
        ends, apart = begin + length, total == wall
        apart[group[length == 0]] = False
        which = op_executions(program_of[group], runs, group, begin, ends, lambda ops: _by_hlo(trace, ops), apart)
        slices = np.bincount(which)
        several = slices[which] > 1
        if several.any():
            once, took = np.zeros((2, len(slices)), np.int64)
            once[which], took[which] = group, length
            groups, part = distinct(which[several])
            took[groups] = union_by_group(part, begin[several], length[several], len(groups))
    numbers = np.bincount(once, minlength=count)
    self_total = np.bincount(group, weights=own.astype(np.float64), minlength=count)
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


def op_executions(program: Ints, run: Ints, op: Ints, starts: Ints, ends: Ints, by_hlo: _ByHlo, apart: Flags) -> Ints:
    """Return for each slice the number of its execution, from 0 on. All columns have one length.

    XLA:CPU runs an op as one task on one thread, so a slice is an execution, also in a loop, which may go on in another
    thread without a `while` around it. Only a sort is several tasks: it copies its operands first. Slices of an op in a
    run of its program may therefore be parts of one execution where they overlap, or where no other op comes between
    them. `by_hlo` returns for ops with such neighbours how often each runs in a run of its program (0: unknown), by
    which the slices are divided, and whether it is a sort, whose neighbours are parts if they cannot be divided. A
    slice without a run (`run` 0) is an execution of its own. `apart` says of which ops no slices overlap.
    """
    if not len(op):
        return np.zeros(0, np.int64)
    runs = _pairs(program, run)
    numbers = np.empty(len(op), np.int64)
    asked: set[int] = set()
    often, is_sort = np.zeros(int(op.max()) + 1, np.int64), np.zeros(int(op.max()) + 1, np.bool_)
    count = 0
    for slices in some_groups(runs, by_group(runs, starts, int(runs.max()) + 1)):
        of_slices = op[slices]
        if not asked and apart[of_slices].all() and (of_slices[1:] != of_slices[:-1]).all():
            numbers[slices] = np.arange(count, count + len(slices))
            count += len(slices)
            continue
        pair = _pairs(runs[slices], of_slices)
        rows = by_group(pair, np.arange(len(pair)), int(pair.max()) + 1)
        pair, position = pair[rows], slices[rows]
        new = np.diff(pair, prepend=-1) != 0
        same = ~new & (run[position] != 0)
        parts = same & (starts[position] < latest_end_before(pair, starts[position], ends[position]))
        neighbours = same & ~parts & (np.diff(rows, prepend=-2) == 1)
        if neighbours.any():
            ops = op[position]
            if unknown := set(distinct(ops[neighbours])[0].tolist()) - asked:
                asked |= unknown
                new_ops = sorted(unknown)
                often[new_ops], is_sort[new_ops] = (found[new_ops] for found in by_hlo(new_ops))
            first, which = np.flatnonzero(new), np.cumsum(new) - 1
            size = np.diff(np.append(first, len(pair)))[which]
            times = np.maximum(often[ops], 1)
            divides = (often[ops] > 0) & (size % times == 0) & same
            number = np.arange(len(pair)) - first[which]
            parts = np.where(divides, number % np.maximum(size // times, 1) != 0, parts | (neighbours & is_sort[ops]))
        executions = np.cumsum(~parts)
        numbers[position] = count + executions - 1
        count += int(executions[-1])
    return numbers


def _by_hlo(trace: Trace, ops: list[int]) -> tuple[Ints, Flags]:
    """Return for each op of the trace how often a call of its program runs it, and whether it is a sort, as the HLO
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
    (values, which), (others, other) = distinct(second), distinct(first)
    return which if len(others) == 1 else distinct(other * len(values) + which)[1]


TIMELINE = "timeline"
"""Name of the timeline's text."""
VIEWS = ("kernels", "steps", "compile", "memory", "trust", TIMELINE)
"""Everything that can be derived from a profile."""


def events_of(
    trace: Trace,
    kind: str,
    *,
    calls: int | None = None,
    seconds_of_calls: Sequence[float] = (),
    timed_seconds: float | None = None,
    path: str = "",
    table: list[KernelTimes] | None = None,
    views: Collection[str] = VIEWS,
) -> Iterator[Event]:
    """Yield the events of a profile.

    `calls` and `seconds_of_calls` are what the capture measured itself; `timed_seconds` is the earlier time of a call
    without the profiler; `path` is that of the kept raw file, if any; `table` replaces the rows of the table of
    kernels. Only what `views` need is derived: that table does without the millions of events on the host's threads.
    """
    wanted = frozenset(views)
    whole = bool(wanted & {"steps", "trust", "timeline", "compile"})
    span = trace.span_ps if whole else None
    seconds_with = median(seconds_of_calls) if seconds_of_calls else None
    yield CaptureTaken(
        kind=kind,
        platform=trace.platform,
        calls=calls,
        seconds_with=seconds_with,
        wall_seconds=(span[1] - span[0]) * PS if span is not None else None,
        events=trace.events if whole else None,
        bytes=trace.bytes or None,
        path=path,
    )
    if kind != "compile" and "kernels" in wanted:
        yield KernelsMeasured(
            kind=kind,
            calls=calls,
            rows=op_times(trace) if table is None else table,
            transfers=transfers_of(trace),
            unattributed_seconds=seconds_without_op(trace),
        )
    steps = steps_of(trace) if kind != "compile" and wanted & {"steps", "trust", "timeline"} else None
    if steps is not None and steps.rows:
        yield StepsMeasured(found_by=steps.found_by, steps=steps.rows, devices=steps.devices)
    compiled = compile_passes(trace) if wanted & {"compile", "trust"} else None
    if compiled is not None and kind in ("compile", "imported") and "compile" in wanted:
        yield compiled
    has_timeline = "timeline" in wanted and kind != "compile"
    if "trust" in wanted:
        rows = trust_rows(
            trace,
            kind,
            steps,
            None if compiled is None else compiled.tree.seconds,
            intervals_left_out=max(0, sum(map(len, trace.lanes)) - INTERVALS_KEPT) if has_timeline else 0,
            busy_share=_busy_share(steps, seconds_of_calls),
            seconds_with=seconds_with,
            timed_seconds=timed_seconds,
        )
        yield TrustReported(kind=kind, rows=rows)
    if has_timeline and trace.lanes:
        yield TextRecorded(name=TIMELINE, text=timeline_text(trace))


def _busy_share(steps: Steps | None, seconds_of_calls: Sequence[float]) -> float | None:
    """Return device time over the time of all calls, for a capture of nothing else; the mean over several devices.

    Total over total: a call that the machine delayed counts in both, while a median leaves it out.
    """
    if steps is None or not steps.rows or not sum(seconds_of_calls):
        return None
    return (steps.inside_seconds + steps.outside_seconds) / len(steps.devices) / sum(seconds_of_calls)


INTERVALS_KEPT = 1_000_000
"""Most intervals that are kept; beyond that the shortest are left out, and their number is recorded."""
ACTIVE_BINS = 4096
"""Number of equal parts of the profile for which a lane's active time is kept, if some of its intervals are not."""
COUNTS_KEPT = 200_000
"""Most values of a counter that are kept."""
_NAME_LIMIT = 300
"""Most characters of an interval's name: TPU profiles use a whole line of HLO as the name."""
_DEVICE_KINDS = ("modules", "steps", "stream", "ops", "thread", "async")


def timeline_text(trace: Trace, limit: int = INTERVALS_KEPT) -> str:
    """Return the timeline of all lanes; if intervals must be left out, device lanes go before the host's."""
    total = sum(len(lane) for lane in trace.lanes)
    if total <= limit:
        chosen = [np.arange(len(lane)) for lane in trace.lanes]
    else:
        on_device = np.concatenate([np.full(len(lane), lane.kind in _DEVICE_KINDS) for lane in trace.lanes])
        durations = np.concatenate([lane.durations for lane in trace.lanes])
        wanted = durations + on_device * (LONGEST_PS + 1)
        longest = np.zeros(total, np.bool_)
        longest[np.argpartition(wanted, total - limit)[total - limit :]] = True
        borders = np.cumsum([len(lane) for lane in trace.lanes])[:-1]
        chosen = [np.flatnonzero(part) for part in np.split(longest, borders)]
    kept = [
        rows[nesting_order(lane.starts[rows], lane.durations[rows])]
        for lane, rows in zip(trace.lanes, chosen, strict=True)
    ]
    stays = sum(len(rows) for rows in kept)
    span = trace.span_ps or (0, 1)
    payload: dict[str, Any] = {
        "version": 1,
        "unit": "ns",
        "started_unix_ns": trace.started_unix_ns,
        "left_out": total - stays,
        "ops": [[op.module, None if op.program is None else str(op.program), op.name] for op in trace.ops],
        "lanes": [
            _lane(lane, rows) | (_omissions(lane, rows, span) if stays < total else {})
            for lane, rows in zip(trace.lanes, kept, strict=True)
            if len(rows)
        ],
    }
    if trace.counters:
        # One for each name, because several threads may report the same allocator.
        groups = grouped(((counter.device, counter.name, counter.unit), counter) for counter in trace.counters)
        payload["counters"] = []
        for (device, name, unit), same in groups.items():
            times = np.concatenate([counter.times for counter in same])
            order = np.argsort(times, kind="stable")
            values = np.concatenate([counter.values for counter in same])
            times, values = _nanoseconds(times[order]), values[order]
            # The points at which the value changes; the last one of those within a nanosecond.
            last = np.append(times[1:] != times[:-1], [True])
            times, values = times[last], values[last]
            changes = np.concatenate([[True], values[1:] != values[:-1]])[:COUNTS_KEPT]
            times, values = times[:COUNTS_KEPT][changes], values[:COUNTS_KEPT][changes]
            points = {"time": np.diff(times, prepend=0).tolist(), "value": values.tolist()}
            payload["counters"].append({"device": device, "name": name, "unit": unit, **points})
    return json.dumps(payload, ensure_ascii=False, separators=(",", ":"))


def _lane(lane: Lane, rows: Ints) -> dict[str, Any]:
    pairs = lane.name_of[rows] * (int(lane.op_of.max()) + 2) + lane.op_of[rows] + 1
    different, first, which = np.unique(pairs, return_index=True, return_inverse=True)
    labels = []
    for row in rows[first].tolist():
        op = int(lane.op_of[row])
        labels.append([lane.names[int(lane.name_of[row])][:_NAME_LIMIT], None if op == NO_OP else op])
    # Start and end are rounded separately: with a rounded start and duration, nested intervals would overlap.
    starts, ends = _nanoseconds(lane.starts[rows]), _nanoseconds(lane.ends[rows])
    payload: dict[str, Any] = {
        "device": lane.device,
        "name": lane.name,
        "kind": lane.kind,
        "labels": labels,
        "label": which[: len(rows)].tolist() if len(different) > 1 else [0] * len(rows),
        "start": np.diff(starts, prepend=0).tolist(),
        "duration": (ends - starts).tolist(),
    }
    if lane.execution is not None and lane.execution[rows].any():
        payload["execution"] = np.diff(lane.execution[rows], prepend=0).tolist()
    if lane.correlation is not None and (lane.correlation[rows] != ABSENT).any():
        payload["correlation"] = np.diff(lane.correlation[rows], prepend=0).tolist()
    if lane.step is not None:
        annotated = np.flatnonzero(lane.step[rows] != ABSENT)
        payload["steps"] = [[int(at), int(lane.step[rows[at]])] for at in annotated.tolist()]
    return payload


def _omissions(lane: Lane, rows: Ints, span: tuple[int, int]) -> dict[str, Any]:
    """Return how many intervals of a lane are not kept, and when the lane was active including them: nothing else tells
    that from idle time."""
    if len(rows) == len(lane):
        return {"left_out": 0}
    step = (span[1] - span[0]) // ACTIVE_BINS // 1000 * 1000 + 1000
    begins = span[0] + step * np.arange((span[1] - span[0]) // step + 1)
    active = Coverage.of(lane.starts, lane.ends).within(begins, begins + step)
    return {
        "left_out": len(lane) - len(rows),
        "active": {"start": int(_nanoseconds(begins)[0]), "step": step // 1000, "busy": _nanoseconds(active).tolist()},
    }


def _nanoseconds(picoseconds: Ints) -> Ints:
    """Return nanoseconds rounded half up, in integers: a double has too few digits for a long recording."""
    nanoseconds: Ints = (picoseconds + 500) // 1000
    return nanoseconds
