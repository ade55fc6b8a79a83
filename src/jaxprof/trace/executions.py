"""When programs ran on a device, and which of that belongs to the steps that the program annotates.

Each execution of each program is one interval. TPU and some GPU profiles have a line `XLA Modules` that lists them. On
CPU the ops of one execution share a `run_id`. A GPU kernel's correlation id names its launch on the host, which lies
within the call that executed the program. If none of these is known, executions cannot be told apart, and there are
none here.

The work of a step is what was launched within its annotation. A call returns before its work is done, so an annotation
around it ends long before the device does. Ids show what a step launched: a GPU's kernel carries the correlation id of
its launch on the host. On CPUs and TPUs the executions of a program run in the order of its calls, so the n-th
execution belongs to the n-th call of that name; this holds only if there are as many calls as executions, each of which
begins after its call. If neither is known, a program that waits within its annotations shows it: no execution crosses
the border of an annotation, and each annotation holds some. Anything else gives no link, and nothing is guessed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from jaxprof.base.grouping import grouped
from jaxprof.base.values import frozen
from jaxprof.trace.intervals import Coverage, Spans, distinct, extents_by_group, join, outermost, positions_in
from jaxprof.trace.launch import launches_on
from jaxprof.trace.model import ABSENT, NO_OP, Flags, Ints, Program, Trace, program_of

CALL = re.compile(r"Executable(_|::)Execute|ExecuteHelper|ExecuteOnLocalDevice|Execute[A-Z]\w*OnStream")
"""Names that JAX's runtimes give to the host call that executes a program."""
_NOWHERE = -1


@frozen
class Executions(Spans):
    """Executions of one program on one device, in order of start."""

    program: Program


def executions_on(trace: Trace, device: str) -> list[Executions]:
    """Return all executions on a device, by program; the program that took the longest comes first."""
    named = [lane for lane in trace.on_device(device) if lane.kind == "modules"]
    executions: list[Executions] = []
    if named:
        groups: dict[Program, list[tuple[int, int]]] = {}
        for lane in named:
            of_name = list(map(program_of, lane.names))
            for began, ended, index in zip(
                lane.starts.tolist(), lane.ends.tolist(), lane.name_of.tolist(), strict=True
            ):
                groups.setdefault(of_name[index], []).append((began, ended))
        for name, own in groups.items():
            spans = np.array(sorted(own), np.int64)
            executions.append(Executions(spans[:, 0], spans[:, 1], name))
    elif lanes := trace.ops_on(device):
        programs, of_op = trace.programs_of_ops()
        program = of_op[join(lane.op_of for lane in lanes)]
        start, end = join(lane.starts for lane in lanes), join(lane.ends for lane in lanes)
        runs = join(lane.executions for lane in lanes)
        calls = np.full(len(program), _NOWHERE, np.int64)
        if runs.any():
            calls = runs
        elif any(lane.kind == "stream" for lane in lanes):
            # The launch of a kernel on the host has its correlation id, and lies within a call.
            ids, moments, threads = launches_on(trace)
            at, known = positions_in(join(lane.correlations for lane in lanes), ids)
            if known.any():
                calls[known] = _calls_around(trace, moments, threads)[at[known]]
        for number, name in enumerate(programs):
            rows = np.flatnonzero(program == number)
            if not len(rows):
                continue
            own_calls = calls[rows] if runs.any() else _fill_unknown(calls[rows], start[rows])
            if own_calls is not None:
                different, which = distinct(own_calls)
                first, last = extents_by_group(which, start[rows], end[rows], len(different))
                order = np.argsort(first, kind="stable")
                executions.append(Executions(first[order], last[order], name))
    return sorted(executions, key=lambda program: -int((program.ends - program.starts).sum()))


# -- by the call on the host -------------------------------------------------------------------------------------------


def _calls_around(trace: Trace, moments: Ints, threads: Ints) -> Ints:
    """Return the number of the call that holds each moment: a call of its own thread, or the only call at that time."""
    call_of = np.full(len(moments), _NOWHERE, np.int64)
    certain = np.zeros(len(moments), np.bool_)
    several = np.zeros(len(moments), np.bool_)
    number = 0
    for lane in trace.threads:
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


