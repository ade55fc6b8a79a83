"""Values of a line's events as columns: integers in any encoding, texts, the HLO op that each event belongs to, and
the bytes that allocators had given out over time.

On GPUs and CPUs an event's own statistics name its op; on TPUs the metadata of its name do.
"""

from __future__ import annotations

import re

import numpy as np
from numpy.typing import NDArray

from jaxprof.trace.events import Events, StatColumn
from jaxprof.trace.intervals import distinct
from jaxprof.trace.line import PlaneLine
from jaxprof.trace.model import (
    ABSENT,
    NO_OP,
    PROGRAM_MASK,
    Counter,
    Ints,
    Lane,
    Op,
    OpNumbers,
    TextColumn,
    Trace,
)
from jaxprof.trace.xspace import Plane

_INTEGER = re.compile(r"-?\d{1,18}")


def _examples(which: Ints) -> Ints:
    """Return one index of each number in `which`, which holds all numbers from 0 on."""
    rows = np.zeros(int(which.max()) + 1 if len(which) else 0, np.int64)
    rows[which] = np.arange(len(which))
    return rows


def _keys(column: StatColumn | None, rows: Ints) -> Ints:
    """Return numbers that are equal if the statistics are equal: references and integers unchanged, texts by their
    hash."""
    if column is None:
        return np.zeros(len(rows), np.int64)
    numbers = column.number[rows].copy()
    textual = np.flatnonzero(column.text_end[rows])
    if len(textual):
        blob = column.blob
        at, end = column.number[rows], column.text_end[rows]
        numbers[textual] = [hash(bytes(blob[at[index] : end[index]])) for index in textual.tolist()]
    return numbers


def text_at(plane: Plane, column: StatColumn | None, row: int) -> str:
    """Return the statistic of one event as text; empty if it has none."""
    if column is None or not column.present[row]:
        return ""
    if column.text_end[row]:
        return plane.space.text(int(column.number[row]), int(column.text_end[row]))
    if column.is_reference[row]:
        return plane.stat_names.get(int(column.number[row]), "")
    return str(int(column.number[row]))


def integers(plane: Plane, column: StatColumn, default: int) -> Ints:
    """Return a column of integers; integers written as text are read too."""
    values = np.where(column.present & (column.text_end == 0) & ~column.is_reference, column.number, default)
    for row in np.flatnonzero(column.present & ((column.text_end > 0) | column.is_reference)).tolist():
        text = text_at(plane, column, row)
        values[row] = int(text) if _INTEGER.fullmatch(text) else default
    return values


def text_column(plane: Plane, column: StatColumn | None) -> TextColumn | None:
    """Return a column of texts; None if no event has one."""
    if column is None or not column.present.any():
        return None
    rows = np.flatnonzero(column.present)
    which = distinct(_keys(column, rows))[1]
    first = _examples(which)
    index = np.full(len(column.present), ABSENT, np.int64)
    index[rows] = which
    return TextColumn([text_at(plane, column, row) for row in rows[first].tolist()], index)


def ops_of_events(plane: Plane, columns: dict[str, StatColumn], lane: Lane, ops: OpNumbers) -> None:
    """Set the ops of a GPU's or CPU's events, which their own statistics name."""
    correlation = columns.get("correlation_id")
    if correlation is not None and correlation.present.any():
        lane.correlation = integers(plane, correlation, ABSENT)
    op, module, program = columns.get("hlo_op"), columns.get("hlo_module"), columns.get("program_id")
    if op is None or not op.present.any():
        return
    if (execution := columns.get("run_id")) is not None:
        lane.execution = integers(plane, execution, 0)
    rows = np.flatnonzero(op.present)
    which = distinct(_keys(op, rows))[1]
    for column in (module, program):
        if column is not None:
            different, more = distinct(_keys(column, rows))
            which = distinct(which * len(different) + more)[1]
    first = _examples(which)
    numbers = np.empty(len(first), np.int64)
    for index, example in enumerate(rows[first].tolist()):
        name = text_at(plane, op, example)
        if not name:
            numbers[index] = NO_OP
            continue
        identity = text_at(plane, program, example)
        op_of_row = Op(
            module=text_at(plane, module, example),
            program=int(identity) & PROGRAM_MASK if _INTEGER.fullmatch(identity) else None,
            name=name,
        )
        numbers[index] = ops.setdefault(op_of_row, len(ops))
    lane.op_of[rows] = numbers[which]


