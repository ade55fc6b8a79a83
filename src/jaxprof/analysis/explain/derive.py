"""Explain a session, a profile or HLO: the findings of all its sources in one order, and what cannot be said.

The order is by cost: what makes figures meaningless first, then seconds, then bytes, then what has no known cost.
Nothing is guessed to fill the list, and the same input gives the same explanation.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from jaxprof.analysis.ab import AbResult, ab_results
from jaxprof.analysis.explain.model import (
    MOST_ABSTENTIONS,
    MOST_FINDINGS,
    Abstention,
    Explanation,
    RankedFinding,
    Scope,
    Subject,
    command,
    fix_of,
    program_verified,
    run_verified,
)
from jaxprof.analysis.explain.sources import (
    call_findings,
    capture_abstentions,
    captured_too,
    measured_longer,
    program_abstentions,
    program_findings,
    run_abstentions,
    run_findings,
    side_abstentions,
    side_findings,
    step_findings,
)
from jaxprof.analysis.measured import measured, whole_profile
from jaxprof.analysis.opener import module_of
from jaxprof.analysis.profile import device_steps
from jaxprof.analysis.run_result import IMPORTED
from jaxprof.errors import JaxprofError

if TYPE_CHECKING:
    from jaxprof.analysis.programs.derive import ProgramResult
    from jaxprof.hlo.open.stages import ModuleStages
    from jaxprof.session import Run, Session

MOST_MODULES: Final = 16
"""Programs of one session, or modules of one dump, whose HLO is read: the first ones."""
_DOUBTFUL: Final = ("large_program",)
"""Findings that may be about nothing that can be changed."""
_AT_MOST_PART: Final = 0.5
"""What counts of a time of which a change saves only a part: it stands behind what surely costs as much."""


def explanation(session: Session, name: str, *, most: int = MOST_FINDINGS) -> Explanation:
    """What to do about a session, or a profile that was read as one: at most `most` findings. `name` is what its
    commands call it.

    Reads the HLO of its runs, which can take a second: call it in a thread. Raises nothing for damaged parts: they are
    left out as they are in all views.
    """
    found = _Found()
    compared = ab_results(session)
    recorded = _of_programs(session, name, found)
    _of_profiles(session, recorded[0] if recorded else None, name, found)
    runs = [run for run in session.runs.values() if run.plan.how != IMPORTED and not run.is_program]
    for result in compared:
        found.findings += side_findings(result, name)
        found.abstentions += side_abstentions(result, name)
    _of_runs(session, runs, name, found)
    return _explained(name, _subject(session, recorded, compared, runs), found, session=session, most=most)


def explanation_to_try(session: Session, name: str, code: str = "") -> Explanation:
    """The same; with `code` only the findings of that code, however far down the list they stand."""
    if not code:
        return explanation(session, name)
    explained = explanation(session, name, most=sys.maxsize)
    return replace(explained, findings=tuple(each for each in explained.findings if each.code == code))


def explanation_of_modules(modules: Sequence[ModuleStages], name: str) -> Explanation:
    """What to do about HLO that has no session: a file, or the folder of an XLA dump. Raises JaxprofError if none of
    the modules can be read."""
    from jaxprof.analysis.explain.modules import KernelWeights, module_abstentions, module_findings

    found = _Found()
    failure: JaxprofError | None = None
    read = 0
    verify = command("hlo", name, "--findings")
    for stages in modules[:MOST_MODULES]:
        try:
            module = stages.module()
        except JaxprofError as error:
            failure = error
            found.abstentions.append(Abstention("not-read", error.what))
            continue
        read += 1
        found.findings += module_findings(
            module,
            KernelWeights(scope="module"),
            run=stages.label,
            verify=verify,
            recorded_seconds=stages.recorded_seconds,
        )
        found.abstentions += module_abstentions(module)
    if failure is not None and not read:
        raise failure
    found.not_read(len(modules))
    found.abstentions.append(
        Abstention("no-times", "HLO alone: how long its kernels take is unknown, so costs are bytes")
    )
    return _explained(name, "hlo", found, modules=tuple(modules))


@dataclass(slots=True)
class _Found:
    findings: list[RankedFinding] = field(default_factory=list)
    abstentions: list[Abstention] = field(default_factory=list)

    def not_read(self, modules: int) -> None:
        """Notes that only the first modules were read, where there are more."""
        if modules > MOST_MODULES:
            self.abstentions.append(
                Abstention("not-read", f"the HLO of {modules - MOST_MODULES} more programs was not read")
            )


def _of_programs(session: Session, name: str, found: _Found) -> list[ProgramResult]:
    """The programs of the session. Their analysis is loaded only where there is one."""
    if not session.programs:
        return []
    from jaxprof.analysis.programs.derive import program_result

    recorded = [program_result(session, run.id) for run in session.programs]
    captured = any(run.plan.how == IMPORTED for run in session.runs.values())
    for program in recorded:
        found.findings += program_findings(session, program, name)
        found.abstentions += program_abstentions(program, has_capture=captured)
    return recorded


def _subject(
    session: Session, recorded: Sequence[ProgramResult], compared: Sequence[AbResult], runs: Sequence[Run]
) -> Subject:
    if recorded:
        return "program"
    if compared:
        return "comparison"
    if runs:
        return "runs"
    return "profile" if session.runs else "nothing"


def _of_profiles(session: Session, program: ProgramResult | None, name: str, found: _Found) -> None:
    """The capture windows of a recorded program, whose kernels are a part of its device time, or a profile."""
    imported = [run for run in session.runs.values() if run.plan.how == IMPORTED]
    if not imported:
        return
    scope: Scope = "profile" if program is None else "program"
    verify = command("explain", name) if program is None else program_verified(name, program)
    of_all = whole_profile(session)
    whole = sum(kernel.self_seconds for kernel in of_all)
    devices = len({device for kernel in of_all for device in kernel.devices}) or 1
    seconds = whole / devices if program is None else program.share("device_busy").seconds
    spans = (device.span_seconds for run in imported for device in device_steps(run.steps))
    span = max((each for each in spans if each is not None), default=None)
    with_hlo = 0
    for run in imported:
        found.abstentions += capture_abstentions(run, name)
        if program is None or run.steps is not None:
            found.findings += step_findings(run, scope, verify, whole_program=program is None)
        module = module_of(session, run) if with_hlo < MOST_MODULES else None
        of_run = measured(session, run.id)
        if module is None or of_run is None:
            continue
        from jaxprof.analysis.explain.modules import KernelWeights, module_findings

        with_hlo += 1
        shares = {kernel.name: kernel.self_seconds / whole for kernel in reversed(of_run.kernels) if whole > 0}
        weights = KernelWeights(
            scope=scope,
            shares=shares,
            seconds=seconds,
            scope_seconds=span if program is None else program.wall_seconds,
            estimate=program is not None,
        )
        recorded = session.header.wall_seconds if program is not None else None
        found.findings += module_findings(
            module, weights, run=run.id, verify=verify, recorded_seconds=recorded, sources=run.sources
        )
    if not with_hlo:
        found.abstentions.append(Abstention("no-hlo", "no HLO in the profile: its kernels have times, and no findings"))


def _of_runs(session: Session, runs: Sequence[Run], name: str, found: _Found) -> None:
    read = 0
    baselines = {run.plan.baseline for run in session.runs.values() if run.plan.baseline != run.id}
    for run in runs:
        found.findings += run_findings(session, run, name, baselines)
        found.findings += call_findings(session, run, name)
        module = module_of(session, run) if read < MOST_MODULES else None
        if module is None:
            continue
        from jaxprof.analysis.explain.modules import module_findings, weights_of_call

        read += 1
        weights = weights_of_call(session, run, module)
        verify = run_verified(name, run)
        found.findings += step_findings(run, "call", verify, whole_program=False)
        found.findings += module_findings(
            module,
            weights,
            run=run.id,
            verify=verify,
            recorded_seconds=session.header.wall_seconds,
            sources=run.sources,
        )
        found.abstentions += capture_abstentions(run, name)
    uncaptured = [run for run in runs if run.plan.how == "jit" and run.status == "ok" and not run.measured]
    if uncaptured:
        first = uncaptured[0]
        others = f" and {len(uncaptured) - 1} more" if len(uncaptured) > 1 else ""
        reason = f"{first.id} {first.label}{others}: no capture, so the times of kernels are unknown"
        again = measured_longer(name, first) if first.plan.capture else captured_too(session, first)
        found.abstentions.append(Abstention("no-capture", reason, again))
    found.abstentions += run_abstentions(session, runs, name)


def _explained(
    name: str,
    subject: Subject,
    found: _Found,
    *,
    session: Session | None = None,
    modules: tuple[ModuleStages, ...] = (),
    most: int = MOST_FINDINGS,
) -> Explanation:
    ranked = list(_mechanical(sorted(_merged(_claimed(found.findings)), key=_rank), subject))
    unknown = tuple(dict.fromkeys(_once(found.abstentions)))
    return Explanation(
        name=name,
        subject=subject,
        findings=tuple(ranked[:most]),
        left_out=max(0, len(ranked) - most),
        abstentions=unknown[:MOST_ABSTENTIONS],
        session=session,
        modules=modules,
    )


def _mechanical(findings: Iterable[RankedFinding], subject: Subject) -> Iterator[RankedFinding]:
    """The findings, each with what can be tried of it."""
    for finding in findings:
        fix = fix_of(finding, subject)
        yield finding if fix is None else replace(finding, mechanical=fix.title)


def _claimed(findings: Sequence[RankedFinding]) -> Iterator[RankedFinding]:
    """Without the copies in a capture's steps, if the program's own kernels for them are a finding: the same seconds
    are not told twice, and the kernels have a name. Without compilations that are not kept, which nearly every run has,
    if anything in the program itself takes time that it need not."""
    costly = {finding.code for finding in findings if finding.cost.seconds}
    left_out = {"copies-in-steps"} if "host-transfer" in costly else set()
    if costly - {"cache_off", *_DOUBTFUL}:
        left_out.add("cache_off")
    return (finding for finding in findings if finding.code not in left_out)


def _merged(findings: Iterable[RankedFinding]) -> Iterator[RankedFinding]:
    """One finding for each code, of the run where it costs most, with the others named: a fix is the same for all.
    Findings that name a line of a program, or a failure, are kept apart."""
    groups: dict[tuple[object, ...], list[RankedFinding]] = {}
    for number, finding in enumerate(findings):
        apart = finding.cost.scope == "program" or finding.code in ("run-failed", "out-of-memory", "slower")
        groups.setdefault((finding.code, number) if apart else (finding.code,), []).append(finding)
    for group in groups.values():
        first, *others = sorted(group, key=_rank)
        also = tuple(dict.fromkeys(other.run for other in others if other.run != first.run))
        yield replace(first, also=also)


def _rank(finding: RankedFinding) -> tuple[bool, bool, float, int, str, str]:
    """What a list of findings is sorted by."""
    cost = finding.cost
    seconds = cost.saves_seconds if cost.saves_seconds is not None else cost.seconds
    weight = (seconds or 0.0) * (_AT_MOST_PART if cost.at_most else 1.0)
    first = finding.code != "program_failed"
    return not finding.fault, first, -weight, -(cost.bytes or 0), finding.code, finding.run


def _once(abstentions: Iterable[Abstention]) -> Iterator[Abstention]:
    """The first abstention of each code: of many runs, one that says what is missing is enough."""
    seen: set[str] = set()
    for abstention in abstentions:
        if abstention.code not in seen:
            seen.add(abstention.code)
            yield abstention
