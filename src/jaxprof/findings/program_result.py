"""The figures of a program: where its wall time went, what it compiled and why, steps, arrays, transfers, findings.

They are derived when shown, and kept until the next event arrives. Times are in seconds; unknown values are None.
"""

from __future__ import annotations

from dataclasses import fields, replace

from jaxprof.analysis.programs.result import ProgramResult, ProgramSums
from jaxprof.base.values import frozen
from jaxprof.events.finding import Finding
from jaxprof.session import RecordedProgram, Run, Session

_MOST_KEPT = 16


_kept: dict[int, ProgramSums] = {}


def program_result(session: Session, run_id: str) -> ProgramResult:
    """Return the figures of a program. Raises KeyError for an unknown id. A run that is not a program, or whose program
    has sent nothing yet, gives a result in which nothing was seen."""
    run = session.runs[run_id]
    program = run.program if run.program is not None else RecordedProgram()
    sums = _kept.get(id(program))
    if sums is None or sums.program is not program:  # an id can be reused once its object is gone
        if len(_kept) >= _MOST_KEPT:
            _kept.clear()
        sums = ProgramSums(program)
        if run.program is not None:
            _kept[id(program)] = sums
    # The key changes with every event of the result; a running program's clock counts half seconds.
    sizes: list[object] = []  # what changes with each event that is added to a part of the program
    for each in fields(program):
        part = getattr(program, each.name)
        if isinstance(part, dict):
            sizes += map(id, part.values())
        else:
            sizes.append(len(part) if isinstance(part, list) else id(part))
    clock = int(2 * session.last_seconds) if program.ended is None else 0
    key = (*sizes, clock, run.status, run.started_seconds)
    if sums.result is None or sums.key != key or sums.result.run is not run:
        last = run.ended_seconds if run.over and run.ended_seconds is not None else session.last_seconds
        # The process began when it was started if that is known, else with its recording, else with the first event; a
        # recording within a program began when it was set up.
        started, first = program.started, program.sampled[0].began_seconds if program.sampled else None
        moments = (run.started_seconds, started.monotonic_seconds if started is not None else None, first)
        began = min(filter(None, moments), default=last)
        if first and started is not None and started.how in ("record", "cell"):
            began = first
        announced = program.ended.wall_seconds if program.ended is not None else max(0.0, last - began)
        sums.key, sums.result = key, ProgramResult(run, sums, began, announced, session.readings, _find)
    return sums.result


def _find(program: ProgramResult) -> tuple[tuple[Finding, ...], tuple[Finding, ...]]:
    from jaxprof.findings.programs import findings, remarks

    return tuple(with_share(program, finding) for finding in findings(program)), remarks(program)


def with_share(program: ProgramResult, finding: Finding) -> Finding:
    """Return a finding with its share of the wall time, and with its interval if it rests on samples."""
    low = high = None
    if finding.estimate:
        # Wilson's interval of the sampled share in seconds, plus the time that JAX reported. The exact times of lines
        # would narrow it further.
        from jaxprof.analysis.programs.verdict import interval

        whole, samples = program.active_seconds, program.samples_of_work
        sampled = (finding.seconds or 0.0) - finding.announced_seconds
        if 0 < sampled <= whole and samples > 0:
            low, high = (finding.announced_seconds + whole * end for end in interval(sampled / whole, samples))
    share = program.of_wall(finding.seconds)
    return replace(finding, low=low, high=high, share=share, held=finding.bytes is not None)


_WARNINGS = ("function_not_called", "function_not_kept", "function_not_measured")


@frozen
class RequestedFunction:
    """A function of the program that `--function` named."""

    name: str
    """Name of the function, as it was given."""
    run: str
    """Id of the function's run; empty if no call of it was kept."""
    status: str
    """Status of the function's run; `not_measured` without a run, `pending` before the program's end."""
    error: str
    """Why there are no figures; empty if there are."""
    hint: str


def function_request(session: Session, run: Run) -> RequestedFunction | None:
    """Return whether the named function was measured, and why not; None if the recording of `run` names no function."""
    started = run.program.started if run.program is not None else None
    name = str(started.options.get("function") or "") if started is not None else ""
    if not name:
        return None
    measured = [
        other for other in session.runs.values() if other.program is None and other.plan.how in ("jit", "eager")
    ]
    if measured:
        first = measured[0]
        return RequestedFunction(name, first.id, first.status, "" if first.status == "ok" else first.error, first.hint)
    warnings = [warning for warning in run.warnings if warning.code in _WARNINGS]
    if warnings:
        return RequestedFunction(name, "", "not_measured", warnings[0].message, warnings[0].advice)
    if not run.over:
        return RequestedFunction(name, "", "pending", "", "")
    return RequestedFunction(name, "", "not_measured", "the program did not end normally", "")