def _fill_unknown(calls: Ints, starts: Ints) -> Ints | None:
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


_OUTSIDE = -1
"""Launched outside every annotation."""
_UNKNOWN = -2
"""The launching call is unknown."""
_MOST_UNKNOWN = 0.1
"""Largest share of the device's time with unknown launches for which the rest may stand for all."""
_OTHER_WORK = 0.1
"""Share of a step from which other work between two steps makes the first one end with its own work."""
_JIT_CALL = re.compile(r"PjitFunction\((.*)\)$", re.DOTALL)
_NOT_IN_MODULE_NAMES = re.compile(r"[^\w.-]")


@frozen
class Windows(Spans):
    """Steps on one device, and their names."""

    names: list[str]
    open_end: bool = False
    """Whether the last step ends with its own work, and each other step where the next one begins."""


@frozen
class Annotations(Spans):
    """Outermost step annotations of the host, in order of start."""

    names: list[str]
    threads: Ints
    """Host thread of each; 0 if unknown."""

    def around(self, moments: Ints, threads: Ints) -> Ints:
        """Return the annotation that holds each moment of a thread, or `_OUTSIDE`.

        A thread without annotations launches for the threads that have some; there time alone decides.
        """
        annotation_of = np.full(len(moments), _OUTSIDE, np.int64)
        annotating = np.isin(threads, self.threads) & (threads != 0)
        for thread in [None, *np.unique(self.threads[self.threads != 0]).tolist()]:
            on_thread = np.arange(len(self.starts)) if thread is None else np.flatnonzero(self.threads == thread)
            rows = np.flatnonzero(~annotating if thread is None else threads == thread)
            at = np.searchsorted(self.starts[on_thread], moments[rows], side="right") - 1
            inside = (at >= 0) & (moments[rows] < self.ends[on_thread[np.maximum(at, 0)]])
            annotation_of[rows[inside]] = on_thread[at[inside]]
        return annotation_of


@frozen
class _Work(Spans):
    """Intervals of a device, each with its annotation, `_OUTSIDE` or `_UNKNOWN`."""

    owner: Ints

    @property
    def is_known(self) -> bool:
        """Whether the launches are known for nearly all of the time."""
        took = self.ends - self.starts
        return bool(len(took)) and int(took[self.owner == _UNKNOWN].sum()) <= _MOST_UNKNOWN * int(took.sum())


def annotations_in(trace: Trace) -> Annotations:
    """Return the outermost step annotations of the host; one inside another of its thread is a part of that step."""
    steps: list[tuple[int, int, str, int]] = []
    for lane in trace.annotations:
        if lane.step is None:
            continue
        held = outermost(lane.select(lane.step != ABSENT))
        assert held.step is not None
        columns = zip(*(column.tolist() for column in (held.starts, held.ends, held.name_of, held.step)), strict=True)
        steps += [(start, end, f"{lane.names[name]} {step}", lane.thread) for start, end, name, step in columns]
    steps.sort()
    starts, ends, threads = (np.array([step[column] for step in steps], np.int64) for column in (0, 1, 3))
    return Annotations(starts, ends, [step[2] for step in steps], threads)


