"""What is said of a program when it has ended, in a few lines: the rest is in the session."""

from __future__ import annotations

from jaxprof.results.programs.derive import ProgramResult, program_result
from jaxprof.session import Session
from jaxprof.units import percent, seconds

FINDINGS_TOLD = 3


def summary_lines(session: Session, run: str) -> list[str]:
    """How long it took and how it ended, what it compiled, what stands out, and what could not be seen."""
    found = program_result(session, run)
    lines = [f"{found.run.plan.workload}: {', '.join(_facts(found))}"]
    lines += [f"  {finding.message}" for finding in found.findings[:FINDINGS_TOLD]]
    if len(found.findings) > FINDINGS_TOLD:
        lines.append(f"  and {len(found.findings) - FINDINGS_TOLD} more findings")
    lines += [f"  {note.message}" for note in found.notes]
    lines += [f"  {warning.message}" for warning in found.run.warnings]
    return lines


def _facts(found: ProgramResult) -> list[str]:
    facts = [seconds(found.wall_seconds)]
    if found.run.status != "ok":
        facts.append(found.run.error or found.run.status)
    if found.compile_count:
        share = percent(found.of_wall(found.main_compile_seconds)) if found.samples else ""
        count = "1 compilation" if found.compile_count == 1 else f"{found.compile_count} compilations"
        facts.append(f"{count} in {seconds(found.compile_seconds)}{f', {share} of its time' if share else ''}")
    elif found.import_seconds is not None:
        facts.append("nothing compiled")
    return facts
