"""Report the memory of a program: the peak and its parts, the buffers, and what is alive at the peak."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from jaxprof.analysis.kernels.memory import REQUEST, SCHEDULE, MemoryPicture, device_memory
from jaxprof.base.grouping import thin_out
from jaxprof.base.units import bytes_, percent
from jaxprof.facts.memory import ALIVE, BUFFERS, source_line
from jaxprof.report import Piece, Prose, Table
from jaxprof.session import Session

if TYPE_CHECKING:
    from jaxprof.analysis.programs.result import ProgramResult

BUFFERS_IN_TEXT = 20
ALIVE_IN_TEXT = 12
_BARS = " ▁▂▃▄▅▆▇█"
_COLUMNS = 64
_PLURALS = {"argument": "arguments", "output": "outputs", "temporary": "temporaries", "constant": "constants"}


def memory_report(picture: MemoryPicture | None) -> Iterator[Piece]:
    if picture is None:
        return
    yield from map(Prose, memory_heading(picture))
    if picture.source == REQUEST or picture.peak_bytes is None:
        return
    if len(picture.live_bytes) > 1:
        yield f"  live size over the schedule, an estimate, at most {bytes_(max(picture.live_bytes))}:"
        points = thin_out(picture.live_bytes, _COLUMNS)
        most = max(points) or 1
        yield "  " + "".join(_BARS[-(-size * (len(_BARS) - 1) // most)] for size in points)
    if picture.schedule is not None:
        schedule = picture.schedule
        point, alive = schedule.points[schedule.peak_at], schedule.alive(schedule.peak_at)
        where = source_line(point)
        yield Prose(
            f"alive at its highest point, {point.instruction}{f' ({where})' if where else ''}, instruction "
            f"{point.position + 1} of {schedule.length}, an estimate:"
        )
        left_bytes = sum(value.bytes for value in alive[ALIVE_IN_TEXT:])
        more = f"and {{}} more of {bytes_(left_bytes)} together"
        yield Table(ALIVE, alive, most=ALIVE_IN_TEXT, rest=more, is_wide=True)
        if picture.is_estimate:
            return  # its buffers are those values
        yield Prose("the largest buffers:")
    left = sum(buffer.bytes for buffer in picture.buffers[BUFFERS_IN_TEXT:])
    rest = f"and {{}} more of {bytes_(left)} together"
    yield Table(BUFFERS, picture.buffers, most=BUFFERS_IN_TEXT, rest=rest, is_wide=True)


def memory_heading(picture: MemoryPicture) -> Iterator[str]:
    """Yield a line each: the request that failed if memory ran out, the peak and whether it fits, and its parts."""
    if picture.asked_bytes is not None:
        yield f"requested {bytes_(picture.asked_bytes)}: more than the free memory"
    if picture.source == REQUEST or picture.peak_bytes is None:
        return
    origin = "estimated from the schedule" if picture.source == SCHEDULE else picture.source
    needed, there = bytes_(picture.peak_bytes), picture.device_bytes
    if there:
        verdict = "does not fit: " if picture.peak_bytes > there else ""
        yield f"{verdict}needs {needed} of {bytes_(there)} on the device: peak memory ({origin})"
    else:
        yield f"peak memory {needed} ({origin})"
    whole = picture.peak_bytes or 1
    if picture.parts:
        yield ", ".join(
            f"{_PLURALS[kind]} {bytes_(size)} ({percent(size / whole)})" for kind, size in picture.parts.items()
        )


def fit_words(session: Session, program: ProgramResult) -> str:
    """Return whether the memory sufficed for a program, by how it ended and what its devices or arrays held."""
    run = program.run
    failure = next((finding.message for finding in program.findings if finding.code == "program_failed"), "")
    if "out of memory" in failure:
        return f"It did not fit: {failure}."
    counts = run.program.arrays if run.program is not None else []
    held = {device: max(each.devices.get(device, 0) for each in counts) for each in counts for device in each.devices}
    limits = {device: device_memory(session, device) for device in held}
    parts = [
        f"{bytes_(size)}{f' of {bytes_(limits[device])}' if limits[device] else ''} on {device}"
        for device, size in held.items()
    ]
    if counts and not parts:
        most = max(each.bytes for each in counts)
        parts = [f"{bytes_(most)} of arrays, besides what its programs need"]
    status = run.shown.status
    verdict = _FITS.get(status, f"Whether it fits is unknown, because it was {status}")
    return f"{verdict}: the highest seen is {', '.join(parts)}." if parts else f"{verdict}."


_FITS = {"running": "It fits so far", "ok": "It fits", "failed": "It fitted until it failed"}
"""Whether the memory sufficed, by the status of the program; other ends may come from a lack of memory."""