def use_own_clock(plane: Plane, events: Events, lane: Lane) -> tuple[Ints, Ints] | None:
    """Set a TPU lane's times to the device's own clock; the event's times are converted to the host's clock, which
    drifts.

    The lane is moved as a whole, so it lines up with the host's lanes and its intervals still nest. Returns the starts
    and ends as they were, in order, and the correction of each; None if there is no own clock.
    """
    columns = events.stats(plane.stat_ids("device_duration_ps", "device_offset_ps"))
    duration, offset = columns.get("device_duration_ps"), columns.get("device_offset_ps")
    if not len(lane) or duration is None or offset is None or not (duration.present & offset.present).all():
        return None
    shift = int(np.median(lane.starts - offset.number))
    converted = np.concatenate([lane.starts, lane.ends])
    lane.starts, lane.durations = offset.number + shift, duration.number
    order = np.argsort(converted, kind="stable")
    return converted[order], (np.concatenate([lane.starts, lane.ends]) - converted)[order]


def follow_clock(lane: Lane, clock: tuple[Ints, Ints]) -> None:
    """Correct the times of a TPU's events that lack the device's own clock like those of the ops around them."""
    starts, ends = (times + np.interp(times, *clock).astype(np.int64) for times in (lane.starts, lane.ends))
    lane.starts, lane.durations = starts, np.maximum(ends - starts, 0)


def ops_of_metadata(plane: Plane, events: Events, lane: Lane, modules: dict[int, str], ops: OpNumbers) -> None:
    """Set the ops of a TPU's events, whose metadata names the op, its program, and its cost."""
    ids, which = distinct(events.metadata_ids)
    numbers: NDArray[np.int64] = np.full(len(ids), NO_OP, np.int64)
    for index, key in enumerate(ids.tolist()):
        metadata = plane.event_metadata.get(key)
        program = metadata.stats.get("program_id") if metadata is not None else None
        if metadata is None or not isinstance(program, int):
            continue
        identity = program & PROGRAM_MASK
        name = (lane.kind != "async" and metadata.display_name) or _instruction(metadata.name)
        numbers[index] = ops.setdefault(Op(modules.get(identity, ""), identity, name), len(ops))
    lane.op_of[:] = numbers[which]


def _instruction(line: str) -> str:
    """Return the name in a line of HLO: `copy-start.2` for `%copy-start.2 = (...) copy-start(...)`."""
    return line.lstrip("%").split(" ", 1)[0]


def allocated_bytes(trace: Trace, line: PlaneLine, device: str) -> None:
    """Read the bytes that each allocator had given out, from the marks of allocations on a thread."""
    wanted = line.plane.stat_ids("bytes_allocated", "allocator_name")
    ids = {name: key for key, name in wanted.items()}
    if "bytes_allocated" not in ids:
        return
    events = line.some(line.rows_with([ids["bytes_allocated"]]))
    columns = events.stats(wanted)
    held = columns["bytes_allocated"]
    rows = np.flatnonzero(held.present)
    if not len(rows):
        return
    times = events.starts_ps + (line.timestamp_ns - trace.origin_ns) * 1000
    values = integers(line.plane, held, 0).astype(np.float64)
    names = text_column(line.plane, columns.get("allocator_name"))
    which = np.zeros(len(events), np.int64) if names is None else names.which
    for number in np.unique(which[rows]).tolist():
        name = names.texts[number] if names is not None and number >= 0 else "allocator"
        own = rows[which[rows] == number]
        own = own[np.argsort(times[own], kind="stable")]
        trace.counters.append(Counter(device, f"{name} allocated", "bytes", times[own], values[own]))
