"""Whether a capture can be trusted: one row for each check, good or bad.

A row has a code, a verdict (`good`, `doubt`, `bad`, `unknown`), a message and advice. "No data" is reported as such,
never as zero.
"""

from __future__ import annotations

from jaxprof.events import TrustCheck
from jaxprof.trace.model import Trace
from jaxprof.trace.steps import Steps
from jaxprof.trace.trust import kernels, recording
from jaxprof.trace.trust import steps as of_steps


def trust_rows(
    trace: Trace,
    kind: str,
    steps: Steps | None,
    compile_seconds: float | None,
    *,
    intervals_left_out: int = 0,
    busy_share: float | None = None,
    seconds_with: float | None = None,
    timed_seconds: float | None = None,
) -> list[TrustCheck]:
    """Return the rows for a capture. `busy_share` is device time over the measured time of the calls, if both are
    known.

    `seconds_with` and `timed_seconds` are the times of a call with the profiler, and without it before.
    """
    return [
        *recording.file(trace),
        *recording.tracers(trace),
        *recording.clock(trace),
        *(kernels.kernels(trace, kind) if kind != "compile" else ()),
        *kernels.modules(trace, kind),
        *(of_steps.steps(steps) if steps is not None and kind != "compile" else ()),
        *(of_steps.unrecorded(steps) if steps is not None and trace.platform == "cpu" else ()),
        *recording.compiles(trace, kind, compile_seconds),
        *recording.timeline(intervals_left_out),
        *recording.device_share(busy_share),
        *recording.slowdown(seconds_with, timed_seconds),
    ]
