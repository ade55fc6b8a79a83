"""When programs ran on a device: each execution of each program as one interval.

TPU and some GPU profiles have a line `XLA Modules` that lists executions. On CPU the ops of one execution share a
`run_id`. A GPU kernel's correlation id names its launch on the host, which lies within the call that executed the
program. If none of these is known, executions cannot be told apart, and there are none here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

import numpy as np

from jaxprof.trace.intervals import distinct, extents_by_group, joined, outermost, places_of
from jaxprof.trace.launch import launches_on
from jaxprof.trace.model import Ints, Lane, Program, Trace, program_of

CALL: Final = re.compile(r"Executable(_|::)Execute|ExecuteHelper|ExecuteOnLocalDevice|Execute[A-Z]\w*OnStream")
"""Names that JAX's runtimes give to the host call that executes a program."""
_NOWHERE: Final = -1


@dataclass(frozen=True, slots=True)
class Executions:
    """Executions of one program on one device, in order of start. Picoseconds."""

    program: Program
    starts: Ints
    ends: Ints


def executions_on(trace: Trace, device: str) -> list[Executions]:
    """Return all executions on a device, by program; the program that took the longest comes first."""
    named = [lane for lane in trace.on_device(device) if lane.kind == "modules"]
    executions = _of_module_lanes(named) if named else _of_ops(trace, trace.ops_on(device))
    return sorted(executions, key=lambda program: -int((program.ends - program.starts).sum()))


def _of_module_lanes(lanes: list[Lane]) -> list[Executions]:
    groups: dict[Program, list[tuple[int, int]]] = {}
    for lane in lanes:
        programs = list(map(program_of, lane.names))
        for start, end, name in zip(lane.starts.tolist(), lane.ends.tolist(), lane.name_of.tolist(), strict=True):
            groups.setdefault(programs[name], []).append((start, end))
    return [Executions(program, *np.array(sorted(spans), np.int64).T) for program, spans in groups.items()]


def _of_ops(trace: Trace, lanes: list[Lane]) -> list[Executions]:
    if not lanes:
        return []
    programs, of_op = trace.programs_of_ops()
    program = of_op[joined(lane.op_of for lane in lanes)]
    start, end = joined(lane.starts for lane in lanes), joined(lane.ends for lane in lanes)
    runs = joined(lane.executions for lane in lanes)
    if runs.any():
        calls = runs
    elif any(lane.kind == "stream" for lane in lanes):
        calls = _calls_of_kernels(trace, lanes)
    else:
        calls = np.full(len(program), _NOWHERE, np.int64)
    executions = []
    for number, name in enumerate(programs):
        rows = np.flatnonzero(program == number)
        if not len(rows):
            continue
        own_calls = calls[rows] if runs.any() else _filled(calls[rows], start[rows])
        if own_calls is not None:
            executions.append(_grouped(name, distinct(own_calls)[1], start[rows], end[rows]))
    return executions


def _grouped(program: Program, group: Ints, start: Ints, end: Ints) -> Executions:
    first, last = extents_by_group(group, start, end, int(group.max()) + 1)
    order = np.argsort(first, kind="stable")
    return Executions(program, first[order], last[order])


# -- by the call on the host -------------------------------------------------------------------------------------------


def _calls_of_kernels(trace: Trace, lanes: list[Lane]) -> Ints:
    """Return for each kernel of these lanes the number of the host call that launched it, `_NOWHERE` if unknown."""
    ids, moments, threads = launches_on(trace)
    at, known = places_of(joined(lane.correlations for lane in lanes), ids)
    calls = np.full(len(known), _NOWHERE, np.int64)
    if not known.any():
        return calls
    calls[known] = _calls_around(trace, moments, threads)[at[known]]
    return calls


def _calls_around(trace: Trace, moments: Ints, threads: Ints) -> Ints:
    """Return the number of the call that holds each moment: a call of its own thread, or the only call at that time."""
    call_of = np.full(len(moments), _NOWHERE, np.int64)
    certain = np.zeros(len(moments), np.bool_)
    several = np.zeros(len(moments), np.bool_)
    number = 0
    for lane in trace.lanes:
        if lane.kind != "host":
            continue
        calls = outermost(lane.select(lane.matching(CALL.search)))
        if not len(calls):
            continue
        at = np.maximum(np.searchsorted(calls.starts, moments, side="right") - 1, 0)
        inside = (calls.starts[at] <= moments) & (moments <= calls.ends[at])
        own = inside & (threads == lane.thread) & (lane.thread != 0)
        several |= inside & (call_of != _NOWHERE) & ~own & ~certain
        take = own | (inside & ~certain)
        call_of[take] = number + at[take]
        certain |= own
        number += len(calls)
    call_of[several & ~certain] = _NOWHERE
    return call_of


def _filled(calls: Ints, starts: Ints) -> Ints | None:
    """Return the calls of a program's kernels, unknown ones taken from the kernel before; None if a tenth or more are
    unknown."""
    unknown = calls == _NOWHERE
    if np.count_nonzero(unknown) * 10 >= len(calls):
        return None
    if not unknown.any():
        return calls
    order = np.argsort(starts, kind="stable")
    latest = np.where(unknown[order], 0, np.arange(len(order)))
    latest = np.maximum(np.maximum.accumulate(latest), int(np.argmin(unknown[order])))
    filled = np.empty_like(calls)
    filled[order] = calls[order][latest]
    return filled
