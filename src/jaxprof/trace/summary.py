"""From a recorded profile to the events of a run: what was captured, the kernel times, the steps, the timeline.

The one entrance for a capture pass: `summarise` reads the file that the profiler wrote and yields events without
sequence numbers or times, which the pipe stamps. It needs no jax.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from jaxprof.events import CaptureTaken, Event, KernelsMeasured
from jaxprof.trace.lanes import lanes_of
from jaxprof.trace.model import Trace
from jaxprof.trace.ops import PS, op_times, unattributed_seconds
from jaxprof.trace.xspace import read_xspace


def summarise(
    path: Path,
    kind: str,
    run: str = "",
    calls: int | None = None,
    *,
    seconds_with: float | None = None,
    kept: bool = False,
) -> Iterator[Event]:
    """The events of the profile at `path` (`.xplane.pb`), for the run of that id.

    `kind` is that of `CaptureTaken`; `calls` and `seconds_with` are what the capture pass knows of itself; `kept` says
    that the raw file stays where it is. Raises FileRefusedError for a file that is empty or no profile.
    """
    trace = lanes_of(read_xspace(path))
    yield CaptureTaken(
        run=run,
        kind=kind,
        platform=trace.platform,
        calls=calls,
        seconds_with=seconds_with,
        wall_seconds=_wall_seconds(trace),
        events=sum(len(lane.starts) for lane in trace.lanes),
        bytes=path.stat().st_size,
        path=str(path) if kept else "",
    )
    rows = [
        {
            "module": row.op.module,
            "program": row.op.program,
            "name": row.op.name,
            "device": row.device,
            "count": row.count,
            "total_seconds": row.total_seconds,
            "self_seconds": row.self_seconds,
            "wall_seconds": row.wall_seconds,
            "median_seconds": row.median_seconds,
            "minimum_seconds": row.minimum_seconds,
            "maximum_seconds": row.maximum_seconds,
            "kernels": list(row.kernels),
        }
        for row in op_times(trace)
    ]
    yield KernelsMeasured(run=run, kind=kind, calls=calls, rows=rows, unattributed_seconds=unattributed_seconds(trace))


def _wall_seconds(trace: Trace) -> float | None:
    spans = [(int(lane.starts.min()), int((lane.starts + lane.durations).max())) for lane in trace.lanes]
    return (max(end for _, end in spans) - min(start for start, _ in spans)) * PS if spans else None
