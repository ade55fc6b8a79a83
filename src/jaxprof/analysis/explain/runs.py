"""Findings of measured runs (failures, wrong results, slower sides) and of captures (where the time of the devices'
steps went), and what they leave unknown. Imports the statistics, which a session with only a program does not need."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

from jaxprof.analysis.explain.model import (
    MOST_MODULES,
    Abstention,
    Subject,
    command,
    compared_again,
    program_verified,
    run_verified,
)
from jaxprof.analysis.kernels.measured import measured, passes_in, stage_times, whole_profile
from jaxprof.analysis.kernels.memory import memory_of_run
from jaxprof.analysis.opener import module_of
from jaxprof.analysis.runs.ab import AbResult, ab_results
from jaxprof.analysis.runs.run_result import result
from jaxprof.analysis.timeline.profile import causes_text, device_steps
from jaxprof.base.grouping import grouped
from jaxprof.base.units import bytes_, counted, integer, percent, seconds
from jaxprof.finding import Finding, Scope
from jaxprof.session.run import IMPORTED

if TYPE_CHECKING:
    from jaxprof.analysis.programs.result import ProgramResult
    from jaxprof.analysis.runs.speedup import AbVersus
    from jaxprof.events import TrustCheck, WarningRaised
    from jaxprof.session import Run, Session

_FAULTS = ("wrong_result", "unlike_results", "results_differ", "folded_constants", "dead_code")
"""Warnings that make the times meaningless."""
_TO_CHANGE = ("compiled_again", "dtype_narrowed", "page_faults")
"""Warnings about the program that leave its times right."""
_DOUBTS = (
    "throttled", "busy_machine", "disturbed", "not_of_medians", "unsettled", "drift", "two_modes", "noise", "outliers",
    "no_interval", "few_samples",
    "over_budget", "max_seconds_reached", "not_captured",
)  # fmt: skip
"""Warnings about the measurement, each about figures that it cannot provide."""
_DISPATCH_SHARE = 0.5
"""Share of a call on an accelerator from which the call is bound by its dispatch."""
_FOLDING = "constant_folding"
_SLOW_PARTS = {
    "autotuning": ("slow_autotuning", 0.3, 1.0),
    "PTX": ("slow_ptx", 0.3, 1.0),
    "LLVM": ("slow_llvm", 0.5, 5.0),  # LLVM is most of every compilation for a CPU, so only long ones are reported
    f"the pass {_FOLDING}": ("slow_constant_folding", 0.3, 1.0),
}
"""What of XLA can be shortened: finding code, and the smallest share of a compilation and seconds reported."""
_MORE_LAUNCHES = 10
_KERNELS_NAMED = 3
_Items: TypeAlias = "Iterator[Finding | Abstention]"


def explained_runs(
    session: Session, program: ProgramResult | None, name: str
) -> tuple[Subject, list[Finding | Abstention]]:
    """Return what the measured runs and the profiles of a session are, and the findings about them. `program`: the one
    whose capture windows the profiles are, if it has one."""
    compared = ab_results(session)
    runs = [run for run in session.runs.values() if run.plan.how != IMPORTED and not run.is_program]
    return "comparison" if compared else "runs" if runs else "profile", [
        *_of_profiles(session, program, name),
        *(item for result in compared for item in side_items(result, name)),
        *_of_runs(session, runs, name),
    ]


def run_findings(session: Session, run: Run, name: str, baselines: Set[str]) -> Iterator[Finding]:
    """Yield the failures and warnings of a run that need action. `baselines` are the runs that others are compared
    with."""
    verify = run_verified(session, name, run)
    if run.shown.status not in ("ok", "running", "queued", "cancelled"):
        yield _failure_finding(session, run, verify)
    for warning in result(session, run.id).warnings:
        if warning.code in _TO_CHANGE and run.id in baselines:
            continue  # a baseline serves for comparison, and is not to be changed
        if warning.code in _FAULTS + _TO_CHANGE:
            yield replace(warned(warning), verify=verify, run=run.id, fault=warning.code in _FAULTS)


def warned(warning: WarningRaised) -> Finding:
    """Return a warning about a run as a finding, whose cost is unknown."""
    return Finding(warning.code, warning.message, own_fix=warning.advice, scope="call")


def call_findings(session: Session, run: Run, name: str) -> Iterator[Finding]:
    """Yield what the phases of a run show: calls that only dispatch, copies that outweigh the work, slow compilation
    parts.

    For a CPU, which runs small programs inside their call and copies nothing, only the compilation is examined.
    """
    figures, verify = result(session, run.id), run_verified(session, name, run)
    summary = figures.summary
    if summary is not None and run.plan.device.partition(":")[0] not in ("cpu", "host", "numpy"):
        dispatch = figures.dispatch_median_seconds
        returns_array = "transfer_out" in run.phases  # a call that copies its result to the host waits for the device
        if dispatch is not None and dispatch >= _DISPATCH_SHARE * summary.median and returns_array:
            yield _call_finding(
                "dispatch_bound_call", run, verify, dispatch, summary.median,
                f"a call takes {seconds(summary.median)}, and {seconds(dispatch)} of it until it returns: the host "
                "takes longer to start the work than the device to do it",
            )  # fmt: skip
        moved = [name for name in figures.transfers if name in run.phases and not run.phases[name].zero_copy]
        copying = sum(figures.transfers[name].median for name in moved)
        if copying > summary.median:
            yield _call_finding(
                "copies_outweigh_work", run, verify, copying, summary.median + copying,
                f"copying the arguments in and the result out takes {seconds(copying)}, the call "
                f"{seconds(summary.median)}",
            )  # fmt: skip
    if run.compile_passes is not None:
        tree = run.compile_passes.tree
        folding = sum(node.self_seconds for node in passes_in(tree) if node.name.replace("-", "_") == _FOLDING)
        spent = [*((stage.stage, stage.seconds) for stage in stage_times(tree)), (f"the pass {_FOLDING}", folding)]
        for part, took in spent:
            code, share, least = _SLOW_PARTS.get(part, ("", 0.0, 0.0))
            if code and tree.seconds > 0 and took >= max(share * tree.seconds, least):
                threads = ", on all threads together," if took > tree.seconds else ""
                yield _call_finding(
                    code, run, verify, min(took, tree.seconds), tree.seconds,
                    f"{part} took {seconds(took)}{threads} of a compile of {seconds(tree.seconds)}", "compile",
                )  # fmt: skip


def _call_finding(
    code: str, run: Run, verify: str, took: float, whole: float, message: str, scope: Scope = "call"
) -> Finding:
    share = took / whole
    return Finding(code, message, scope=scope, seconds=took, share=share, at_most=True, verify=verify, run=run.id)


def _failure_finding(session: Session, run: Run, verify: str) -> Finding:
    picture = memory_of_run(session, run.id)
    requested = picture.asked_bytes if picture is not None else None
    largest = [buffer for buffer in picture.buffers[:_KERNELS_NAMED] if buffer.instruction] if picture else []
    named = "; largest buffers: " + ", ".join(f"{each.instruction} {bytes_(each.bytes)}" for each in largest)
    end = run.shown
    error = end.error.partition("\n")[0] or end.status
    return Finding(
        "run_failed" if requested is None else "out_of_memory",
        f"{run.label} {end.status}: {error}" + (named if requested is not None and largest else ""),
        own_fix=end.hint or None,
        scope="call",
        bytes=requested,
        held=True,
        verify=verify,
        run=run.id,
        kernels=tuple(each.instruction for each in largest) if requested is not None else (),
        fault=True,
    )


def run_abstentions(session: Session, runs: Sequence[Run], name: str) -> Iterator[Abstention]:
    """Yield what the measured runs leave unknown; runs with the same warning share one entry, which names one under
    `jax.jit` if there is one."""
    jitted_first = sorted(runs, key=lambda run: run.plan.how != "jit")
    doubted = grouped(
        (warning.code, (run, warning.message)) for run in jitted_first for warning in result(session, run.id).warnings
    )
    for code in _DOUBTS:
        if code in doubted:
            (run, message), *others = doubted[code]
            also = f"; also {', '.join(each.id for each, _ in others)}" if others else ""
            yield Abstention(code, f"{run.id} {run.label}: {message}{also}", measured_longer(session, name, run))


def measured_longer(session: Session, name: str, run: Run, launches: int = _MORE_LAUNCHES) -> str:
    """Return the command that measures a run again in more processes; for a side, the comparison's command."""
    more = ("--launches", str(launches))
    if run.plan.side:
        return compared_again(session, *more)
    if run.plan.how in ("compile", "imported", "program"):
        return ""
    return command("run", "--from", f"{name}:{run.id}", *more)


