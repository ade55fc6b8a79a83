"""When programs ran on a device: each execution of each program as one interval.

TPU and some GPU profiles have a line `XLA Modules` that says so. On CPU the ops of one execution share a `run_id`. On
other GPU profiles a new execution begins where the op with which a program begins comes again.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jaxprof.trace.lanes import MODULE
from jaxprof.trace.model import NO_OP, PROGRAM_MASK, Ints, Lane, Trace

Program = tuple[str, int | None]
"""A module's name and its program id."""


@dataclass(frozen=True, slots=True)
class Executions:
    """Of one program on one device, in order of their start. Picoseconds."""

    program: Program
    starts: Ints
    ends: Ints


def executions_on(trace: Trace, device: str) -> list[Executions]:
    """All executions on a device, by program; the program that took the longest first."""
    named = [lane for lane in trace.lanes if lane.device == device and lane.kind == "modules"]
    if named:
        found = _of_module_lanes(named)
    else:
        lanes = [lane for lane in trace.op_lanes() if lane.device == device]
        found = _of_ops(trace, lanes)
    return sorted(found, key=lambda one: -int((one.ends - one.starts).sum()))


def _of_module_lanes(lanes: list[Lane]) -> list[Executions]:
    groups: dict[Program, list[tuple[int, int]]] = {}
    for lane in lanes:
        programs = []
        for name in lane.names:
            match = MODULE.match(name)
            programs.append((match["name"], int(match["id"]) & PROGRAM_MASK) if match else (name, None))
        for start, end, name in zip(lane.starts.tolist(), lane.ends.tolist(), lane.name_of.tolist(), strict=True):
            groups.setdefault(programs[name], []).append((start, end))
    return [_executions(program, sorted(spans)) for program, spans in groups.items()]


def _executions(program: Program, spans: list[tuple[int, int]]) -> Executions:
    return Executions(
        program, np.array([start for start, _ in spans], np.int64), np.array([end for _, end in spans], np.int64)
    )


def _of_ops(trace: Trace, lanes: list[Lane]) -> list[Executions]:
    if not trace.ops or not lanes:
        return []
    numbers: dict[Program, int] = {}
    of_op = np.array([numbers.setdefault((op.module, op.program), len(numbers)) for op in trace.ops], np.int64)
    op = np.concatenate([lane.op_of for lane in lanes])
    there = op != NO_OP
    op = op[there]
    program = of_op[op]
    start = np.concatenate([lane.starts for lane in lanes])[there]
    end = np.concatenate([lane.ends for lane in lanes])[there]
    runs = np.concatenate(
        [lane.execution if lane.execution is not None else np.zeros(len(lane), np.int64) for lane in lanes]
    )[there]
    found = []
    for name, number in numbers.items():
        rows = np.flatnonzero(program == number)
        if not len(rows):
            continue
        if runs[rows].any():
            group = np.unique(runs[rows], return_inverse=True)[1].astype(np.int64)
        else:
            group = _by_first_op(op[rows], start[rows])
        found.append(_grouped(name, group, start[rows], end[rows]))
    return found


def _grouped(program: Program, group: Ints, start: Ints, end: Ints) -> Executions:
    count = int(group.max()) + 1
    first = np.full(count, np.iinfo(np.int64).max)
    last = np.full(count, np.iinfo(np.int64).min)
    np.minimum.at(first, group, start)
    np.maximum.at(last, group, end)
    order = np.argsort(first, kind="stable")
    return Executions(program, first[order], last[order])


def _by_first_op(op: Ints, start: Ints) -> Ints:
    """Executions told by the op that begins them; all one where that op also runs inside a loop."""
    order = np.argsort(start, kind="stable")
    begins = op[order] == op[order[0]]
    counts = np.bincount(op)
    if counts[op[order[0]]] > counts[counts > 0].min():
        return np.zeros(len(op), np.int64)
    found = np.empty(len(op), np.int64)
    found[order] = np.cumsum(begins) - 1
    return found
