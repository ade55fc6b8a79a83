"""Explain a session, a profile or a job: the findings of all its sources in one order, and what remains unknown.

The order is by cost: first what makes figures meaningless, then seconds, then bytes, then findings without a known
cost. Nothing is guessed to fill the list, and the same input gives the same explanation. The largest part of the time
that no finding explains is named, with its lines and with what would show more; that is no finding, because nothing is
known that could be changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from jaxprof.analysis.target import command
from jaxprof.base.grouping import totals
from jaxprof.base.text import safe
from jaxprof.base.units import and_more, counted, percent
from jaxprof.base.units import seconds as duration
from jaxprof.events.finding import Finding
from jaxprof.findings import (
    MOST_ABSTENTIONS,
    MOST_FINDINGS,
    SMALL,
    Abstention,
    Explanation,
    Subject,
    code_line,
    is_command_of,
    program_verification,
    rank,
    record_again,
    subject_share,
)
from jaxprof.session import Session
from jaxprof.session.files import path_word
from jaxprof.session.run import IMPORTED

if TYPE_CHECKING:
    from jaxprof.analysis.kernels import MeasuredKernel
    from jaxprof.analysis.programs.result import ProgramResult
    from jaxprof.jobs.findings import JobFigures

_SMALL_BESIDE = 0.25
"""Share of the largest unexplained part below which a finding does not lead."""


def explanation(session: Session, name: str, *, most: int = MOST_FINDINGS) -> Explanation:
    """Return what to do about a session, or a profile that was read as one, in at most `most` findings.

    `name` is the session's name in commands. Reads the HLO of its runs, which can take a second, so call it in a
    thread. Damaged parts raise nothing: they are left out as in all views.
    """
    recorded: list[ProgramResult] = []
    for run in session.programs:
        # only for a session with a program
        from jaxprof.findings.program_result import function_request, program_result

        recorded.append(program_result(session, run.id))
    has_capture = any(run.plan.how == IMPORTED or run.measured for run in session.runs.values())
    items: list[Finding | Abstention] = []
    for program in recorded:
        items += program_findings(session, program, name)
        measured = function_request(session, program.run) is not None
        items += program_abstentions(program, has_capture=has_capture, has_function=measured)
    subject: Subject = "nothing"
    if len(session.runs) > len(recorded):
        from jaxprof.findings.runs import explain_runs

        subject, others = explain_runs(session, recorded[0] if recorded else None, name)
        items += others
    longest = max(recorded, key=lambda program: program.wall_seconds, default=None)
    if subject != "comparison":
        found = [item for item in items if isinstance(item, Finding)]
        concerned = [subject_share(each, longest) for each in found]
        large = [each for each, share in zip(found, concerned, strict=True) if share is None or share >= SMALL]
        part = largest_gap(session, longest, large, name)
        costs = (share or 0.0 for each, share in zip(found, concerned, strict=True) if each.code != "cache_off")
        largest = max(costs, default=0.0)
        if part is not None and part[1] > largest:
            note, share = part
            small = largest < max(SMALL, _SMALL_BESIDE * share)
            # a missing cache explains nothing of the loop, and costs more than any: `_CACHE_SHARE` of all work
            first = any(each.fault or each.code == "cache_off" for each in found)
            leads = small and not first and not _has_bad_capture(session)
            items = [replace(note, leads=True), *items] if leads else [*items, note]
            failed = longest is not None and longest.failed_windows
            if note.command.startswith("jaxprof script") and not failed:  # it says what a capture would show
                items = [item for item in items if not (isinstance(item, Abstention) and item.code == "no_capture")]
    return make_explanation(session, name, "program" if recorded else subject, items, most, longest)


def _has_bad_capture(session: Session) -> bool:
    """Return whether a capture's figures cannot be trusted, which is reported before what follows from them."""
    from jaxprof.findings.captures import DOUBTED_CHECKS

    rows = (row for run in session.runs.values() for event in run.trust.values() for row in event.rows)
    return any(row.verdict == "bad" and row.code in DOUBTED_CHECKS for row in rows)