def captured_too(session: Session, run: Run) -> str:
    """Return the command that measures a run again with its kernels; for a side, the comparison's command with
    `--capture`."""
    if run.plan.side:
        return compared_again(session, "--capture")
    settings = [] if run.plan.target else [f"{key}={value}" for key, value in run.plan.parameters.items()]
    return command(
        "run",
        run.plan.target or run.plan.workload,
        *("--variant", run.plan.variant),
        *(word for setting in settings for word in ("--set", setting)),
        *(word for argument in run.plan.arguments for word in ("--arg", argument)),
        *("--device", run.plan.device),
    )


def side_items(compared: AbResult, name: str) -> Iterator[Finding | Abstention]:
    """Yield the sides of a comparison that are slower than A, with the kernels that grew; and for a side without a
    verdict how many launches would decide it."""
    first = compared.sides[0].summary
    for versus in compared.versus:
        if versus.times.verdict == "slower" and first is not None:
            yield _slower_finding(compared, versus, first.median)
        elif versus.times.verdict == "inconclusive":
            question = "is as fast as A" if versus.times.is_near else "is faster than A"
            launches = versus.times.launches + (versus.times.launches_to_decide or _MORE_LAUNCHES)
            yield Abstention(
                "inconclusive",
                f"whether {versus.label} {question}: {versus.times.reason or 'the interval holds both'}",
                measured_longer(compared.session, name, versus.run, min(100, launches)),
            )


