"""The timeline of a profile as one JSON text: lanes of intervals, small enough to keep in a session.

Starts are differences to the interval before, so that the numbers stay short. The form is in `docs/traces.md`; who
draws it or exports it reads it with `jaxprof.results.timeline`.
"""

from __future__ import annotations

import json
from typing import Any, Final

import numpy as np

from jaxprof.trace.model import NO_OP, Ints, Lane, Trace

TIMELINE_VERSION: Final = 1
INTERVALS_KEPT: Final = 1_000_000
"""Of a profile with more intervals the shortest are left out, and their number is said."""
_NAME_LIMIT: Final = 300
"""Characters of an interval's name: TPU profiles name it by a whole line of HLO."""
_DEVICE_KINDS: Final = ("modules", "steps", "stream", "ops", "thread", "async")


def timeline_text(trace: Trace, limit: int = INTERVALS_KEPT) -> str:
    """The timeline of all lanes; device lanes go before the host's when intervals must be left out."""
    kept = _kept(trace.lanes, limit)
    total = sum(len(lane) for lane in trace.lanes)
    stays = sum(len(rows) for rows in kept)
    payload: dict[str, Any] = {
        "version": TIMELINE_VERSION,
        "unit": "ns",
        "started_unix_ns": trace.started_unix_ns,
        "left_out": total - stays,
        "ops": [[op.module, None if op.program is None else str(op.program), op.name] for op in trace.ops],
        "lanes": [_lane(lane, rows) for lane, rows in zip(trace.lanes, kept, strict=True) if len(rows)],
    }
    return json.dumps(payload, ensure_ascii=False, separators=(",", ":"))


def _kept(lanes: list[Lane], limit: int) -> list[Ints]:
    """For each lane the intervals that stay, in order of their start."""
    total = sum(len(lane) for lane in lanes)
    if total <= limit:
        chosen = [np.arange(len(lane)) for lane in lanes]
    else:
        on_device = np.concatenate([np.full(len(lane), lane.kind in _DEVICE_KINDS) for lane in lanes])
        durations = np.concatenate([lane.durations for lane in lanes])
        best = np.lexsort((-durations, ~on_device))[:limit]
        stays = np.zeros(total, np.bool_)
        stays[best] = True
        borders = np.cumsum([len(lane) for lane in lanes])[:-1]
        chosen = [np.flatnonzero(part) for part in np.split(stays, borders)]
    return [
        rows[np.lexsort((-lane.durations[rows], lane.starts[rows]))] for lane, rows in zip(lanes, chosen, strict=True)
    ]


def _lane(lane: Lane, rows: Ints) -> dict[str, Any]:
    pairs = lane.name_of[rows] * (int(lane.op_of.max()) + 2) + lane.op_of[rows] + 1
    different, first, which = np.unique(pairs, return_index=True, return_inverse=True)
    labels = []
    for row in rows[first].tolist():
        op = int(lane.op_of[row])
        labels.append([lane.names[int(lane.name_of[row])][:_NAME_LIMIT], None if op == NO_OP else op])
    starts = np.rint(lane.starts[rows] / 1000).astype(np.int64)
    return {
        "device": lane.device,
        "name": lane.name,
        "kind": lane.kind,
        "labels": labels,
        "label": which[: len(rows)].tolist() if len(different) > 1 else [0] * len(rows),
        "start": np.diff(starts, prepend=0).tolist(),
        "duration": np.rint(lane.durations[rows] / 1000).astype(np.int64).tolist(),
    }
