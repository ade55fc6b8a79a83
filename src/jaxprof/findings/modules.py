"""Findings of compiled programs for an explanation, with the time or the traffic of their kernels."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import TYPE_CHECKING

from jaxprof.analysis.kernels.measured import measure_kernels
from jaxprof.analysis.kernels.ranking import ranking_on
from jaxprof.analysis.runs.ceilings import ceilings_for, machine_of_run, processor_share
from jaxprof.base.values import frozen
from jaxprof.events.finding import Finding, Scope
from jaxprof.findings.explanation import code_line, rank
from jaxprof.findings.hlo import CHECKS, findings, line_of
from jaxprof.findings.hlo.scene import Scene, lines_of
from jaxprof.findings.slow_kernels import SLOW_KERNEL, slow_kernels
from jaxprof.hlo.kernels.dataflow import Value
from jaxprof.hlo.kernels.execution import functions_of_calls
from jaxprof.hlo.kernels.kernels import Kernel, kernels, with_running
from jaxprof.hlo.kernels.kinds import platform_of
from jaxprof.hlo.text.model import Module
from jaxprof.session import Run, Session
from jaxprof.session.run import IMPORTED

if TYPE_CHECKING:
    from jaxprof.analysis.programs.result import ProgramResult

_WORTH = 0.02
"""Share of the kernels' time below which a finding is left out, if that time is known."""
_KERNELS_NAMED = 5
_SAVES = {check.code: check.saves for check in CHECKS} | {SLOW_KERNEL.code: "part"}


@frozen(kw_only=True)
class KernelWeights:
    """Time of a module's kernels: their shares of `seconds`, by name."""

    scope: Scope
    shares: Mapping[str, float] = field(default_factory=dict)
    seconds: float | None = None
    low: float | None = None
    high: float | None = None
    scope_seconds: float | None = None
    """Seconds of the whole scope, of which the kernels are a part; if None, `seconds`."""
    estimate: bool = True
    """Whether shares or seconds were derived, rather than both timed together."""


def weights_of_call(session: Session, run: Run, module: Module) -> KernelWeights:
    """Return the kernels of a measured or compiled function as parts of one call. The weights come from its capture if
    that recorded all of the call, else from the least times on its device, else, if there is a capture, from the work
    of each kernel; otherwise they are unknown."""
    from jaxprof.analysis.runs.run_result import (
        result,
    )  # imports the statistics, which a module of a file does not need

    summary = result(session, run.id).summary
    median, low, high = (summary.median, summary.low, summary.high) if summary is not None else (None, None, None)
    captured = measure_kernels(session, run.id)
    captured_seconds = sum(kernel.self_seconds for kernel in captured.kernels) if captured is not None else 0.0
    checks = (check for kind in run.measured if kind in run.trust for check in run.trust[kind].rows)
    # Where the runtime continued ops on threads that it does not record, their times are some part of what they took.
    partial = any(check.code == "unrecorded" and check.verdict == "doubt" for check in checks)
    if captured is not None and captured_seconds > 0 and not partial:
        shares = {kernel.name: kernel.self_seconds / captured_seconds for kernel in reversed(captured.kernels)}
        calls = [kernel.per_call_seconds for kernel in captured.kernels]
        known = sum(seconds for seconds in calls if seconds is not None) or None
        if median is None or known is None or known >= median:  # with the profiler on they may take longer
            return KernelWeights(
                scope="call", shares=shares, seconds=known if median is None else median, low=low, high=high
            )
        # the rest of the call is the host's: dispatch, and the Python of a wrapper around jit
        low, high = (None if bound is None else bound * known / median for bound in (low, high))
        return KernelWeights(scope="call", shares=shares, seconds=known, low=low, high=high, scope_seconds=median)
    machine = machine_of_run(run, ceilings_for(session, run))
    ranked = ranking_on(machine, module, kernels(module), None)
    if ranked.basis != "least":
        if not partial or median is None:
            return KernelWeights(scope="call")
        scene = Scene(module, platform_of(module))
        works = {kernel.name: scene.work(kernel) for kernel in scene.kernels}
        whole = sum(works.values()) or 1.0
        shares = {name: work / whole for name, work in works.items()}
        return KernelWeights(scope="call", shares=shares, seconds=median, low=low, high=high)
    every = range(len(ranked))
    shares = {row.kernel.name: row.share for row in ranked.rows(every) if row.share is not None}
    seconds = median
    if seconds is None:
        seconds = ranked.step.bound_seconds if ranked.step is not None else ranked.total("weight", every)
    return KernelWeights(scope="call", shares=shares, seconds=seconds, low=low, high=high)


def weights_of_profile(session: Session, run: Run, program: ProgramResult | None) -> KernelWeights:
    """Return the kernels of a program of a profile as parts of its devices' time, or of a capture window as parts of
    the recorded program's."""
    from jaxprof.analysis.timeline.profile import device_steps

    captured = measure_kernels(session, run.id)
    imported = [each for each in session.runs.values() if each.plan.how == IMPORTED]
    rows = [row for each in imported if IMPORTED in each.measured for row in each.measured[IMPORTED].rows]
    spans = (device.span_seconds for each in imported for device in device_steps(each.steps))
    whole = sum(row.self_seconds for row in rows) / (len({row.device for row in rows}) or 1)
    kernels = reversed(captured.kernels) if captured is not None else ()
    return KernelWeights(
        scope="profile" if program is None else "program",
        shares={kernel.name: kernel.share for kernel in kernels if kernel.share is not None},
        seconds=whole if program is None else program.states["device_busy"],
        scope_seconds=program.wall_seconds if program is not None else max(filter(None, spans), default=None),
        estimate=program is not None,
    )