def _slower_finding(compared: AbResult, versus: AbVersus, median: float) -> Finding:
    times = versus.times
    own = next((side for side in compared.sides if side.run is versus.run), None)
    median_seconds = own.summary.median if own is not None and own.summary is not None else None
    (pair,) = compared.difference(versus).runs
    matched = pair.kernels
    grown = [row for row in (matched.rows if matched is not None else ()) if (row.part_seconds or 0.0) > 0]
    grown = sorted(grown, key=lambda row: -(row.part_seconds or 0.0))[:_KERNELS_NAMED]
    changed = [row.name for row in (matched.rows if matched is not None else ()) if row.status in ("new", "changed")]
    more = ", ".join(f"{row.name} +{seconds(row.part_seconds)}" for row in grown)
    others = f"new or changed kernels: {integer(len(changed))}" if changed else "its kernels are the same"
    low, high = times.low, times.high
    cost = None if median_seconds is None else max(0.0, median_seconds - median)
    return Finding(
        "slower",
        f"{versus.label} is slower than A: {times.ratio_text} as fast; "
        + (f"kernels that grew: {more}" if more else others),
        scope="call",
        seconds=cost,
        low=None if high is None or high <= 0 else max(0.0, median / high - median),
        high=None if low is None or low <= 0 else max(0.0, median / low - median),
        share=None if times.ratio is None else max(0.0, 1 - times.ratio),
        saves_seconds=cost,
        verify=compared_again(compared.session),
        run=versus.run.id,
        kernels=tuple(row.name for row in grown) or tuple(changed[:_KERNELS_NAMED]),
    )


