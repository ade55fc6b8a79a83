"""The traces of several hosts as one: on one clock, with the host's name before each device."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from jaxprof.trace.model import NO_OP, OpNumbers, Trace

PS_IN_NS = 1000


def together(traces: Sequence[tuple[str, Trace]]) -> Trace:
    """The trace of all these hosts; that of a single one as it is.

    The wall clocks at which the recordings began put them beside each other. Where one host does not tell, each trace
    begins at 0, and the result has no `started_unix_ns`.
    """
    if len(traces) == 1:
        host, only = traces[0]
        only.hosts = only.hosts or [host]
        return only
    starts = [trace.started_unix_ns for _, trace in traces]
    known = [start for start in starts if start is not None]
    first = min(known) if len(known) == len(starts) else None
    ops = OpNumbers()
    found = Trace(started_unix_ns=first, origin_ns=traces[0][1].origin_ns)
    for host, trace in traces:
        shift_ns = 0
        if first is not None and trace.started_unix_ns is not None:
            shift_ns = trace.started_unix_ns - first + trace.origin_ns - found.origin_ns
        _take(found, host, trace, shift_ns * PS_IN_NS, ops)
    found.ops = ops.list
    return found


def _take(found: Trace, host: str, trace: Trace, shift_ps: int, ops: OpNumbers) -> None:
    numbers = np.array([*(ops.number(op) for op in trace.ops), NO_OP], np.int64)
    for lane in trace.lanes:
        lane.device = f"{host}/{lane.device}"
        lane.starts = lane.starts + shift_ps
        lane.op_of = numbers[lane.op_of]  # NO_OP is the last place
        found.lanes.append(lane)
    found.hosts.append(host)
    found.chrome = found.chrome or trace.chrome
    found.platform = found.platform or trace.platform
    found.devices |= {f"{host}/{device}": facts for device, facts in trace.devices.items()}
    known = {(program.name, program.program) for program in found.programs}
    found.programs += [program for program in trace.programs if (program.name, program.program) not in known]
    found.events += trace.events
    found.sizes |= trace.sizes
    found.notes = {**trace.notes, **found.notes}
    found.tracers = {name: max(level, found.tracers.get(name, 0)) for name, level in trace.tracers.items()}
    found.problems += [f"{host}: {problem}" for problem in trace.problems]
    found.errors += [f"{host}: {text}" for text in trace.errors]
    found.warnings += [f"{host}: {text}" for text in trace.warnings]
