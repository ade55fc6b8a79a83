"""Explain a session, a profile or HLO: the findings of all its sources in one order, and what remains unknown.

The order is by cost: first what makes figures meaningless, then seconds, then bytes, then findings without a known
cost. Nothing is guessed to fill the list, and the same input gives the same explanation.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from jaxprof.analysis.explain.catalogue import with_fix
from jaxprof.analysis.explain.model import (
    MOST_ABSTENTIONS,
    MOST_FINDINGS,
    MOST_MODULES,
    Abstention,
    Explanation,
    Subject,
    command,
)
from jaxprof.errors import JaxprofError
from jaxprof.finding import Finding
from jaxprof.session.run import IMPORTED

if TYPE_CHECKING:
    from jaxprof.analysis.programs.result import ProgramResult
    from jaxprof.hlo.open.stages import ModuleStages
    from jaxprof.session import Session

_DOUBTFUL: Final = ("large_program",)
"""Findings that may be about something that cannot be changed."""
_AT_MOST_WEIGHT: Final = 0.5
"""Weight of an upper bound on the saved time; it ranks behind a certain cost of the same size."""


def explanation(session: Session, name: str, *, code: str = "", most: int = MOST_FINDINGS) -> Explanation:
    """Return what to do about a session, or a profile that was read as one, in at most `most` findings; with `code`,
    in all findings of that code.

    `name` is the session's name in commands. Reads the HLO of its runs, which can take a second, so call it in a
    thread. Damaged parts raise nothing: they are left out as in all views.
    """
    recorded = _programs(session)
    items = list(_of_programs(session, recorded, name))
    subject: Subject = "nothing"
    if len(session.runs) > len(recorded):
        from jaxprof.analysis.explain.runs import explained_runs

        subject, others = explained_runs(session, recorded[0] if recorded else None, name)
        items += others
    return _explained(name, "program" if recorded else subject, items, session=session, code=code, most=most)


def explanation_of_modules(modules: Sequence[ModuleStages], name: str) -> Explanation:
    """Return what to do about HLO without a session: a file, or the folder of an XLA dump. Raises JaxprofError if none
    of the modules can be read."""
    from jaxprof.analysis.explain.modules import KernelWeights, module_abstentions, module_findings

    items: list[Finding | Abstention] = []
    failure: JaxprofError | None = None
    read = 0
    verify = command("hlo", name, "--findings")
    for stages in modules[:MOST_MODULES]:
        try:
            module = stages.module()
        except JaxprofError as error:
            failure = error
            items.append(Abstention("not-read", error.what))
            continue
        read += 1
        items += module_findings(
            module,
            KernelWeights(scope="module"),
            run=stages.label,
            verify=verify,
            recorded_seconds=stages.recorded_seconds,
        )
        items += module_abstentions(module)
    if failure is not None and not read:
        raise failure
    if len(modules) > MOST_MODULES:
        reason = f"the HLO of {len(modules) - MOST_MODULES} more programs was not read"
        items.append(Abstention("not-read", reason))
    items.append(Abstention("no-times", "HLO alone: how long its kernels take is unknown, so costs are bytes"))
    return _explained(name, "hlo", items, modules=tuple(modules))


def _programs(session: Session) -> list[ProgramResult]:
    """Return the session's programs. Loads their analysis only if there is one."""
    if not session.programs:
        return []
    from jaxprof.analysis.programs.derive import program_result

    return [program_result(session, run.id) for run in session.programs]


def _of_programs(session: Session, recorded: Sequence[ProgramResult], name: str) -> Iterator[Finding | Abstention]:
    if not recorded:
        return
    from jaxprof.analysis.explain.programs import program_abstentions, program_findings

    captured = any(run.plan.how == IMPORTED for run in session.runs.values())
    for program in recorded:
        yield from program_findings(session, program, name)
        yield from program_abstentions(program, has_capture=captured)


def _explained(
    name: str,
    subject: Subject,
    items: Sequence[Finding | Abstention],
    *,
    session: Session | None = None,
    modules: tuple[ModuleStages, ...] = (),
    code: str = "",
    most: int = MOST_FINDINGS,
) -> Explanation:
    findings = [with_fix(item) for item in items if isinstance(item, Finding)]
    ranked = sorted(_merged(_without_duplicates(findings)), key=_rank)
    shown = [each for each in ranked if each.code == code] if code else ranked[:most]
    unknown: dict[str, Abstention] = {}
    for item in items:
        if isinstance(item, Abstention):  # of many runs, one that says what is missing is enough
            unknown.setdefault(item.code, item)
    return Explanation(
        name=name,
        subject=subject,
        findings=tuple(shown),
        left_out=0 if code else len(ranked) - len(shown),
        abstentions=tuple(unknown.values())[:MOST_ABSTENTIONS],
        session=session,
        modules=modules,
    )


def _without_duplicates(findings: Sequence[Finding]) -> Iterator[Finding]:
    """Drop findings whose cost another finding already reports.

    Copies in a capture's steps are dropped if the kernels that copy are a finding, which has their name. The missing
    cache, which nearly every run has, is dropped if anything in the program itself costs avoidable time.
    """
    costly = {finding.code for finding in findings if finding.seconds}
    left_out = {"copies-in-steps"} if "host-transfer" in costly else set()
    if costly - {"cache_off", *_DOUBTFUL}:
        left_out.add("cache_off")
    return (finding for finding in findings if finding.code not in left_out)


def _merged(findings: Iterable[Finding]) -> Iterator[Finding]:
    """Merge the findings of each code into the one of the run where it costs most, with the other runs named. The fix
    is the same for all of them. Findings that name a line of a program, or a failure, stay separate."""
    groups: dict[tuple[object, ...], list[Finding]] = {}
    for number, finding in enumerate(findings):
        apart = finding.scope == "program" or finding.code in ("run-failed", "out-of-memory", "slower")
        groups.setdefault((finding.code, number) if apart else (finding.code,), []).append(finding)
    for group in groups.values():
        first, *others = sorted(group, key=_rank)
        also = tuple(dict.fromkeys(other.run for other in others if other.run != first.run))
        yield replace(first, also=also)


def _rank(finding: Finding) -> tuple[bool, bool, float, int, str, str]:
    """Return the sort key of a finding."""
    seconds = finding.saves_seconds if finding.saves_seconds is not None else finding.seconds
    weight = (seconds or 0.0) * (_AT_MOST_WEIGHT if finding.at_most else 1.0)
    first = finding.code != "program_failed"
    return not finding.fault, first, -weight, -(finding.bytes or 0), finding.code, finding.run
