"""The largest part of the time, if no finding explains it: share, lines, and what would show more.

A verdict (device-bound, host-bound) names a part of the time, and a capture the kernels in it. This is not a finding,
because nothing is known that could be changed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from jaxprof.analysis.programs import DEVICE
from jaxprof.analysis.target import command
from jaxprof.base.grouping import totals
from jaxprof.base.text import safe
from jaxprof.base.units import and_more, counted, percent
from jaxprof.findings.explanation import Abstention, record_again
from jaxprof.session import Session
from jaxprof.session.run import IMPORTED

if TYPE_CHECKING:
    from jaxprof.analysis.kernels import MeasuredKernel
    from jaxprof.analysis.programs.result import ProgramResult
    from jaxprof.events.finding import Finding

MUCH = 0.2
"""Least share of the time, or of the part that bounds a loop, that is worth a line of its own."""
_BEYOND = 1.25
"""Share of the bandwidth of memory from which a kernel cannot have had its arrays from there."""
_NEAR = 0.6
"""Share of what the device reaches from which a kernel is nearly as fast as its work allows."""
_MOSTLY = 0.5
"""Share of a line's time from which a finding about the line explains it."""
_LINES_NAMED = 3
_LEAST_NAMED = 0.01
"""Time of a line that is named beside the longest one, as a share of that one's."""
_MEASURE = ("run", "gemm-peak", "triad")


def largest_gap(
    session: Session, program: ProgramResult | None, findings: Sequence[Finding], name: str
) -> tuple[Abstention, float] | None:
    """Return the largest part of the time that no finding explains, in words, and its share of the whole; None if every
    part is explained, or too small. The whole is what bounds the loop of a `program`, else all kernels."""
    explained = {(each.run, kernel) for each in findings if each.seconds for kernel in each.kernels}
    if program is None:
        return _kernels_unexplained(session, explained, "", 1.0, name)
    bound = program.verdict.otherwise or program.verdict
    part = (bound.kind or "").removesuffix("-bound")
    if bound.share is None or program.wall_seconds <= 0:
        return None
    share = bound.share
    head = f"{bound.kind} {percent(bound.share)}"
    if part == DEVICE and any("imported" in run.measured for run in session.runs.values()):
        return _kernels_unexplained(session, explained, f"{head}: ", share, name)
    seconds = totals((spot.location, spot.seconds) for spot in program.hot.spots if program.hot.part(spot) == part)
    found = totals(
        (location, each.seconds or 0.0) for each in findings for location in each.places if location is not None
    )
    covered = {location for location, took in seconds.items() if found.get(location, 0.0) >= _MOSTLY * took}
    left = sum(took for location, took in seconds.items() if location not in covered)
    whole = sum(seconds.values())
    if not seconds or left < MUCH * whole:
        return None
    longest = sorted(seconds.keys() - covered, key=lambda location: -seconds[location])[:_LINES_NAMED]
    longest = [location for location in longest if seconds[location] >= _LEAST_NAMED * seconds[longest[0]]]
    located = [location.short(program.directory) for location in longest]
    if len(longest) > 1:
        located = [
            f"{text} ({percent(seconds[location] / whole)})" for text, location in zip(located, longest, strict=True)
        ]
    lines = ", ".join(located)
    again = record_again(program, "--capture-steps", "5") if part == DEVICE else command("open", name)
    shown = "only a capture shows which kernels take it" if part == DEVICE else "the cause is unknown"
    waits = "is waited for" if part == DEVICE else "is spent"
    reason = f"{head}, unexplained: {percent(left / whole)} of it {waits} at {lines}; {shown}"
    return Abstention("unexplained", safe(reason), again), share * left / whole


def _kernels_unexplained(
    session: Session, explained: set[tuple[str, str]], head: str, share: float, name: str
) -> tuple[Abstention, float] | None:
    """Return the line whose kernels take most of what no finding explains."""
    # Not at the head: a program without a capture does not get here, and its end must not wait for what reads HLO.
    from jaxprof.analysis.kernels.measured import kernels_together, seconds_per_call
    from jaxprof.analysis.runs.ceilings import ceilings_for, processor_share, why_unmeasured
    from jaxprof.findings.slow_kernels import FAR_BELOW, device_use
    from jaxprof.findings.slow_kernels import reason as why_slow
    from jaxprof.hlo.kernels.kinds import platform_of

    captured = [run for run in session.runs.values() if run.measured]
    runs = [run for run in captured if run.plan.how == IMPORTED]
    if not runs and captured:  # the longest function, a compiled one if there is any
        runs = [max(captured, key=lambda run: (run.plan.how == "jit", sum(seconds_per_call(run).values())))]
    of_runs = kernels_together(session, [run.id for run in runs])
    measured = [(run, kernel) for run, kernel in of_runs if (run, kernel.name) not in explained]
    by_line: dict[tuple[str, str], list[MeasuredKernel]] = {}
    for run, kernel in measured:
        source = kernel.kernel.source if kernel.kernel is not None else None
        by_line.setdefault((run, source.short if source is not None else ""), []).append(kernel)
    if not by_line:
        return None
    (run, line), kernels = max(by_line.items(), key=lambda item: sum(kernel.self_seconds for kernel in item[1]))
    part = sum(kernel.share or 0.0 for kernel in kernels)
    if part < MUCH:
        return None
    longest = kernels[0]
    many = "one kernel" if len(kernels) == 1 else counted(len(kernels), "kernel")
    what = f"{many} ({and_more([each.name for each in kernels], 2)})"
    at = f" at {line}" if line else ""
    of_what = "of it" if head else "of the kernels' time"
    device = ceilings_for(session, session.runs[run])
    most = device_use(longest, device) if device is not None else None
    why = "unexplained"
    if most is not None and most.share <= FAR_BELOW and processor_share(session, session.runs[run]) < 1:
        why = f"unexplained; it reaches {most.text}, but other programs kept the processors busy"
    elif most is not None and most.share <= FAR_BELOW and longest.kernel is not None:
        platform = platform_of(longest.kernel.instruction.computation.module)
        known, _ = why_slow(longest.kernel, platform or session.runs[run].plan.device.partition(":")[0])
        why = f"unexplained; it reaches {most.text}{f': {known}' if known else ''}"
    elif most is not None and len(kernels) == 1 and most.of_memory and most.share > _BEYOND:
        why = f"which is faster than memory ({most.text}), so a cache holds its arrays: only less work helps much"
    elif most is not None and len(kernels) == 1 and most.share > _NEAR:
        why = f"which reaches {most.text}: only less work helps much"
    unmeasured = why_unmeasured(session, session.runs[run]) if longest.kernel is not None else ""
    reason = f"{head}{percent(part)} {of_what} in {what}{at}, {why}{f'; {unmeasured}' if unmeasured else ''}"
    following = command(*_MEASURE) if unmeasured else command("open", name, "--kernels")
    return Abstention("unexplained", safe(reason), following), share * part