def make_explanation(
    session: Session,
    name: str,
    subject: Subject,
    items: Sequence[Finding | Abstention],
    most: int,
    program: ProgramResult | None = None,
) -> Explanation:
    """Return the explanation of these findings and gaps, in order and without repetitions. Findings that
    concern next to nothing of what they are about, such as the loop of `program`, come last."""
    from_file = session.from_file
    findings = [replace(item, from_file=from_file and bool(item.verify)) for item in items if isinstance(item, Finding)]
    # Another finding reports the cost already: kernels that copy, by their name, the copies in a capture's steps. The
    # constants of a program have the line of their function where its recording has them, too.
    costly = {finding.code for finding in findings if finding.seconds}
    left_out = {"copies_in_steps"} if "host_transfer" in costly else set()
    largest: dict[str, int] = {}
    for finding in findings:
        largest[finding.code] = max(finding.bytes or 0, largest.get(finding.code, 0))
    if largest.get("large_constant", 0) <= largest.get("captured_constants", 0):
        left_out.add("large_constant")
    ranked = sorted(
        _merge_runs(finding for finding in findings if finding.code not in left_out),
        key=lambda each: rank(each, program),
    )
    unknown: dict[str, Abstention] = {}
    for item in items:
        if isinstance(item, Abstention):  # of many runs, one that says what is missing is enough
            fills = "" if is_command_of(session, item.command) else item.command  # it has just been tried
            unknown.setdefault(item.code, replace(item, command=fills, from_file=from_file and bool(fills)))
    return Explanation(
        name=name,
        subject=subject,
        findings=tuple(ranked[:most]),
        left_out=max(0, len(ranked) - most),
        abstentions=tuple(unknown.values())[:MOST_ABSTENTIONS],
        session=session,
    )


def _merge_runs(findings: Iterable[Finding]) -> Iterator[Finding]:
    """Merge the findings of each code and line into the one of the run where it costs most, with the other runs named.
    The fix is the same for all of them. Findings about a program, or a failure, stay separate."""
    groups: dict[tuple[object, ...], list[Finding]] = {}
    for number, finding in enumerate(findings):
        apart = finding.scope == "program" or finding.code in ("run_failed", "out_of_memory", "slower")
        groups.setdefault((finding.code, number if apart else finding.where), []).append(finding)
    for group in groups.values():
        first, *others = sorted(group, key=rank)
        also = tuple(dict.fromkeys(other.run for other in others if other.run != first.run))
        yield replace(first, also=also)


_CACHE_SHARE = 0.5
"""Share of the program's work, in compilations that are in no finding, from which a cache is recommended."""
_UNTIMED = "lines are not timed, "


def program_findings(session: Session, program: ProgramResult, name: str) -> Iterator[Finding]:
    """Yield the findings of a recorded program; their seconds are parts of its wall time."""
    verify = program_verification(name, program)
    from jaxprof.findings.programs import FAULTS

    for finding in program.findings:
        rows = [row for function in program.functions for row in function.rows if row.function == finding.function]
        yield replace(
            finding,
            verify=(record_again(program) or verify)
            if finding.code in ("program_failed", "unfinished_compile")
            else verify,
            run=program.run.id,
            directory=program.directory,
            code_line=code_line(finding.where, session),
            compilations=sum(row.count for row in rows),
            fault=finding.code in FAULTS,
        )
    # Compilations that no other finding covers, are not kept, and are most of what the program did.
    claimed = sum(
        finding.announced_seconds if finding.estimate else finding.seconds or 0.0 for finding in program.findings
    )
    for remark in program.remarks:
        seconds = (remark.seconds or 0.0) - claimed
        if remark.code == "cache_off" and seconds >= _CACHE_SHARE * program.work_seconds:
            unclaimed = replace(remark, seconds=seconds, saves_seconds=seconds)
            from jaxprof.findings.program_result import with_share

            yield replace(with_share(program, unclaimed), verify=verify, run=program.run.id)


