"""Measured runs to be explained: failures, wrong results, sides that are slower, and what times cannot say."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from typing import TYPE_CHECKING, Final

from jaxprof.analysis.compile_passes import passes_in, stage_times
from jaxprof.analysis.explain.catalogue import find_entry
from jaxprof.analysis.explain.commands import command, run_verified
from jaxprof.analysis.explain.model import Abstention, FindingCost, RankedFinding, Scope
from jaxprof.analysis.memory import buffers_of
from jaxprof.analysis.run_result import result
from jaxprof.units import bytes_, integer, ratio_interval, seconds

if TYPE_CHECKING:
    from jaxprof.analysis.ab import AbResult, AbVersus
    from jaxprof.analysis.run_result import RunResult
    from jaxprof.session import Run, Session

_FAULTS: Final = ("wrong_result", "unlike_results", "results_differ", "folded_constants", "dead_code")
"""Warnings after which the times mean nothing."""
_TO_CHANGE: Final = ("compiled_again", "dtype_narrowed")
"""Warnings about the program that leave its times right."""
_DOUBTS: Final = (
    "throttled", "busy_machine", "disturbed", "unsettled", "not_idle", "drift", "two_modes", "noise", "outliers",
    "no_interval", "few_samples",
    "over_budget", "max_seconds_reached", "not_captured",
)  # fmt: skip
"""Warnings about the measurement: figures that cannot be had from it."""
_DISPATCH_SHARE: Final = 0.5
"""Share of a call on an accelerator from which its dispatch is what it takes."""
_SLOW_STAGES: Final = {
    "autotuning": ("slow-autotuning", 0.3, 1.0),
    "PTX": ("slow-ptx", 0.3, 1.0),
    "LLVM": ("slow-llvm", 0.5, 5.0),  # it is most of every compile for a CPU: only where someone waits for it
}
"""XLA's stages that can be shortened: code, and the share of a compile and the seconds from which they are findings."""
_FOLDING: Final = "constant_folding"
_FOLDING_SHARE: Final = 0.3
_FOLDING_SECONDS: Final = 1.0
_MORE_LAUNCHES: Final = 10
_KERNELS_NAMED: Final = 3


def run_findings(session: Session, run: Run, name: str, baselines: Set[str]) -> Iterator[RankedFinding]:
    """Failures and warnings of a run that someone has to act on. `baselines` are the runs that others are compared
    with."""
    verify = run_verified(name, run)
    if run.shown.status not in ("ok", "running", "queued", "cancelled"):
        yield _failure(session, run, verify)
    for warning in result(session, run.id).warnings:
        if warning.code in _TO_CHANGE and run.id in baselines:
            continue  # a baseline is there to be compared with, and not to be changed
        if warning.code in _FAULTS + _TO_CHANGE:
            yield RankedFinding(
                code=warning.code,
                message=warning.message,
                fix=warning.advice,
                cost=FindingCost(scope="call"),
                verify=verify,
                run=run.id,
                fault=warning.code in _FAULTS,
            )


def call_findings(session: Session, run: Run, name: str) -> Iterator[RankedFinding]:
    """What the phases of a run show: calls that only dispatch, copies that outweigh the work, slow parts of a compile.
    Of a CPU, which runs small programs inside their call and copies nothing, only the compile is told."""
    figures, verify = result(session, run.id), run_verified(name, run)
    summary = figures.summary
    if summary is not None and run.plan.device.partition(":")[0] not in ("cpu", "host", "numpy"):
        dispatch = figures.dispatch_median_seconds
        if dispatch is not None and dispatch >= _DISPATCH_SHARE * summary.median:
            yield _of_call(
                "dispatch-bound-call", run, verify, dispatch, summary.median,
                f"a call takes {seconds(summary.median)}, and {seconds(dispatch)} of it until it returns: the host "
                "takes longer to start the work than the device to do it",
            )  # fmt: skip
        moved = [name for name in figures.transfers if name in run.phases and not run.phases[name].zero_copy]
        copying = sum(figures.transfers[name].median for name in moved)
        if copying > summary.median:
            yield _of_call(
                "copies-outweigh-work", run, verify, copying, summary.median + copying,
                f"copying the arguments in and the result out takes {seconds(copying)}, the call "
                f"{seconds(summary.median)}",
            )  # fmt: skip
    if run.compile_passes is not None:
        tree = run.compile_passes.tree
        for stage in stage_times(tree):
            code, share, least = _SLOW_STAGES.get(stage.stage, ("", 0.0, 0.0))
            if code and tree.seconds > 0 and stage.seconds >= max(share * tree.seconds, least):
                threads = ", on all threads together," if stage.seconds > tree.seconds else ""
                yield _of_call(
                    code, run, verify, min(stage.seconds, tree.seconds), tree.seconds,
                    f"{stage.stage} took {seconds(stage.seconds)}{threads} of a compile of {seconds(tree.seconds)}",
                    "compile",
                )  # fmt: skip
        folding = sum(node.self_seconds for node in passes_in(tree) if node.name.replace("-", "_") == _FOLDING)
        if tree.seconds > 0 and folding >= max(_FOLDING_SHARE * tree.seconds, _FOLDING_SECONDS):
            yield _of_call(
                "slow-constant-folding", run, verify, min(folding, tree.seconds), tree.seconds,
                f"the pass {_FOLDING} took {seconds(folding)} of a compile of {seconds(tree.seconds)}", "compile",
            )  # fmt: skip


