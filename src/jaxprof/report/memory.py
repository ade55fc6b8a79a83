"""The memory of a run as plain dicts and as text: what the peak is made of, the largest buffers, what was asked for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import PurePath
from typing import Any

from jaxprof.report.table import table
from jaxprof.results.memory import REQUEST, SCHEDULE, MemoryPicture, buffers_of
from jaxprof.safe_text import safe
from jaxprof.session import Run, Session
from jaxprof.units import UNKNOWN, bytes_, percent

BUFFERS_IN_TEXT = 20
_LIVE_IN_JSON = 512
_BARS = " ▁▂▃▄▅▆▇█"
_COLUMNS = 64
_SEVERAL = {"argument": "arguments", "output": "outputs", "temporary": "temporaries", "constant": "constants"}


def memory_json(session: Session, run: Run) -> dict[str, Any] | None:
    """`source`, `peak_bytes`, `parts`, `buffers`, `live_bytes`, `asked_bytes`; None where nothing is known."""
    found = buffers_of(session, run.id)
    if found is None:
        return None
    return {
        "source": found.source,
        "peak_bytes": found.peak_bytes,
        "parts": {part.kind: part.bytes for part in found.parts},
        "asked_bytes": found.asked_bytes,
        "buffers": buffers_json(found),
        "live_bytes": _thinned(found.live_bytes, _LIVE_IN_JSON),
    }


def buffers_json(found: MemoryPicture) -> list[dict[str, Any]]:
    """The buffers, as `runs[].memory.buffers`: the largest first."""
    return [
        {
            **{name: value for name, value in asdict(buffer).items() if name not in ("file", "line", "op_name")},
            "instruction": buffer.instruction or None,
            "op_name": buffer.op_name or None,
            "source": {"file": buffer.file, "line": buffer.line} if buffer.file else None,
        }
        for buffer in found.buffers
    ]


def memory_lines(session: Session, run: Run) -> Iterator[str]:
    """The same for people; nothing where nothing is known."""
    found = buffers_of(session, run.id)
    if found is None:
        return
    if found.asked_bytes is not None:
        yield f"  asked for {bytes_(found.asked_bytes)}, and there was not so much"
    if found.source == REQUEST or found.peak_bytes is None:
        return
    known = "estimated from the schedule: the least that it needs" if found.source == SCHEDULE else found.source
    yield f"  peak {bytes_(found.peak_bytes)} ({known})"
    whole = found.peak_bytes or 1
    if found.parts:
        said = (f"{_SEVERAL[part.kind]} {bytes_(part.bytes)} ({percent(part.bytes / whole)})" for part in found.parts)
        yield f"  {', '.join(said)}"
    if len(found.live_bytes) > 1:
        yield f"  live over the schedule, at most {bytes_(max(found.live_bytes))}:"
        yield f"  {_sparkline(found.live_bytes)}"
    yield from _table(found)


def _thinned(sizes: tuple[int, ...], most: int) -> list[int]:
    if len(sizes) <= most:
        return list(sizes)
    from jaxprof.hlo.analysis.liveness import thinned  # the HLO room: only for a run that has HLO

    return list(thinned(sizes, most))


def _sparkline(sizes: tuple[int, ...]) -> str:
    points = _thinned(sizes, _COLUMNS)
    most = max(points) or 1
    return "".join(_BARS[-(-size * (len(_BARS) - 1) // most)] for size in points)


def _table(found: MemoryPicture) -> Iterator[str]:
    if not found.buffers:
        return
    rows = [("bytes", "kind", "at peak", "instruction", "shape", "source", "op")]
    rows += [
        (
            bytes_(buffer.bytes),
            buffer.kind,
            UNKNOWN if buffer.at_peak is None else "yes" if buffer.at_peak else "no",
            buffer.instruction or UNKNOWN,
            buffer.shape or UNKNOWN,
            f"{PurePath(buffer.file).name}:{buffer.line}" if buffer.file else UNKNOWN,
            buffer.op_name or UNKNOWN,
        )
        for buffer in found.buffers[:BUFFERS_IN_TEXT]
    ]
    yield from table(rows, right=(0,), widest=(0, 0, 0, 40, 40, 40, 40))
    if len(found.buffers) > BUFFERS_IN_TEXT:
        left = sum(buffer.bytes for buffer in found.buffers[BUFFERS_IN_TEXT:])
        yield safe(f"  and {len(found.buffers) - BUFFERS_IN_TEXT} more of {bytes_(left)} together")