def missing_verdict(program: ProgramResult) -> tuple[str, str]:
    """Return why there is no verdict, and the command that would give one; no command if this Python cannot time
    lines, or if the same program would be as short again."""
    from jaxprof.analysis.programs.verdict import LEAST_SAMPLES, UNTIMED

    reason = program.verdict.reason
    messages = (warning.message for warning in program.run.warnings if warning.code == "steps_not_counted")
    because = next((message.partition(_UNTIMED)[2] for message in messages if _UNTIMED in message), "")
    if because and reason.endswith(UNTIMED):
        return f"{reason}, {because}", ""
    enough = program.verdict.needs_seconds is None and program.hot.samples >= LEAST_SAMPLES
    return program.verdict.why_unknown, record_again(program) if enough else ""


def brief_function(program: ProgramResult) -> str:
    """Return the user's function to measure by itself if samples saw too little of the program's work: of those that
    the hot loop calls, or of all, the one that took longest to compile; empty if the work was seen, or without one."""
    from jaxprof.analysis.programs.verdict import LEAST_SAMPLES

    hot = program.hot
    if hot.samples >= LEAST_SAMPLES or program.other_thread:
        return ""
    own = [each for each in program.functions if not each.op_by_op and not each.library]
    named = [each for each in own if each.function.isidentifier()]
    looped = [each for each in named if each.called_from is not None and hot.holds(each.called_from)]
    return next((each.function for each in (*looped, *named)), "")


def program_abstentions(
    program: ProgramResult, *, has_capture: bool, has_function: bool = False
) -> Iterator[Abstention]:
    """Yield what the recording of a program leaves unknown. `has_function`: whether a function of it was measured."""
    works = program.verdict.seconds or program.compiles
    outside = [note.message for note in program.notes if note.code == "child_processes"]
    if outside:
        yield Abstention("child_processes", outside[0], leads=not works)
    if not works:
        note = next((note.message for note in program.notes if note.message), "")
        yield Abstention("no_jax", note or "JAX was not seen at work", record_again(program))
        return
    if program.verdict.kind is None and program.verdict.reason:
        reason, again = missing_verdict(program)
        what = "the loop" if program.hot.where is not None else "the program's work"
        function = "" if has_function else brief_function(program)
        if function and (measured := record_again(program, "--function", function)):
            reason, again = f"{reason}; to measure a call of `{function}`:", measured
            has_capture = has_capture or not program.failed_windows  # the measurement takes one
        yield Abstention("no_verdict", safe(f"what bounds {what}: {reason}"), again)
    if not has_capture:
        failed = program.failed_windows[-1] if program.failed_windows else None
        reason = "no capture: kernels, their times and their HLO are unknown"
        if failed:
            from jaxprof.analysis.programs.sentences import window_text

            reason = window_text(failed)
        if failed and failed.code == "ended_uncounted":
            reason = f"{reason}; a window by time does not wait for steps"
        yield Abstention("no_capture", reason, _record_with_capture(program))


def _record_with_capture(program: ProgramResult) -> str:
    """Return the command that records the program with a capture; empty if the same would fail again."""
    if not program.failed_windows:
        return record_again(program, "--capture-steps", "5")
    by_time = program.failed_windows[-1].code == "ended_uncounted"
    return record_again(program, "--capture-seconds", "2") if by_time else ""


_JOB_FAULTS = ("process_failed", "failed_after", "process_standstill")
"""Findings without a cost that come before all others: the job did not complete its work."""
_READ_ON = "Its session has what it was doing, and what it wrote."
_EXACT = ("recompiles_alone", "recompiles", "process_paused")
"""Findings whose seconds were reported, not estimated from samples."""