def findings_of_run(session: Session, run: Run, module: Module) -> list[Finding]:
    """Return the findings of the module of a run in the words, at the cost and in the order of an explanation."""
    if run.plan.how != IMPORTED:
        return sorted(module_findings(session, module, weights_of_call(session, run, module), run), key=rank)
    from jaxprof.findings.program_result import program_result  # only for a session with a program

    recorded = next((program_result(session, each.id) for each in session.programs), None)
    found = module_findings(session, module, weights_of_profile(session, run, recorded), run)
    return sorted(found, key=lambda finding: rank(finding, recorded))


def module_findings(
    session: Session, module: Module, weights: KernelWeights, run: Run, *, verify: str = ""
) -> Iterator[Finding]:
    """Yield the findings of a module of a run with the cost of their kernels, and those kernels that are slow for the
    device without being in one of them."""
    found = (*findings(module), *_slow(session, module, run))
    named = {name for finding in found for name in finding.kernels}  # also loops, which are no kernels
    by_name = {kernel.name: kernel for kernel in reversed(with_running(module, named))}
    explained: set[str] = set()
    with_costs = []
    for finding in found:
        costed = with_cost(finding, weights, by_name)
        if costed is None or (finding.code == SLOW_KERNEL.code and explained.intersection(finding.kernels)):
            continue
        explained.update(finding.kernels if costed.seconds is not None else ())
        with_costs.append(costed)
    for finding in without_overlap(with_costs, weights, by_name):
        yield replace(
            finding,
            code_line=code_line(finding.where, session),
            kernels=finding.kernels[:_KERNELS_NAMED],
            verify=verify,
            run=run.id,
        )


def without_overlap(
    found: Sequence[Finding], weights: KernelWeights, by_name: Mapping[str, Kernel]
) -> Iterator[Finding]:
    """Yield the findings, most important first, with a saving of no more than what those before them leave of the time
    of their kernels."""
    claimed: set[str] = set()
    for finding in sorted(found, key=rank):
        names = {name for kernel in finding.kernels for name in _capture_names(kernel, by_name)}
        names |= _functions(finding, by_name)
        if finding.seconds is None or weights.seconds is None or names.isdisjoint(claimed):
            yield finding
        else:
            left = weights.seconds * sum(weights.shares.get(name, 0.0) for name in names - claimed)
            saves = finding.seconds if finding.saves_seconds is None else finding.saves_seconds
            yield replace(finding, saves_seconds=min(saves, left))
        if finding.seconds is not None:
            claimed |= names


def _slow(session: Session, module: Module, run: Run) -> Iterator[Finding]:
    captured, device = measure_kernels(session, run.id), ceilings_for(session, run)
    if captured is None or device is None:
        return
    ours = processor_share(session, run)
    platform = platform_of(module) or run.plan.device.partition(":")[0]  # a small module of a CPU has no mark of it
    for kernel, message, fix in slow_kernels(captured.kernels, device, platform, ours):
        made = kernel.instruction
        # A kernel that XLA made by itself has the line of those beside it.
        near = lines_of(map(Value, (*made.users, *made.operand_instructions()))) if kernel.source is None else ()
        places = (near or (line_of([kernel]),))[:1]
        yield SLOW_KERNEL.complete(Finding(message, places, own_fix=fix or None, kernels=(kernel.name,)))


def with_cost(finding: Finding, weights: KernelWeights, by_name: Mapping[str, Kernel]) -> Finding | None:
    """Return the finding with its cost; None if the kernels take next to no time."""
    timed_names = dict.fromkeys(name for kernel in finding.kernels for name in _capture_names(kernel, by_name))
    share = sum(weights.shares.get(name, 0.0) for name in timed_names)
    saves = _SAVES[finding.code]
    if calls := _functions(finding, by_name) - timed_names.keys():  # which may do more than what the finding is about
        share, saves = share + sum(weights.shares.get(name, 0.0) for name in calls), saves and "part"
    if weights.seconds is None or share <= 0 or not saves:
        return finding
    if share < _WORTH:
        return None
    seconds = share * weights.seconds
    return replace(
        finding,
        scope=weights.scope,
        seconds=seconds,
        low=None if weights.low is None else share * weights.low,
        high=None if weights.high is None else share * weights.high,
        held=False,
        share=min(1.0, seconds / (weights.scope_seconds or weights.seconds)),
        saves_seconds=seconds if saves == "all" else None,
        estimate=weights.estimate,
        at_most=saves == "part",
    )


def _functions(finding: Finding, by_name: Mapping[str, Kernel]) -> set[str]:
    """Return the names of the calls that hold the kernels of a finding, where a capture has the calls alone."""
    kernels = [by_name[name] for name in finding.kernels if name in by_name]
    calls = functions_of_calls(kernels[0].instruction.computation.module) if kernels else {}
    return {calls[kernel.computation] for kernel in kernels if kernel.computation in calls}


def _capture_names(name: str, by_name: Mapping[str, Kernel]) -> Iterator[str]:
    """Yield the names under which a capture has the time of a kernel: that of a loop is also the time of its kernels,
    and the wait for an asynchronous pair the time of its second half."""
    yield name
    kernel = by_name.get(name)
    if kernel is not None and kernel.runs_kernels:
        yield from (each.name for each in by_name.values() if each.computation in kernel.computations_inside)
    if kernel is not None and kernel.asynchronous:
        yield from (user.name for user in kernel.instruction.users if user.opcode.endswith("-done"))
