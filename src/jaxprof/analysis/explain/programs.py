"""Findings of recorded programs for an explanation, and what a recording leaves unknown."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from jaxprof.analysis.explain.model import Abstention, code_line, program_verified, record_again
from jaxprof.analysis.programs.verdict import UNTIMED, interval
from jaxprof.finding import Finding

if TYPE_CHECKING:
    from jaxprof.analysis.programs.result import ProgramResult
    from jaxprof.session import Session

_PROGRAM_FAULTS: Final = ("program_failed", "debug_settings")
"""Findings after which the other figures describe another program, or part of the program."""
_CACHE_SHARE: Final = 0.5
"""Share of the program's work, in compilations that are in no finding, from which a cache is recommended."""


def program_findings(session: Session, program: ProgramResult, name: str) -> Iterator[Finding]:
    """Yield the findings of a recorded program; their seconds are parts of its wall time."""
    verify = program_verified(name, program)
    for finding in program.findings:
        rows = [row for function in program.functions for row in function.rows if row.function == finding.function]
        yield replace(
            with_share(program, finding),
            verify=(record_again(program) or verify) if finding.code == "program_failed" else verify,
            run=program.run.id,
            directory=program.directory,
            code_line=code_line(finding.where, session.header.wall_seconds, program.run.sources),
            compilations=sum(row.count for row in rows),
            fault=finding.code in _PROGRAM_FAULTS,
        )
    yield from _compilations_to_keep(program, verify)


def _compilations_to_keep(program: ProgramResult, verify: str) -> Iterator[Finding]:
    """Yield a finding if compilations that no other finding covers are not kept, and are most of what the program
    did."""
    claimed = sum(
        finding.announced_seconds if finding.estimate else finding.seconds or 0.0 for finding in program.findings
    )
    for remark in program.remarks:
        seconds = (remark.seconds or 0.0) - claimed
        if remark.code == "cache_off" and seconds >= _CACHE_SHARE * program.work_seconds:
            unclaimed = replace(remark, seconds=seconds, saves_seconds=seconds)
            yield replace(with_share(program, unclaimed), verify=verify, run=program.run.id)


def with_share(program: ProgramResult, finding: Finding) -> Finding:
    """Return a finding with its share of the wall time, and with its interval if it rests on samples."""
    low, high = _interval(program, finding) if finding.estimate else (None, None)
    share = program.of_wall(finding.seconds)
    return replace(finding, low=low, high=high, share=share, held=finding.bytes is not None)


def _interval(program: ProgramResult, finding: Finding) -> tuple[float | None, float | None]:
    """Return Wilson's interval of the sampled share in seconds, plus the time that JAX reported. The exact times of
    lines would narrow it further."""
    whole, samples = program.active_seconds, program.samples_of_work
    sampled = (finding.seconds or 0.0) - finding.announced_seconds
    if not 0 < sampled <= whole or samples <= 0:
        return None, None
    low, high = (finding.announced_seconds + whole * end for end in interval(sampled / whole, samples))
    return low, high


_UNTIMED: Final = "lines are not timed, "


def undecided(program: ProgramResult) -> tuple[str, str]:
    """Return why there is no verdict, and the command that would give one; no command if this Python cannot time
    lines, or if the same program would be as short again."""
    reason = program.verdict.reason
    messages = (warning.message for warning in program.run.warnings if warning.code == "steps_not_counted")
    because = next((message.partition(_UNTIMED)[2] for message in messages if _UNTIMED in message), "")
    if because and reason.endswith(UNTIMED):
        return f"{reason}, {because}", ""
    enough = program.verdict.needs_seconds is None
    return program.verdict.why_unknown, record_again(program) if enough else ""


def program_abstentions(program: ProgramResult, *, has_capture: bool) -> Iterator[Abstention]:
    """Yield what the recording of a program leaves unknown."""
    if not program.verdict.seconds and not program.compiles:
        note = next((note.message for note in program.notes if note.message), "")
        yield Abstention("no-jax", note or "JAX was not seen at work", record_again(program))
        return
    if program.verdict.kind is None and program.verdict.reason:
        reason, again = undecided(program)
        what = "the loop" if program.hot.where is not None else "the program's work"
        yield Abstention("no-verdict", f"what bounds {what}: {reason}", again)
    if not has_capture:
        failed = next((note.message for note in reversed(program.notes) if note.code == "window"), "")
        reason = failed or "no capture: kernels, their times and their HLO are unknown"
        again = "" if failed else record_again(program, "--capture-steps", "5")  # the same would fail again
        if "no steps were counted" in failed:
            reason = f"{failed}; a window by time does not wait for steps"
            again = record_again(program, "--capture-seconds", "2")
        yield Abstention("no-capture", reason, again)
