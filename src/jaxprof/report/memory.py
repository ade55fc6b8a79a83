"""The memory of a program, as text and as data: the peak and its parts, the buffers, and what is alive at the peak."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Final

from jaxprof.analysis.memory import REQUEST, SCHEDULE, MemoryBuffer, MemoryPicture, buffers_of
from jaxprof.report.renderers import records, text_lines
from jaxprof.report.table import Column, Table, pick
from jaxprof.session import Run, Session
from jaxprof.units import bytes_, percent

if TYPE_CHECKING:
    from jaxprof.hlo.analysis.liveness import Liveness, LiveValue, SchedulePoint

BUFFERS_IN_TEXT = 20
ALIVE_IN_TEXT = 12
_LIVE_IN_JSON = 512
_BARS = " ▁▂▃▄▅▆▇█"
_COLUMNS = 64
_SEVERAL = {"argument": "arguments", "output": "outputs", "temporary": "temporaries", "constant": "constants"}
BUFFERS: Final[tuple[Column[MemoryBuffer], ...]] = (
    Column("bytes", "bytes", show=bytes_),
    Column("kind", "kind"),
    Column("instruction", "instruction", lambda buffer: buffer.instruction or None, widest=40),
    Column("shape", "shape", widest=40),
    Column("at_peak", "at peak"),
    Column("shared_with"),
    Column("op_name", "op", lambda buffer: buffer.op_name or None, widest=40),
    Column("source.file", value=lambda buffer: buffer.file or None),
    Column("source.line", value=lambda buffer: buffer.line if buffer.file else None),
    Column(
        "",
        "source",
        lambda buffer: _place(buffer),
        widest=40,
    ),
)
"""As `runs[].memory.buffers`: the largest first."""
ALIVE: Final[tuple[Column[LiveValue], ...]] = (
    Column("bytes", "bytes", show=bytes_),
    Column("kind", "kind"),
    Column("instruction", "instruction", widest=40),
    Column("shape", "shape", widest=40),
    Column("op_name", "op", lambda value: value.op_name or None, widest=40),
    Column("source.file", value=lambda value: value.file or None),
    Column("source.line", value=lambda value: value.line if value.file else None),
    Column("", "source", lambda value: _place(value), widest=40),
)
"""As `memory.peak_at.alive`: the largest first."""


def memory_json(picture: MemoryPicture | None) -> dict[str, Any] | None:
    """`source`, `peak_bytes`, `parts`, `buffers`, `live_bytes`, `peak_at`, `asked_bytes`; None if nothing is known."""
    if picture is None:
        return None
    return {
        "source": picture.source,
        "peak_bytes": picture.peak_bytes,
        "parts": {part.kind: part.bytes for part in picture.parts},
        "asked_bytes": picture.asked_bytes,
        "buffers": list(records(Table(BUFFERS, picture.buffers))),
        "live_bytes": _thinned(picture.live_bytes, _LIVE_IN_JSON),
        "peak_at": _peak_json(picture.schedule) if picture.schedule is not None else None,
    }


def _peak_json(schedule: Liveness) -> dict[str, Any]:
    point = schedule.points[schedule.peak_at]
    return {
        "instruction": point.instruction,
        "position": point.position,
        "of": schedule.length,
        "bytes": point.bytes,
        "op_name": point.op_name or None,
        "source": {"file": point.file, "line": point.line} if point.file else None,
        "alive": list(records(Table(ALIVE, schedule.alive(schedule.peak_at)))),
    }


def run_memory_json(session: Session, run: Run) -> dict[str, Any] | None:
    """`memory_json` of a run."""
    return memory_json(buffers_of(session, run.id))


def run_memory_lines(session: Session, run: Run) -> Iterator[str]:
    """`memory_lines` of a run."""
    return memory_lines(buffers_of(session, run.id))


def memory_lines(picture: MemoryPicture | None) -> Iterator[str]:
    """The same as text; nothing if nothing is known."""
    if picture is None:
        return
    yield from (f"  {line}" for line in memory_heading(picture))
    if picture.source == REQUEST or picture.peak_bytes is None:
        return
    if len(picture.live_bytes) > 1:
        yield f"  live size over the schedule, an estimate, at most {bytes_(max(picture.live_bytes))}:"
        yield f"  {_sparkline(picture.live_bytes)}"
    if picture.schedule is not None:
        yield from _peak_lines(picture.schedule)
        if picture.is_estimate:
            return  # its buffers are those values
        yield "  the largest buffers:"
    left = sum(buffer.bytes for buffer in picture.buffers[BUFFERS_IN_TEXT:])
    shown = pick(BUFFERS, "bytes", "kind", "at_peak", "instruction", "shape", "source", "op_name")
    largest = Table(shown, picture.buffers).first(BUFFERS_IN_TEXT, f"and {{}} more of {bytes_(left)} together")
    yield from text_lines(largest)


def _peak_lines(schedule: Liveness) -> Iterator[str]:
    """Where the live size is highest, and what is alive there."""
    point, alive = schedule.points[schedule.peak_at], schedule.alive(schedule.peak_at)
    place = _place(point)
    yield f"  alive at its highest point, {point.instruction}{f' ({place})' if place else ''}, instruction " + (
        f"{point.position + 1} of {schedule.length}, an estimate:"
    )
    shown = pick(ALIVE, "bytes", "kind", "instruction", "shape", "op_name", "source")
    left = sum(value.bytes for value in alive[ALIVE_IN_TEXT:])
    yield from text_lines(Table(shown, alive).first(ALIVE_IN_TEXT, f"and {{}} more of {bytes_(left)} together"))


def memory_heading(picture: MemoryPicture) -> Iterator[str]:
    """What was requested in vain, the peak, and what it is made of, a line each."""
    if picture.asked_bytes is not None:
        yield f"asked for {bytes_(picture.asked_bytes)}, and there was not so much"
    if picture.source == REQUEST or picture.peak_bytes is None:
        return
    origin = "estimated from the schedule: the least that it needs" if picture.source == SCHEDULE else picture.source
    yield f"peak memory {bytes_(picture.peak_bytes)} ({origin})"
    whole = picture.peak_bytes or 1
    if picture.parts:
        parts = (
            f"{_SEVERAL[part.kind]} {bytes_(part.bytes)} ({percent(part.bytes / whole)})" for part in picture.parts
        )
        yield ", ".join(parts)


def _thinned(sizes: tuple[int, ...], most: int) -> list[int]:
    if len(sizes) <= most:
        return list(sizes)
    from jaxprof.hlo.analysis.liveness import thinned  # only for a run that has HLO

    return list(thinned(sizes, most))


def _sparkline(sizes: tuple[int, ...]) -> str:
    points = _thinned(sizes, _COLUMNS)
    most = max(points) or 1
    return "".join(_BARS[-(-size * (len(_BARS) - 1) // most)] for size in points)


def _place(value: MemoryBuffer | LiveValue | SchedulePoint) -> str | None:
    """`model.py:12`; None if unknown."""
    return f"{PurePath(value.file).name}:{value.line}" if value.file else None
