"""Findings of compiled programs for an explanation, with the time or the traffic of their kernels."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field, replace
from typing import TYPE_CHECKING

from jaxprof.analysis.kernels.measured import measured
from jaxprof.analysis.kernels.ranking import ranking_on
from jaxprof.analysis.runs.ceilings import ceilings_for, machine_of_run
from jaxprof.analysis.runs.run_result import result
from jaxprof.base.values import frozen
from jaxprof.events.finding import Finding, Scope
from jaxprof.findings.explanation import code_line
from jaxprof.findings.hlo import CHECKS, findings
from jaxprof.hlo.kernels.kernels import Kernel, kernels, with_running

if TYPE_CHECKING:
    from jaxprof.hlo.text.model import Module
    from jaxprof.session import Run, Session

_WORTH = 0.02
"""Share of the kernels' time below which a finding is left out, if that time is known."""
_KERNELS_NAMED = 5
_SAVES = {check.code: check.saves for check in CHECKS}


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
    """Return the kernels of a measured or compiled function as parts of one call. The weights come from its capture,
    else from the least times on its device, else they are unknown."""
    summary = result(session, run.id).summary
    median, low, high = (summary.median, summary.low, summary.high) if summary is not None else (None, None, None)
    captured = measured(session, run.id)
    captured_seconds = sum(kernel.self_seconds for kernel in captured.kernels) if captured is not None else 0.0
    if captured is not None and captured_seconds > 0:
        shares = {kernel.name: kernel.self_seconds / captured_seconds for kernel in reversed(captured.kernels)}
        calls = [kernel.per_call_seconds for kernel in captured.kernels]
        known = sum(seconds for seconds in calls if seconds is not None) or None
        return KernelWeights(
            scope="call", shares=shares, seconds=known if median is None else median, low=low, high=high
        )
    machine = machine_of_run(run, ceilings_for(session, run))
    ranked = ranking_on(machine, module, kernels(module), None)
    if ranked.basis != "least":
        return KernelWeights(scope="call")
    every = range(len(ranked))
    shares = {row.kernel.name: row.share for row in ranked.rows(every) if row.share is not None}
    seconds = median
    if seconds is None:
        seconds = ranked.step.bound_seconds if ranked.step is not None else ranked.total("weight", every)
    return KernelWeights(scope="call", shares=shares, seconds=seconds, low=low, high=high)


def module_findings(
    session: Session, module: Module, weights: KernelWeights, run: Run, *, verify: str
) -> Iterator[Finding]:
    """Yield the findings of a module of a run with the cost of their kernels."""
    found = findings(module)
    named = {name for finding in found for name in finding.kernels}  # also loops, which are no kernels
    by_name = {kernel.name: kernel for kernel in reversed(with_running(module, named))}
    for finding in found:
        priced = _priced(finding, weights, by_name)
        if priced is None:
            continue
        yield replace(
            priced,
            code_line=code_line(finding.where, session),
            kernels=finding.kernels[:_KERNELS_NAMED],
            verify=verify,
            run=run.id,
        )


def _priced(finding: Finding, weights: KernelWeights, by_name: Mapping[str, Kernel]) -> Finding | None:
    """Return the finding with its cost; None if the kernels take next to no time."""
    timed_names = dict.fromkeys(name for kernel in finding.kernels for name in _timed_as(kernel, by_name))
    share = sum(weights.shares.get(name, 0.0) for name in timed_names)
    saves = _SAVES[finding.code]
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


def _timed_as(name: str, by_name: Mapping[str, Kernel]) -> Iterator[str]:
    """Yield the names under which a capture has the time of a kernel: that of a loop is also the time of its kernels,
    and the wait for an asynchronous pair the time of its second half."""
    yield name
    kernel = by_name.get(name)
    if kernel is not None and kernel.runs_kernels:
        yield from (each.name for each in by_name.values() if each.computation in kernel.computations_inside)
    if kernel is not None and kernel.asynchronous:
        yield from (user.name for user in kernel.instruction.users if user.opcode.endswith("-done"))
