"""The findings of a compiled program, wherever it is from: one answer for commands, JSON and the app."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from jaxprof.events.finding import Finding
from jaxprof.findings.hlo import findings

if TYPE_CHECKING:
    from jaxprof.analysis.kernels.hlo_program import HloProgram


def findings_of(program: HloProgram) -> Sequence[Finding]:
    """Return the findings of a compiled program; for a run of a session, those of its explanation."""
    if program.session is None or program.run is None:
        return findings(program.hlo)
    from jaxprof.findings.modules import findings_of_run  # loads what is measured, which a module of a file has not

    return findings_of_run(program.session, program.run, program.hlo)