_WORTH = 0.1
"""Share of the steps from which a part of them is reported."""
_DOUBTED_CHECKS = (
    "no_kernels", "lost_kernels", "clock", "file", "profiler_error", "dropped", "unmatched", "modules", "slowdown",
    "sum", "unrecorded", "compile", "uneven_steps", "attribution",
)  # fmt: skip
"""Trust checks about figures that are unavailable; the others qualify figures that are shown next to them."""


_IDLE_FIXES = {
    "compile": "Compile before the steps: the same shapes, dtypes and function objects from the first step on "
    "(jaxprof script FILE.py names what compiled again, and why).",
    "copy": "Place what stays the same on the device once, copy the next batch while the device works (jax.device_put "
    "ahead of the step), and fetch results less often.",
    "launch": "Give each call more to do: several steps in lax.scan, fewer and larger arrays as arguments.",
    "wait": "Do not block in every step: keep results as arrays, and fetch them every N steps or after the loop.",
    "host": "Do it while the device works: prepare the next batch in a thread, worker processes or a queue, and log, "
    "plot or save less often.",
}
"""Fix for the longest cause."""
_IDLE = "device_idle"
"""Part that only a capture of a whole program can show: calls that are measured one by one wait on purpose. What the
host did meanwhile is its cause."""
_PARTS = (
    (_IDLE, "the device waited", "idle"),
    ("launch_gaps", "gaps between kernels", "launch_gaps"),
    ("exposed_collectives", "waiting for collectives", "collectives_exposed"),
    ("copies_in_steps", "only copying to or from the host", "transfers"),
)
"""Code, words, and field of `StepParts`."""


def step_findings(run: Run, scope: Scope, verify: str, *, whole_program: bool) -> Iterator[Finding]:
    """Yield what the steps of an accelerator's capture spent besides kernels. CPUs are left out, because time between
    two recorded ops may be an op that the runtime does not record."""
    steps = run.steps
    if steps is None or all(capture.platform in ("", "cpu") for capture in run.captures.values()):
        return
    if any(_may_fake_idle_time(row) for event in run.trust.values() for row in event.rows):
        return
    by_device = grouped((step.device, step) for step in steps.steps if step.complete)
    found_by = {device.device: device.found_by or steps.found_by for device in steps.devices}
    for code, words, part in _PARTS:
        if code == _IDLE and not whole_program:
            continue
        shares = {
            device: (sum(getattr(step.parts, part) for step in own), sum(step.seconds for step in own), len(own))
            for device, own in by_device.items()
            if found_by.get(device, steps.found_by) != "whole"
        }
        known = {device: took / whole for device, (took, whole, _) in shares.items() if whole > 0}
        device = max(known, key=lambda name: known[name], default="")
        if not device or known[device] < _WORTH:
            continue
        took, _, count = shares[device]
        step_seconds = took / count
        others = sum(share >= _WORTH for share in known.values()) - 1
        beside = f" and {counted(others, 'more device')}" if others else ""
        causes = next((each.idle_causes for each in steps.devices if each.device == device and code == _IDLE), ())
        meanwhile = f"; meanwhile the host: {causes_text(causes)}" if causes else ""
        yield Finding(
            code,
            f"{words}: {seconds(step_seconds)} of each step on {device}{beside}, {percent(known[device])} of "
            f"{counted(count, 'step')}{meanwhile}",
            own_fix=_IDLE_FIXES.get(causes[0].cause) if causes else None,
            scope="call" if scope == "call" else "steps",
            seconds=step_seconds if scope == "call" else took,
            share=known[device],
            verify=verify,
            run=run.id,
        )


def _may_fake_idle_time(row: TrustCheck) -> bool:
    """Return whether pauses of the device may be missing kernels, or kernels at a wrong time."""
    return (row.code == "lost_kernels" and row.verdict != "good") or (row.code == "clock" and row.verdict == "bad")


