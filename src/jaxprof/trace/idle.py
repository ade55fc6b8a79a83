"""What the host did while a GPU had nothing to do.

Each moment of a step in which nothing was being executed belongs to the first of these that a thread of the host was
in: compiling, copying to or from the device, calling a program (which had not reached the device yet), waiting for the
device. What is left is the host's own work. Where the program annotates it (`TraceAnnotation`), or the Python tracer
was on, the most specific event that holds most of that work names it; otherwise nobody does, and nothing is guessed.

Garbage collection leaves no event of its own, so it is not told apart from other work. A TPU's ops are timed by its own
clock, which drifts against the host's: there causes are unknown.
"""

from __future__ import annotations

import re
from typing import Final

import numpy as np

from jaxprof.events import IdleCause
from jaxprof.trace.intervals import Coverage
from jaxprof.trace.model import ABSENT, PS, Ints, Lane, Trace

_NAMES: Final = (
    (
        "compile",
        re.compile(
            r"backend_compile|XlaCompile|Client::Compile\b|CompileAndLoad|trace_to_jaxpr|jaxpr_to_mlir|\bcompile\b"
        ),
    ),
    (
        "copy",
        re.compile(
            r"Transfer|CopyTo|CopyFrom|BufferFromHost|MakeArrayFromHost|DevicePut|device_put|np\.asarray|ToLiteral|"
            r"[Mm]emcpy"
        ),
    ),
    ("launch", re.compile(r"PjitFunction|ParseArguments|Execute|LaunchKernel|GraphLaunch")),
    (
        "wait",
        re.compile(r"BlockHostUntilReady|block_until_ready|\bAwait|StreamSynchronize|EventSynchronize|CtxSynchronize"),
    ),
)
"""What the host's events are for, by the names that Python, JAX's runtimes, CUDA and HIP give them."""
_MOST_OF_IT: Final = 0.5
"""Share of the host's own work that an event must hold to name it."""
_WORTH: Final = 0.01
"""Share of the steps below which idle time is not looked into."""


def idle_causes(trace: Trace, device: str, starts: Ints, ends: Ints, active: Coverage) -> list[IdleCause]:
    """The causes of a device's idle time in the windows from `starts` to `ends`, the longest first; empty where there
    is hardly any, and where they cannot be known. `active` is when something was being executed. Picoseconds."""
    windows = Coverage.of(starts, ends)
    if not len(windows.starts) or not device.rpartition("/")[2].startswith("gpu"):
        return []
    idle = windows - active
    if idle.total < _WORTH * windows.total:
        return []
    host = device.rpartition("/")[0]
    lanes = [lane for lane in trace.lanes if lane.kind == "host" and lane.device.rpartition("/")[0] == host]
    if not lanes:
        return []
    causes: list[IdleCause] = []
    left = idle
    for cause, pattern in _NAMES:
        covered = left & _named(lanes, pattern)
        if covered.total:
            causes.append(IdleCause(cause=cause, seconds=covered.total * PS))
            left = left - covered
    if left.total:
        causes.append(IdleCause(cause="host", seconds=left.total * PS, name=_most_specific(lanes, left)))
    return sorted(causes, key=lambda each: -each.seconds)


def _named(lanes: list[Lane], pattern: re.Pattern[str]) -> Coverage:
    starts, ends = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for lane in lanes:
        rows = np.array([bool(pattern.search(name)) for name in lane.names], np.bool_)[lane.name_of]
        starts.append(lane.starts[rows])
        ends.append(lane.ends[rows])
    return Coverage.of(np.concatenate(starts), np.concatenate(ends))


def _most_specific(lanes: list[Lane], work: Coverage) -> str:
    """The name of the shortest events that hold most of the work; empty if none do. Step annotations say nothing."""
    best = (float("inf"), "")
    for lane in lanes:
        held = work.within(lane.starts, lane.ends)
        if lane.step is not None:
            held[lane.step != ABSENT] = 0
        of_names = np.bincount(lane.name_of, weights=held, minlength=len(lane.names))
        for number in np.flatnonzero(of_names >= _MOST_OF_IT * work.total).tolist():
            rows = np.flatnonzero((lane.name_of == number) & (held > 0))
            if (work & Coverage.of(lane.starts[rows], lane.ends[rows])).total >= _MOST_OF_IT * work.total:
                best = min(best, (float(np.median(lane.durations[rows])), lane.names[number]))
    return best[1]