def explanation_of_job(job: JobFigures, *, most: int = MOST_FINDINGS) -> Explanation:
    """Return what to do about a job, in at most `most` findings."""
    ranked = [_of_job(job, finding) for finding in job.findings]
    # findings about all processes have larger costs than a late process, but come after it
    ranked.sort(key=lambda each: (not each.fault, each.index is None, -(each.seconds or 0.0)))
    unknown = [
        Abstention(f"job_incomplete-{number}" if number > 1 else "job_incomplete", notice)
        for number, notice in enumerate(job.notices, 1)
    ]
    if job.arrivals is None and job.count > 1:
        words = (
            "fewer than two processes have captured a collective: a slow device would not show; "
            "`jaxprof script --capture-steps 100` takes captures"
        )
        unknown.append(Abstention("no_arrivals", words))
    return Explanation(
        name=job.folder,
        subject="job",
        findings=tuple(ranked[:most]),
        left_out=max(0, len(ranked) - most),
        abstentions=tuple(unknown[:MOST_ABSTENTIONS]),
        job=job,
    )


def _of_job(job: JobFigures, finding: Finding) -> Finding:
    process = next((each for each in job.processes if each.index == finding.index), None)
    walls = [each.wall_seconds for each in job.processes if each.wall_seconds is not None and process in (None, each)]
    wall = max(walls, default=None)
    return replace(
        finding,
        own_fix=finding.fix or _READ_ON,
        share=finding.seconds / wall if finding.seconds is not None and wall else None,
        estimate=finding.code not in _EXACT,
        verify=command("explain", path_word(process.path)) if process is not None else "",
        fault=finding.code in _JOB_FAULTS,
        host=process.host if process is not None else "",
    )


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
    from jaxprof.analysis.programs import DEVICE, WAIT_BOUND
    from jaxprof.findings.programs.claims import Claims

    bound = program.verdict.otherwise or program.verdict
    part = (bound.kind or "").removesuffix("-bound")
    if bound.share is None or program.wall_seconds <= 0:
        return None
    share = bound.share
    head = f"{bound.kind} {percent(bound.share)}"
    if part == DEVICE and any("imported" in run.measured for run in session.runs.values()):
        return _kernels_unexplained(session, explained, f"{head}: ", share, name)
    hot = program.hot
    spots = hot.waits if bound.kind == WAIT_BOUND else [spot for spot in hot.spots if hot.part(spot) == part]
    seconds = totals((spot.location, spot.seconds) for spot in spots)
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
    again = _record_with_capture(program) if part == DEVICE else command("open", name)
    shown = "only a capture shows which kernels take it" if part == DEVICE else "the cause is unknown"
    if program.behind_seconds is not None and all(map(Claims(program).hides, spots)):
        shown = (
            f"the device is {duration(program.behind_seconds, 2)} behind the loop, and less of it would save nothing"
        )
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
    from jaxprof.findings.modules import FAR_BELOW, device_use
    from jaxprof.findings.modules import reason as why_slow
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
        known, _ = why_slow(longest.kernel, platform)
        why = f"unexplained; it reaches {most.text}{f': {known}' if known else ''}"
    elif most is not None and len(kernels) == 1 and most.of_memory and most.share > _BEYOND:
        why = f"which is faster than memory ({most.text}), so a cache holds its arrays: only less work helps much"
    elif most is not None and len(kernels) == 1 and most.share > _NEAR:
        why = f"which reaches {most.text}: only less work helps much"
    unmeasured = why_unmeasured(session, session.runs[run]) if longest.kernel is not None else ""
    reason = f"{head}{percent(part)} {of_what} in {what}{at}, {why}{f'; {unmeasured}' if unmeasured else ''}"
    following = command(*_MEASURE) if unmeasured else command("open", name, "--kernels")
    return Abstention("unexplained", safe(reason), following), share * part