def capture_abstentions(run: Run, name: str) -> Iterator[Abstention]:
    """Yield the worst reason to doubt a capture, and how many more the view of its trust has."""
    doubts = [row for event in run.trust.values() for row in event.rows if row.verdict in ("bad", "doubt")]
    rows = [row for row in doubts if row.code in _DOUBTED_CHECKS and (row.code, row.verdict) != ("clock", "doubt")]
    if rows:
        row = min(rows, key=lambda row: (row.verdict != "bad", _DOUBTED_CHECKS.index(row.code)))
        more = f" ({counted(len(doubts) - 1, 'more doubt')})" if len(doubts) > 1 else ""
        reason = f"whether the capture of {run.id} can be trusted: {row.message}{more}"
        yield Abstention(row.code, reason, command("open", name, "--run", run.id, "--trust"))


def _of_profiles(session: Session, program: ProgramResult | None, name: str) -> _Items:
    """Yield what a profile shows, or the capture windows of a recorded program. The kernels of capture windows are a
    part of the program's device time."""
    imported = [run for run in session.runs.values() if run.plan.how == IMPORTED]
    if not imported:
        return
    scope: Scope = "profile" if program is None else "program"
    verify = command("explain", name) if program is None else program_verified(name, program)
    kernels = whole_profile(session)
    whole = sum(kernel.self_seconds for kernel in kernels)
    devices = len({device for kernel in kernels for device in kernel.devices}) or 1
    seconds = whole / devices if program is None else program.states["device_busy"]
    spans = (device.span_seconds for run in imported for device in device_steps(run.steps))
    span = max((each for each in spans if each is not None), default=None)
    with_hlo = 0
    for run in imported:
        yield from capture_abstentions(run, name)
        if program is None or run.steps is not None:
            yield from step_findings(run, scope, verify, whole_program=program is None)
        module = module_of(session, run) if with_hlo < MOST_MODULES else None
        of_run = measured(session, run.id)
        if module is None or of_run is None:
            continue
        from jaxprof.analysis.explain.modules import KernelWeights, module_findings

        with_hlo += 1
        shares = {kernel.name: kernel.self_seconds / whole for kernel in reversed(of_run.kernels) if whole > 0}
        whole_seconds = span if program is None else program.wall_seconds
        weights = KernelWeights(
            scope=scope, shares=shares, seconds=seconds, scope_seconds=whole_seconds, estimate=program is not None
        )
        yield from module_findings(session, module, weights, run, verify=verify)
    if not with_hlo:
        yield Abstention("no_hlo", "no HLO in the profile: its kernels have times, and no findings")


def _of_runs(session: Session, runs: Sequence[Run], name: str) -> _Items:
    read = 0
    baselines = {run.plan.baseline for run in session.runs.values() if run.plan.baseline != run.id}
    for run in runs:
        yield from run_findings(session, run, name, baselines)
        yield from call_findings(session, run, name)
        module = module_of(session, run) if read < MOST_MODULES else None
        if module is None:
            continue
        from jaxprof.analysis.explain.modules import module_findings, weights_of_call

        read += 1
        weights = weights_of_call(session, run, module)
        verify = run_verified(session, name, run)
        yield from step_findings(run, "call", verify, whole_program=False)
        yield from module_findings(session, module, weights, run, verify=verify)
        yield from capture_abstentions(run, name)
    uncaptured = [run for run in runs if run.plan.how == "jit" and run.status == "ok" and not run.measured]
    if uncaptured:
        first = uncaptured[0]
        others = f" and {len(uncaptured) - 1} more" if len(uncaptured) > 1 else ""
        reason = f"{first.id} {first.label}{others}: no capture, so the times of kernels are unknown"
        again = measured_longer(session, name, first) if first.plan.capture else captured_too(session, first)
        yield Abstention("no_capture", reason, again)
    yield from run_abstentions(session, runs, name)