def _of_call(
    code: str, run: Run, verify: str, took: float, whole: float, message: str, scope: Scope = "call"
) -> RankedFinding:
    cost = FindingCost(scope=scope, seconds=took, share=took / whole, at_most=True)
    return RankedFinding(code=code, message=message, fix=find_entry(code).fix, cost=cost, verify=verify, run=run.id)


def _failure(session: Session, run: Run, verify: str) -> RankedFinding:
    picture = buffers_of(session, run.id)
    asked = picture.asked_bytes if picture is not None else None
    largest = [buffer for buffer in picture.buffers[:_KERNELS_NAMED] if buffer.instruction] if picture else []
    named = "; largest buffers: " + ", ".join(f"{each.instruction} {bytes_(each.bytes)}" for each in largest)
    end = run.shown
    error = end.error.partition("\n")[0] or end.status
    return RankedFinding(
        code="run-failed" if asked is None else "out-of-memory",
        message=f"{run.label} {end.status}: {error}" + (named if asked is not None and largest else ""),
        fix=end.advice or "Mend what the error names, and run it again.",
        cost=FindingCost(scope="call", bytes=asked, held=True),
        verify=verify,
        run=run.id,
        kernels=tuple(each.instruction for each in largest) if asked is not None else (),
        fault=True,
    )


def run_abstentions(session: Session, runs: Sequence[Run], name: str) -> Iterator[Abstention]:
    """What the measured runs cannot tell, those of one kind together."""
    doubted: dict[str, list[tuple[Run, str]]] = {}
    for run in runs:
        for warning in result(session, run.id).warnings:
            if warning.code in _DOUBTS:
                doubted.setdefault(warning.code, []).append((run, warning.message))
    for code in _DOUBTS:
        if code in doubted:
            (run, message), *others = doubted[code]
            also = f"; also {', '.join(each.id for each, _ in others)}" if others else ""
            yield Abstention(code, f"{run.id} {run.label}: {message}{also}", measured_longer(name, run))


def measured_longer(name: str, run: Run, launches: int = _MORE_LAUNCHES) -> str:
    """Measures a run again in more processes; of a side, its whole comparison."""
    if run.plan.how in ("compile", "imported", "program"):
        return ""
    return command("run", "--from", name if run.plan.side else f"{name}:{run.id}", "--launches", str(launches))


def captured_too(session: Session, run: Run) -> str:
    """Measures a run again with its kernels; of a side, the comparison as it was typed, with `--capture`."""
    if run.plan.side:
        words = session.header.command[1:]
        return command(*words, "--capture") if words[:1] == ["ab"] else ""
    settings = [] if run.plan.target else [f"{key}={value}" for key, value in run.plan.parameters.items()]
    return command(
        "run",
        run.plan.target or run.plan.workload,
        *("--variant", run.plan.variant),
        *(word for setting in settings for word in ("--set", setting)),
        *(word for argument in run.plan.arguments for word in ("--arg", argument)),
        *(("--device", run.plan.device) if run.plan.device != "cpu:0" else ()),
    )


def side_findings(compared: AbResult, name: str) -> Iterator[RankedFinding]:
    """The sides of a comparison that are slower than A, with the kernels that grew."""
    first = compared.sides[0].summary
    for versus in compared.versus:
        if versus.verdict == "slower" and first is not None:
            yield _slower(compared, versus, first.median, name)


def _slower(compared: AbResult, versus: AbVersus, median: float, name: str) -> RankedFinding:
    times, own = versus.times, _of_side(compared, versus)
    here = own.summary.median if own is not None and own.summary is not None else None
    (pair,) = compared.difference(versus).runs
    matched = pair.difference.kernels
    grown = [row for row in (matched.rows if matched is not None else ()) if (row.part_seconds or 0.0) > 0]
    grown = sorted(grown, key=lambda row: -(row.part_seconds or 0.0))[:_KERNELS_NAMED]
    changed = [row.name for row in (matched.rows if matched is not None else ()) if row.status in ("new", "changed")]
    more = ", ".join(f"{row.name} +{seconds(row.part_seconds)}" for row in grown)
    others = f"new or changed kernels: {integer(len(changed))}" if changed else "its kernels are the same"
    low, high = times.low, times.high
    words = ratio_interval(times.ratio, low, high) if times.ratio is not None else ""
    return RankedFinding(
        code="slower",
        message=f"{versus.label} is slower than A: {words} as fast; {f'kernels that grew: {more}' if more else others}",
        fix="Keep A, or mend these kernels: jaxprof compare shows what changed in each.",
        cost=FindingCost(
            scope="call",
            seconds=None if here is None else max(0.0, here - median),
            low=None if high is None or high <= 0 else max(0.0, median / high - median),
            high=None if low is None or low <= 0 else max(0.0, median / low - median),
            share=None if times.ratio is None else max(0.0, 1 - times.ratio),
            saves_seconds=None if here is None else max(0.0, here - median),
        ),
        verify=command("run", "--from", name),
        run=versus.run.id,
        kernels=tuple(row.name for row in grown) or tuple(changed[:_KERNELS_NAMED]),
    )


def _of_side(compared: AbResult, versus: AbVersus) -> RunResult | None:
    return next((side for side in compared.sides if side.run is versus.run), None)


def side_abstentions(compared: AbResult, name: str) -> Iterator[Abstention]:
    """Comparisons without a verdict, and how many launches would decide them."""
    for versus in compared.versus:
        if versus.verdict == "inconclusive":
            launches = versus.times.launches + (versus.times.launches_to_decide() or _MORE_LAUNCHES)
            yield Abstention(
                "inconclusive",
                f"whether {versus.label} is faster than A: {versus.reason or 'the interval holds both'}",
                measured_longer(name, versus.run, min(100, launches)),
            )
