"""What the host did while a GPU had nothing to do.

Only the threads that call programs are looked at: what the runtime's own threads do meanwhile (their tasks for events
that have come, above all) keeps no device waiting. Where the launch of the kernel that ends a pause is recorded, what
comes after it is the launch's own. Of what is left, each moment of a step in which nothing was being executed belongs
to the first of these that such a thread was in: compiling, copying to or from the device, waiting for the device,
calling a program. The rest is the host's own work where something names it: the annotation (`TraceAnnotation`) or,
with the Python tracer, the function that holds most of it. Where nothing does, the cause is unknown.

Garbage collection leaves no event of its own, so it is not told apart from other work. A TPU's ops are timed by its own
clock, which drifts against the host's: there causes are unknown.
"""

from __future__ import annotations

import re
from typing import Final

import numpy as np

from jaxprof.events import IdleCause
from jaxprof.trace.intervals import Coverage
from jaxprof.trace.launch import clocks_disagree, correlations_of, launches_on
from jaxprof.trace.model import ABSENT, NO_OP, PS, Ints, Lane, Trace

_LAUNCH: Final = re.compile(
    r"PjitFunction\(|ParseArguments$|PJRT_LoadedExecutable_Execute|(\w+::)*\w*Executable::Execute\w*|"
    r"(\w+::)*(ExecuteHelper|ExecutePrepare|ExecuteThunks)\w*|(cu|cuda|hip)\w*Launch(Kernel|Cooperative\w*|Graph)?\w*$"
)
_NAMES: Final = (
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
"""What the host's events are for, by how the names begin that Python, JAX's runtimes, CUDA and HIP give them."""
_OWN_TASK: Final = re.compile(r"ThenExecuteCallback|BufferSequencingEvent::")
"""What the runtime does for events of its own, also within a call: not the call's work."""
_POOL: Final = re.compile(r"tf_|tfrt|pjrt|py_xla|EventFD|switchto")
"""How the runtime names its own threads."""
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
    lanes = _calling(trace, host)
    if not lanes or clocks_disagree(trace, host):
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
    return sorted(causes, key=lambda each: -each.seconds)


def _calling(trace: Trace, host: str) -> list[Lane]:
    """The threads of a host that call programs; where no call is recorded, all but the runtime's own."""
    lanes = [lane for lane in trace.lanes if lane.kind == "host" and lane.device.rpartition("/")[0] == host]
    calling = [lane for lane in lanes if any(map(_LAUNCH.match, lane.names)) and not _POOL.match(lane.name)]
    return calling or [lane for lane in lanes if not _POOL.match(lane.name)]


def _launched(trace: Trace, device: str, active: Coverage) -> Coverage:
    """From the launch of each kernel that ends a pause to the kernel, where both are recorded."""
    ids, moments, _ = launches_on(trace, device.rpartition("/")[0])
    starts, ends = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for lane in trace.on_device(device) if len(ids) else ():
        wanted = correlations_of(lane)
        at = np.minimum(np.searchsorted(ids, wanted), len(ids) - 1)
        known = (wanted != ABSENT) & (ids[at] == wanted) & (lane.op_of != NO_OP)
        first = known & np.isin(lane.starts, active.starts)
        starts.append(moments[at[first]])
        ends.append(lane.starts[first])
    return Coverage.of(np.concatenate(starts), np.concatenate(ends))


def _named(lanes: list[Lane], pattern: re.Pattern[str]) -> Coverage:
    starts, ends = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for lane in lanes:
        rows = np.array([bool(pattern.match(name)) for name in lane.names], np.bool_)[lane.name_of]
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