def steps_of_annotations(
    trace: Trace, device: str, annotations: Annotations, executions: Sequence[Executions]
) -> Windows | None:
    """Return the annotated steps on a device; None if their annotations cannot be linked to its work."""
    if not len(annotations.starts):
        return None
    # The kernels and copies of the device by their launches on the host.
    lanes = [lane for lane in trace.streams if lane.device == device]
    starts, ends = join(lane.starts for lane in lanes), join(lane.ends for lane in lanes)
    launched, moments, threads = launches_on(trace)
    at, known = positions_in(join(lane.correlations for lane in lanes), launched)
    owner = np.full(len(starts), _UNKNOWN, np.int64)
    owner[known] = annotations.around(moments, threads)[at[known]]
    of_ops = join(lane.op_of for lane in lanes) != NO_OP
    if of_ops.any():  # a copy of the next batch may run long before its step
        starts, ends, owner = starts[of_ops], ends[of_ops], owner[of_ops]
    work = _Work(starts, ends, owner)
    if not work.is_known or not (work.owner >= 0).any():
        work = _by_order(trace, device, annotations, executions)
    if work.is_known and (work.owner >= 0).any():
        # The annotations' own times if each holds all of its work. Otherwise a step begins with its work, and ends
        # where the work of the next step begins, or with its own work if other work follows.
        own = work.owner >= 0
        begins, ends = extents_by_group(work.owner[own], work.starts[own], work.ends[own], len(annotations.starts))
        there = np.flatnonzero(ends >= begins)
        begins, ends = begins[there], ends[there]
        names = [annotations.names[index] for index in there.tolist()]
        if ((annotations.starts[there] <= begins) & (ends <= annotations.ends[there])).all():
            return Windows(annotations.starts[there], annotations.ends[there], names)
        order = np.argsort(begins, kind="stable")
        names = [names[index] for index in order.tolist()]
        begins, ends = begins[order], ends[order]
        until = np.append(begins[1:], ends[-1])
        others = Coverage.of(work.starts[~own], work.ends[~own])
        alone = (until > ends) & (others.within(ends, np.maximum(ends, until)) > _OTHER_WORK * (ends - begins))
        return Windows(begins, np.where(alone, ends, until), names, open_end=True)
    # The annotations' own times if the program evidently waits within them.
    starts, ends = join(each.starts for each in executions), join(each.ends for each in executions)
    anyone = np.zeros(len(starts), np.int64)
    owner = annotations.around(starts, anyone)
    inside: Flags = owner >= 0
    until = annotations.around(np.maximum(ends - 1, starts), anyone)
    holding = len(np.unique(owner[inside]))
    if not holding or holding < len(annotations.starts) or (owner != until).any():
        return None
    return Windows(annotations.starts, annotations.ends, annotations.names)


def _by_order(trace: Trace, device: str, annotations: Annotations, executions: Sequence[Executions]) -> _Work:
    """Assign the executions of each program by its calls on the host."""
    nothing = np.zeros(0, np.int64)
    on_tpu = device.startswith("tpu:")
    # Calls by the name of their module, in order of start. A call within a call is traced and not executed; nor is a
    # call without an execution, if other calls of that name have one.
    calls_by_module: dict[str, list[tuple[int, int, bool]]] = {}
    for lane in trace.threads:
        outer = outermost(lane.select(lane.matching(_module_of)))
        executing = np.sort(lane.starts[lane.matching(CALL.search)])
        holds = np.searchsorted(executing, outer.ends) > np.searchsorted(executing, outer.starts)
        for index, start, holding in zip(outer.name_of.tolist(), outer.starts.tolist(), holds.tolist(), strict=True):
            module = _module_of(lane.names[index])
            calls_by_module.setdefault(module, []).append((start, lane.thread, holding))
    calls = {}
    for module, every in calls_by_module.items():
        executed = [call for call in every if call[2]] or every
        at, on, _ = zip(*sorted(executed), strict=True)
        calls[module] = (np.array(at, np.int64), np.array(on, np.int64))
    by_name = grouped((_as_module(of_program.program[0]), of_program) for of_program in executions)
    starts: list[Ints] = []
    ends: list[Ints] = []
    owners: list[Ints] = []
    for name, same in by_name.items():
        begin, end = join(each.starts for each in same), join(each.ends for each in same)
        order = np.argsort(begin, kind="stable")
        begin, end = begin[order], end[order]
        moments, threads = calls.get(name, (nothing, nothing))
        # A TPU's clock is not the host's.
        matched = len(moments) == len(begin) and (on_tpu or bool((moments <= begin).all()))
        starts.append(begin)
        ends.append(end)
        owners.append(annotations.around(moments, threads) if matched else np.full(len(begin), _UNKNOWN, np.int64))
    return _Work(join(starts), join(ends), join(owners))


def _module_of(event: str) -> str:
    """Return the name of the module that a call of a jitted function executes; empty for any other event."""
    match = _JIT_CALL.match(event)
    return _as_module(f"jit_{match[1]}") if match else ""


def _as_module(name: str) -> str:
    """Return a name as that of a module: `jit__lambda` for `<lambda>`, to which some versions of JAX append `_`."""
    return _NOT_IN_MODULE_NAMES.sub("_", name).rstrip("_")
