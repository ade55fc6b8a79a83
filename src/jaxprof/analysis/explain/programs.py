"""Recorded programs to be explained: their findings, and what their recording leaves unknown."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from jaxprof.analysis.explain.catalogue import TRIED_OF_PROGRAMS
from jaxprof.analysis.explain.commands import program_verified, record_again
from jaxprof.analysis.explain.model import Abstention, FindingCost, RankedFinding, code_line
from jaxprof.analysis.programs.verdict import interval

if TYPE_CHECKING:
    from jaxprof.analysis.programs.derive import ProgramFinding, ProgramResult, Remark
    from jaxprof.session import Session

_FAULTS: Final = ("program_failed", "debug_settings")
"""Findings after which the other figures are those of another program, or of a part of it."""
_CACHE_SHARE: Final = 0.5
"""Share of the program's own time, spent on compilations that are in no finding, from which keeping them is one."""


def program_findings(session: Session, program: ProgramResult, name: str) -> Iterator[RankedFinding]:
    """The findings of a recorded program; their seconds are parts of its wall time."""
    verify = program_verified(name, program)
    for finding in program.findings:
        rows = [row for function in program.functions for row in function.rows if row.function == finding.function]
        yield RankedFinding(
            code=finding.code,
            message=finding.message,
            fix=finding.advice,
            cost=program_cost(program, finding),
            verify=verify,
            run=program.run.id,
            where=finding.where,
            directory=program.directory,
            code_line=code_line(finding.where, session.header.wall_seconds, program.run.sources),
            function=finding.function,
            compilations=sum(row.count for row in rows),
            fault=finding.code in _FAULTS,
        )
    yield from _compilations_to_keep(program, verify)


def _compilations_to_keep(program: ProgramResult, verify: str) -> Iterator[RankedFinding]:
    """That compilations are not kept, where they are most of what the program did."""
    for remark in program.remarks:
        seconds = _unclaimed(program, remark)
        if remark.code == "cache_off" and seconds >= _CACHE_SHARE * program.work_seconds:
            share = program.of_wall(seconds)
            cost = FindingCost(scope="program", seconds=seconds, share=share, saves_seconds=seconds)
            yield _of_remark(program, remark, cost, verify)


def _unclaimed(program: ProgramResult, remark: Remark) -> float:
    """The seconds of a remark about compilations that are in no finding."""
    claimed = sum(
        finding.announced_seconds if finding.estimate else finding.seconds or 0.0 for finding in program.findings
    )
    return max(0.0, (remark.seconds or 0.0) - claimed)


def _of_remark(program: ProgramResult, remark: Remark, cost: FindingCost, verify: str) -> RankedFinding:
    return RankedFinding(
        code=remark.code, message=remark.message, fix=remark.advice, cost=cost, verify=verify, run=program.run.id
    )


def remarks_to_try(program: ProgramResult, name: str) -> Iterator[RankedFinding]:
    """The remarks whose advice `--try` can measure, as findings: true of nearly every run, so told only there."""
    verify = program_verified(name, program)
    for remark in program.remarks:
        if remark.code in TRIED_OF_PROGRAMS:
            cost = FindingCost(scope="program", seconds=remark.seconds, share=program.of_wall(remark.seconds))
            yield _of_remark(program, remark, cost, verify)


def program_cost(program: ProgramResult, finding: ProgramFinding) -> FindingCost:
    """What a finding costs the program, with its interval where it rests on samples."""
    low, high = _interval(program, finding) if finding.estimate else (None, None)
    return FindingCost(
        scope="program",
        seconds=finding.seconds,
        low=low,
        high=high,
        share=program.of_wall(finding.seconds),
        saves_seconds=finding.saves_seconds,
        bytes=finding.bytes,
        held=finding.bytes is not None,
        estimate=finding.estimate,
    )


def _interval(program: ProgramResult, finding: ProgramFinding) -> tuple[float | None, float | None]:
    """Wilson's interval of the share that samples saw, as seconds, beside what JAX announced. The exact times of lines
    narrow it further."""
    whole, samples = program.active_seconds, program.samples_of_work
    sampled = (finding.seconds or 0.0) - finding.announced_seconds
    if not 0 < sampled <= whole or samples <= 0:
        return None, None
    low, high = (finding.announced_seconds + whole * end for end in interval(sampled / whole, samples))
    return low, high


def program_abstentions(program: ProgramResult, *, has_capture: bool) -> Iterator[Abstention]:
    """What the recording of a program leaves unknown."""
    if not program.verdict.seconds and not program.compiles:
        note = next((note.message for note in program.notes if note.message), "")
        yield Abstention("no-jax", note or "JAX was not seen at work", record_again(program))
        return
    if program.verdict.kind is None and program.verdict.reason:
        yield Abstention("no-verdict", f"what bounds the loop: {program.verdict.reason}", record_again(program))
    if not has_capture:
        yield Abstention(
            "no-capture",
            "no capture: kernels, their times and their HLO are unknown",
            record_again(program, "--capture-steps", "5"),
        )
