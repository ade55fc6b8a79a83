"""What kernels are held against on the HLO screen: the ceilings of a program's device, and what was measured of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jaxprof.results.ceilings import ceilings_for

if TYPE_CHECKING:
    from jaxprof.hlo.analysis import Device
    from jaxprof.session import Run, Session
    from jaxprof.tui.programs.program import Program


def device_of(session: Session, program: Program) -> Device | None:
    """The device of a run's program with its ceilings; None for a file, and where nothing is known of the device."""
    run = session.runs.get(program.key)
    return ceilings_for(session, run) if run is not None else None


def measured_seconds(run: Run | None) -> dict[str, float]:
    """Seconds of each HLO op in one call, by name, where a profile of the run was recorded; of several devices the
    slowest. The profile without command buffers is preferred: with them an op may carry no name."""
    if run is None:
        return {}
    capture = run.measured.get("attribution") or run.measured.get("run")
    if capture is None or not capture.calls:
        return {}
    found: dict[str, float] = {}
    for row in capture.rows:
        name, seconds = row.get("name"), row.get("self_seconds")
        if isinstance(name, str) and isinstance(seconds, int | float):
            found[name] = max(found.get(name, 0.0), seconds / capture.calls)
    return found
