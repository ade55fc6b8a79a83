"""Find what the host did while a GPU had nothing to do.

Only threads that call programs are examined: what the runtime's own threads do meanwhile (mostly their tasks for
completed events) keeps no device waiting. If the launch of the kernel that ends a pause is recorded, the time after it
belongs to the launch. Of the rest, each moment of a step in which nothing was being executed belongs to the first of
these that such a thread was in: compiling, copying to or from the device, waiting for the device, calling a program.
What remains is the host's own work if something names it: the annotation (`TraceAnnotation`) or, with the Python
tracer, the function that holds most of it. Otherwise the cause is unknown.

Garbage collection leaves no event of its own, so it is not told apart from other work. A TPU's ops are timed by its own
clock, which drifts against the host's, so the causes there are unknown.
"""

from __future__ import annotations

import re

import numpy as np

from jaxprof.events import IdleCause
from jaxprof.trace.intervals import Coverage, joined, places_of
from jaxprof.trace.launch import clock_fault, launches_on
from jaxprof.trace.model import ABSENT, NO_OP, PS, Ints, Lane, Trace

_LAUNCH = re.compile(
    r"PjitFunction\(|ParseArguments$|PJRT_LoadedExecutable_Execute|(\w+::)*\w*Executable::Execute\w*|"
    r"(\w+::)*(ExecuteHelper|ExecutePrepare|ExecuteThunks)\w*|(cu|cuda|hip)\w*Launch(Kernel|Cooperative\w*|Graph)?\w*$"
)
_NAMES = (
    (
        "compile",
        re.compile(
            r"(\$(compiler|pxla|pjit|partial_eval|mlir|dispatch|stages)\.py:\d+ )?"
            r"(backend_compile\w*|trace_to_jaxpr\w*|jaxpr_to_mlir\w*|lower_jaxpr\w*|compile_or_get_cached)\b|"
            r"(\w+::)*\w*XlaCompile\w*|(\w+::)*\w*Client::Compile(AndLoad)?\b"
        ),
    ),
    (
        "copy",
        re.compile(
            r"(\$\w+\.py:\d+ )?(device_put|device_get)$|DevicePut|np\.asarray\(jax\.Array\)|MakeArrayFromHost|"
            r"(\w+::)*(BufferFromHost\w*|Copy(To|From)(Host|Device|Literal|MemorySpace|Remote)\w*|CopyRaw\w*|"
            r"Transfer(To|From)(Host|Device|Infeed|Outfeed|Literal|Server)\w*|ToLiteral\w*|Linearize\w*)|"
            r"PCIe/Memcpy|(cu|cuda|hip)Memcpy"
        ),
    ),
    (
        "wait",
        re.compile(
            r"(\$\w+\.py:\d+ )?block_until_ready$|(\w+::)*BlockHostUntilReady|(\w+::)*\w*(Buffer|Future|Array)::Await|"
            r"(cu|cuda|hip)(Stream|Event|Ctx|Device)Synchronize"
        ),
    ),
    ("launch", _LAUNCH),
)
"""Purpose of the host's events, by the beginnings of the names that Python, JAX's runtimes, CUDA and HIP give them."""
_OWN_TASK = re.compile(r"ThenExecuteCallback|BufferSequencingEvent::")
"""Events of the runtime's own tasks, which are not the call's work even within a call."""
_POOL = re.compile(r"tf_|tfrt|pjrt|py_xla|EventFD|switchto")
"""Names that the runtime gives to its own threads."""
_NAMING_SHARE = 0.5
"""Share of the host's own work that an event must hold to name it."""
_LEAST_SHARE = 0.01
"""Share of the steps below which idle time is not examined."""


def idle_causes(trace: Trace, device: str, starts: Ints, ends: Ints, active: Coverage) -> list[IdleCause]:
    """Return the causes of a device's idle time in the windows from `starts` to `ends`, longest first; empty if there
    is hardly any idle time, or its causes cannot be known. `active` covers the time when something was being executed.
    Picoseconds."""
    windows = Coverage.of(starts, ends)
    if not len(windows.starts) or not device.startswith("gpu"):
        return []
    idle = windows - active
    if idle.total < _LEAST_SHARE * windows.total:
        return []
    lanes = _calling(trace)
    if not lanes or clock_fault(trace):
        return []
    seconds: dict[str, int] = {}
    launched = idle & _launched(trace, device, active)
    seconds["launch"] = launched.total
    left = idle - launched
    for cause, pattern in _NAMES:
        named = _named(lanes, pattern)
        covered = left & (named - _named(lanes, _OWN_TASK) if cause == "launch" else named)
        seconds[cause] = seconds.get(cause, 0) + covered.total
        left = left - covered
    name = _most_specific(lanes, left) if left.total else ""
    seconds["host" if name else "unknown"] = left.total
    causes = [
        IdleCause(cause=cause, seconds=took * PS, name=name if cause == "host" else "")
        for cause, took in seconds.items()
        if took
    ]
    return sorted(causes, key=lambda idle_cause: -idle_cause.seconds)


def _calling(trace: Trace) -> list[Lane]:
    """Return the host's threads that call programs; if no call is recorded, all but the runtime's own."""
    lanes = [lane for lane in trace.threads if not _POOL.match(lane.name)]
    return [lane for lane in lanes if any(map(_LAUNCH.match, lane.names))] or lanes


def _launched(trace: Trace, device: str, active: Coverage) -> Coverage:
    """Return the time from the launch of each kernel that ends a pause to the kernel, if both are recorded."""
    ids, moments, _ = launches_on(trace)
    starts: list[Ints] = []
    ends: list[Ints] = []
    for lane in trace.on_device(device) if len(ids) else ():
        at, known = places_of(lane.correlations, ids)
        first = known & (lane.op_of != NO_OP) & np.isin(lane.starts, active.starts)
        starts.append(moments[at[first]])
        ends.append(lane.starts[first])
    return Coverage.of(joined(starts), joined(ends))


def _named(lanes: list[Lane], pattern: re.Pattern[str]) -> Coverage:
    return Coverage.over(lane.select(lane.matching(pattern.match)) for lane in lanes)


def _most_specific(lanes: list[Lane], work: Coverage) -> str:
    """Return the name of the shortest events that hold most of the work; empty if none do. Step annotations do not
    count."""
    best = (float("inf"), "")
    for lane in lanes:
        held = work.within(lane.starts, lane.ends)
        if lane.step is not None:
            held[lane.step != ABSENT] = 0
        of_names = np.bincount(lane.name_of, weights=held, minlength=len(lane.names))
        for number in np.flatnonzero(of_names >= _NAMING_SHARE * work.total).tolist():
            named = lane.select((lane.name_of == number) & (held > 0))
            if (work & Coverage.over([named])).total >= _NAMING_SHARE * work.total:
                best = min(best, (float(np.median(named.durations)), lane.names[number]))
    return best[1]
