"""What kernels are held against on the HLO screen: the ceilings of a program's device."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jaxprof.results.ceilings import ceilings_for

if TYPE_CHECKING:
    from jaxprof.hlo.analysis import Device
    from jaxprof.session import Session
    from jaxprof.tui.programs.program import Program


def device_of(session: Session, program: Program) -> Device | None:
    """The device of a run's program with its ceilings; None for a file, and where nothing is known of the device."""
    run = session.runs.get(program.key)
    return ceilings_for(session, run) if run is not None else None
