"""Findings of measured runs (failures, wrong results, slower sides) and of captures (where the time of the devices'
steps went), and what they leave unknown. Imports the statistics, which a session with only a program does not need."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

from jaxprof.analysis.kernels import module_of
from jaxprof.analysis.kernels.measured import capture_of, passes_in, stage_times
from jaxprof.analysis.runs.ab import AbResult, ab_results
from jaxprof.analysis.runs.run_result import result
from jaxprof.analysis.runs.speedup import AbVersus
from jaxprof.analysis.runs.warnings import ENTRIES as WARNINGS
from jaxprof.analysis.target import command
from jaxprof.base.grouping import grouped
from jaxprof.base.units import integer, seconds
from jaxprof.events import WarningRaised
from jaxprof.events.finding import CatalogueEntry, Finding, Scope
from jaxprof.findings import (
    MOST_MODULES,
    Abstention,
    Subject,
    code_line,
    comparison_command,
    program_verification,
    run_verification,
)
from jaxprof.findings.captures import capture_abstentions, compile_findings, separate_programs, step_findings
from jaxprof.session import Run, Session
from jaxprof.session.run import IMPORTED

if TYPE_CHECKING:
    from jaxprof.analysis.programs.result import ProgramResult

_EFFECTS = {entry.code: entry.effect for entry in WARNINGS}
_DISPATCH_SHARE = 0.5
"""Share of a call on an accelerator from which the call is bound by its dispatch."""
_run = partial(CatalogueEntry, source="run", page="measuring.md#what-warnings-the-engine-raises")
_FOLDING = "constant_folding"
_SLOW_PARTS = {
    "autotuning": (_run("slow_autotuning", "XLA tries out kernels while compiling",
            "The autotuner runs candidates of GEMMs, convolutions and fusions on the device, which can be most of a "
            "compile.",
            "Keep its results: the persistent compilation cache does. XLA_FLAGS=--xla_gpu_autotune_level=0 switches it "
            "off, and slower kernels may be chosen.", page="traces.md#compiles"), 0.3, 1.0),
    # LLVM is most of every compilation for a CPU, so only long ones are reported.
    "LLVM": (_run("slow_llvm", "LLVM takes most of a compile",
            "LLVM generates the machine code of each kernel, which takes long for large fusions and many kernels, "
            "especially on a CPU.",
            "For a program that compiles longer than it runs XLA_FLAGS=--xla_backend_optimization_level=0 lets LLVM do "
            "less: the compile is shorter, and the program may run slower. The persistent compilation cache keeps the "
            "result; a scan in place of a Python loop makes fewer kernels.", page="traces.md#compiles"), 0.5, 5.0),
    f"the pass {_FOLDING}": (_run("slow_constant_folding", "XLA computes constants while compiling",
            "What follows from constants alone is computed by the compiler, slowly: large closed-over arrays, or large "
            "iotas and tables.",
            "Pass the arrays as arguments. XLA_FLAGS=--xla_disable_hlo_passes=constant_folding switches the pass off: "
            "then each call computes them.", page="traces.md#compiles"), 0.3, 1.0),
    "PTX": (_run("slow_ptx", "assembling the kernels takes long",
            "ptxas turns each kernel's PTX into machine code; large kernels, and many of them, take long.",
            "The persistent compilation cache keeps the result; unrolled loops and huge fusions make PTX large.",
            page="traces.md#compiles"), 0.3, 1.0),
}  # fmt: skip
"""What of XLA can be shortened: the finding, and the smallest share of a compilation and seconds reported."""
_MORE_LAUNCHES = 10
_KERNELS_NAMED = 3
_Items: TypeAlias = "Iterator[Finding | Abstention]"


def explain_runs(
    session: Session, program: ProgramResult | None, name: str
) -> tuple[Subject, list[Finding | Abstention]]:
    """Return what the measured runs and the profiles of a session are, and the findings about them. `program`: the one
    whose capture windows the profiles are, if it has one."""
    compared = ab_results(session)
    runs = [run for run in session.runs.values() if run.plan.how != IMPORTED and not run.is_program]
    sides = [item for result in compared for item in side_items(result, name)]
    of_runs: _Items = _of_runs(session, runs, name)
    if any(item.code == OTHER_COMPILER for item in sides):  # what both sides have does not make them differ
        of_runs = (item for item in of_runs if isinstance(item, Abstention) or item.fault)
    subject: Subject = "runs" if runs else "profile"
    if compared:
        subject = "comparison"
    return subject, [*_of_profiles(session, program, name), *sides, *of_runs]


def run_findings(session: Session, run: Run, name: str, baselines: Set[str]) -> Iterator[Finding]:
    """Yield the failures and warnings of a run that need action. `baselines` are the runs that others are compared
    with."""
    verify = run_verification(session, name, run)
    if run.shown.status not in ("ok", "running", "queued", "cancelled"):
        yield _failure_finding(session, run, verify)
    for warning in result(session, run.id).warnings:
        effect = _EFFECTS.get(warning.code)
        # a baseline serves for comparison, and is not to be changed
        if effect == "fault" or (effect == "change" and run.id not in baselines):
            yield replace(warning_finding(warning), verify=verify, run=run.id, fault=effect == "fault")


def warning_finding(warning: WarningRaised) -> Finding:
    """Return a warning about a run as a finding, whose cost is unknown."""
    return Finding(warning.message, own_fix=warning.advice, scope="call", code=warning.code)


_DISPATCH_BOUND = _run("dispatch_bound_call", "a call takes as long to start as to run",
    "On an accelerator the call returns before its work is done. Where returning takes most of a call, the host "
    "is what limits it.",
    "Give one call more to do (lax.scan, vmap), pass fewer arrays, or call it ahead without waiting.",
    page="measuring.md#the-phases")  # fmt: skip
_COPIES = _run("copies_outweigh_work", "copies take longer than the call",
    "Copying the arguments to the device and the result back takes longer than the call itself.",
    "Keep arrays on the device between calls, and let it do more with each copy.",
    page="measuring.md#the-phases")  # fmt: skip


def call_findings(session: Session, run: Run, name: str) -> Iterator[Finding]:
    """Yield what the phases of a run show: calls that only dispatch, copies that outweigh the work, slow compilation
    parts.

    For a CPU, which runs small programs inside their call and copies nothing, only the compilation is examined.
    """
    figures, verify = result(session, run.id), run_verification(session, name, run)
    summary = figures.summary
    if summary is not None and run.plan.device.partition(":")[0] not in ("cpu", "host", "numpy"):
        dispatch = figures.dispatch_median_seconds
        returns_array = "transfer_out" in run.phases  # a call that copies its result to the host waits for the device
        if dispatch is not None and dispatch >= _DISPATCH_SHARE * summary.median and returns_array:
            yield _call_finding(
                _DISPATCH_BOUND, run, verify, dispatch, summary.median,
                f"a call takes {seconds(summary.median)}, and {seconds(dispatch)} of it until it returns: the host "
                "takes longer to start the work than the device to do it",
            )  # fmt: skip
        moved = [name for name in figures.transfers if name in run.phases and not run.phases[name].zero_copy]
        copying = sum(figures.transfers[name].median for name in moved)
        if copying > summary.median:
            yield _call_finding(
                _COPIES, run, verify, copying, summary.median + copying,
                f"copying the arguments in and the result out takes {seconds(copying)}, the call "
                f"{seconds(summary.median)}",
            )  # fmt: skip
    if run.compile_passes is not None:
        tree = run.compile_passes.tree
        folding = sum(node.self_seconds for node in passes_in(tree) if node.name.replace("-", "_") == _FOLDING)
        spent = [*((stage.stage, stage.seconds) for stage in stage_times(tree)), (f"the pass {_FOLDING}", folding)]
        for part, took in spent:
            entry, share, least = _SLOW_PARTS.get(part, (None, 0.0, 0.0))
            if entry is not None and tree.seconds > 0 and took >= max(share * tree.seconds, least):
                threads = ", on all threads together," if took > tree.seconds else ""
                yield _call_finding(
                    entry, run, verify, min(took, tree.seconds), tree.seconds,
                    f"{part} took {seconds(took)}{threads} of a compile of {seconds(tree.seconds)}", "compile",
                )  # fmt: skip


def _call_finding(
    entry: CatalogueEntry, run: Run, verify: str, took: float, whole: float, message: str, scope: Scope = "call"
) -> Finding:
    found = Finding(message, scope=scope, seconds=took, share=took / whole, at_most=True, verify=verify, run=run.id)
    return entry.complete(found)


_FAILED = _run("run_failed", "a run failed",
    "It ended with an error, crashed or ran past its limit: there are no times, or not all of them.",
    "Fix what its error names, and run it again.")  # fmt: skip


def _failure_finding(session: Session, run: Run, verify: str) -> Finding:
    from jaxprof.analysis.kernels.memory import memory_of_run

    picture, end = memory_of_run(session, run.id), run.shown
    error = f"{run.label} {end.text.splitlines()[0]}"
    if picture is None or picture.asked_bytes is None:
        fix = end.hint
        if run.cut_compile_seconds is not None and run.ended_seconds is not None:
            from jaxprof.findings.trials import shortening, work_text, xla_work

            function, compiled = run.plan.target or run.plan.workload, run.cut_compile_seconds
            work = xla_work(run, function.rpartition(":")[2], run.ended_seconds - compiled, run.ended_seconds)
            error += f"; it had been compiling for {seconds(compiled)}, {work_text(work)}"
            fix = " ".join(shortening(work, function)) or fix
        found = _FAILED.complete(Finding(error, own_fix=fix or None, scope="call", fault=True))
        return replace(found, held=True, verify=verify, run=run.id)
    from jaxprof.findings.out_of_memory import finding_of_run  # only for this failure

    found = finding_of_run(run, picture, error)
    return replace(found, verify=verify, run=run.id, code_line=code_line(found.where, session))


def run_abstentions(session: Session, runs: Sequence[Run], name: str) -> Iterator[Abstention]:
    """Yield what the measured runs leave unknown; runs with the same warning share one entry, which names one under
    `jax.jit` if there is one."""
    jitted_first = sorted(runs, key=lambda run: run.plan.how != "jit")
    doubted = grouped(
        (warning.code, (run, warning.message)) for run in jitted_first for warning in result(session, run.id).warnings
    )
    for code, effect in _EFFECTS.items():
        if effect == "doubt" and code in doubted:
            (run, message), *others = doubted[code]
            also = f"; also {', '.join(each.id for each, _ in others)}" if others else ""
            yield Abstention(code, f"{run.id} {run.label}: {message}{also}", longer_run_command(session, name, run))


def longer_run_command(session: Session, name: str, run: Run, launches: int = _MORE_LAUNCHES) -> str:
    """Return the command that measures a run again in more processes; for a side, the comparison's command."""
    more = ("--launches", str(launches))
    if run.plan.side:
        return comparison_command(session, *more)
    if run.plan.how in ("compile", "imported", "program"):
        return ""
    return command("run", "--from", f"{name}:{run.id}", *more)


def capture_command(session: Session, run: Run) -> str:
    """Return the command that measures a run again with its kernels; for a side, the comparison's command with
    `--capture`."""
    if run.plan.side:
        return comparison_command(session, "--capture")
    settings = [] if run.plan.target else [f"{key}={value}" for key, value in run.plan.parameters.items()]
    return command(
        "run",
        run.plan.target or run.plan.workload,
        *("--variant", run.plan.variant),
        *(word for setting in settings for word in ("--set", setting)),
        *(word for argument in run.plan.arguments for word in ("--arg", argument)),
        *("--device", run.plan.device),
    )


_comparison = partial(CatalogueEntry, source="comparison", page="comparing.md")
_SLOWER = _comparison("slower", "a side is slower", "Measured in turns with A, and slower.",
    "Keep A, or fix these kernels: jaxprof compare shows what changed in each.")  # fmt: skip
_INCONCLUSIVE = _comparison("inconclusive", "the comparison is undecided",
    "The interval of the ratio holds both faster and slower.", "More launches.")  # fmt: skip
_TRIED = _comparison("tried_and_faster", "a change was tried, and is faster",
    "Measured in turns with the program as it is, with the same results, or with others where the change means that.",
    "Make the change in the program.")  # fmt: skip


def side_items(compared: AbResult, name: str) -> Iterator[Finding | Abstention]:
    """Yield the sides of a comparison that are slower than A, with the kernels that grew; for a side without a verdict
    how many launches would decide it; and of changes that were tried the best."""
    from jaxprof.findings.trials import compile_seconds_beside_none, times_tried  # for comparisons alone

    first = compared.sides[0].summary
    better = [versus for versus in compared.versus if versus.run.plan.trial and _is_better(versus)]
    if better:
        yield _trial_finding(compared, max(better, key=lambda versus: times_tried(versus).ratio or 0.0))
    for versus in compared.versus:
        if versus.run.plan.trial and (versus.times.verdict == "slower" or versus.run.status != "ok"):
            continue  # what the side is called says so: nothing is to be changed
        if compile_seconds_beside_none(versus) is not None:
            continue  # more launches would end no compile of A
        if versus.times.verdict in ("faster", "slower") and (same := _same_program(compared, versus)) is not None:
            yield same
        elif versus.times.verdict == "slower" and first is not None:
            yield _slower_finding(compared, versus, first.median)
        elif versus.times.verdict == "inconclusive":
            question = "is as fast as A" if versus.times.is_near else "is faster than A"
            launches = versus.times.launches + (versus.times.launches_to_decide or _MORE_LAUNCHES)
            yield Abstention(
                _INCONCLUSIVE.code,
                f"whether {versus.label} {question}: {versus.times.reason or 'the interval holds both'}",
                longer_run_command(compared.session, name, versus.run, min(100, launches)),
            )


OTHER_COMPILER = "other_compiler"
_LEAST_KERNEL = 0.1
"""Share of the difference of all kernels' times from which a kernel is named."""


def _same_program(compared: AbResult, versus: AbVersus) -> Abstention | None:
    """Return that a side is the program of A as another compiler made it, with the times of the kernels that make the
    difference, or the command that captures them; None if anything else differs."""
    if versus.run.environment is None or compared.baseline.environment is None:
        return None
    if versus.run.environment.jaxlib == compared.baseline.environment.jaxlib:
        return None
    from jaxprof.findings.compare.session_difference import ab_difference, compilers_between  # reads the HLO of both

    difference = ab_difference(compared, versus)
    (pair,) = difference.runs
    versions = compilers_between(difference, pair)
    if not versions or pair.kernels is None:
        return None
    made = ", ".join(f"{row.code} {row.before} and {row.after}" for row in versions)
    alike = "whose HLO has the same kernels, cost and memory" if pair.differs is False else "whose HLO differs"
    reason = f"A and {versus.label} are the same program with other code from the compiler ({made}), {alike}: "
    reason += "nothing in the program makes the difference"
    whole, run = pair.kernels.difference_seconds, compared.baseline
    if whole is None:
        return Abstention(OTHER_COMPILER, reason, capture_command(compared.session, run), leads=True)
    rows = sorted(pair.kernels.rows, key=lambda row: -abs(row.part_seconds or 0.0))[:_KERNELS_NAMED]
    times = [
        f"{row.name} {seconds(row.before_seconds)} → {seconds(row.after_seconds)}"
        for row in rows
        if abs(row.part_seconds or 0.0) >= _LEAST_KERNEL * abs(whole)
    ]
    both = f"{seconds(pair.kernels.before_seconds)} → {seconds(pair.kernels.after_seconds)}"
    named = ", ".join(times) or "none of them makes a tenth of the difference"
    return Abstention(OTHER_COMPILER, f"{reason}; kernels of a call {both}: {named}", leads=True)


def _is_better(versus: AbVersus) -> bool:
    """Return whether a change that was tried is faster, and computes the same, or what it is meant to."""
    from jaxprof.findings.trials import compile_seconds_beside_none, times_tried, trial_of

    results = versus.run.results
    is_true = results is None or results.agree or (results.alike and trial_of(versus.run.plan.trial).other_numbers)
    is_faster = times_tried(versus).verdict == "faster" or compile_seconds_beside_none(versus) is not None
    return versus.run.status == "ok" and is_faster and is_true


def _trial_finding(compared: AbResult, versus: AbVersus) -> Finding:
    from jaxprof.findings.trials import compile_seconds_beside_none, times_tried, trial_of

    times, trial, run = times_tried(versus), trial_of(versus.run.plan.trial), versus.run
    first = compared.sides[0]
    whole = first.one_time_phases.get("compile") if trial.compiles else first.summary and first.summary.median
    saved = [whole * (1 - 1 / ratio) if whole and ratio else None for ratio in (times.ratio, times.low, times.high)]
    gain = f"the {'compile' if trial.compiles else 'call'} is {times.ratio_text} as fast"
    if (ends := compile_seconds_beside_none(versus)) is not None:
        gain = f"the compile takes {seconds(ends[0])}; without, it was not over after {seconds(ends[1])}"
    return Finding(
        f"with {trial.title} {gain}",
        tuple(run.trial.lines) if run.trial is not None else (),
        own_fix=trial.fix,
        scope="compile" if trial.compiles else "call",
        seconds=saved[0],
        low=saved[1],
        high=saved[2],
        share=saved[0] / whole if saved[0] and whole else None,
        saves_seconds=saved[0],
        verify=comparison_command(compared.session),
        run=compared.baseline.id,
        code=_TRIED.code,
    )


def _slower_finding(compared: AbResult, versus: AbVersus, median: float) -> Finding:
    times = versus.times
    own = next((side for side in compared.sides if side.run is versus.run), None)
    median_seconds = own.summary.median if own is not None and own.summary is not None else None
    from jaxprof.findings.compare.session_difference import ab_difference  # only where a side became slower

    (pair,) = ab_difference(compared, versus).runs
    matched = pair.kernels
    grown = [row for row in (matched.rows if matched is not None else ()) if (row.part_seconds or 0.0) > 0]
    grown = sorted(grown, key=lambda row: -(row.part_seconds or 0.0))[:_KERNELS_NAMED]
    changed = [row.name for row in (matched.rows if matched is not None else ()) if row.status in ("new", "changed")]
    more = ", ".join(f"{row.name} +{seconds(row.part_seconds)}" for row in grown)
    others = f"new or changed kernels: {integer(len(changed))}" if changed else "its kernels are the same"
    low, high = times.low, times.high
    cost = None if median_seconds is None else max(0.0, median_seconds - median)
    return Finding(
        f"{versus.label} is slower than A: {times.ratio_text} as fast; "
        + (f"kernels that grew: {more}" if more else others),
        own_fix=_SLOWER.fix,
        scope="call",
        seconds=cost,
        low=None if high is None or high <= 0 else max(0.0, median / high - median),
        high=None if low is None or low <= 0 else max(0.0, median / low - median),
        share=None if times.ratio is None else max(0.0, 1 - times.ratio),
        saves_seconds=cost,
        verify=comparison_command(compared.session),
        run=versus.run.id,
        kernels=tuple(row.name for row in grown) or tuple(changed[:_KERNELS_NAMED]),
        code=_SLOWER.code,
    )


def _of_profiles(session: Session, program: ProgramResult | None, name: str) -> _Items:
    """Yield what a profile shows, or the capture windows of a recorded program. The kernels of capture windows are a
    part of the program's device time."""
    imported = [run for run in session.runs.values() if run.plan.how == IMPORTED]
    if not imported:
        return
    scope: Scope = "profile" if program is None else "program"
    verify = command("explain", name) if program is None else program_verification(name, program)
    with_hlo = 0
    for run in imported:
        yield from capture_abstentions(run, name)
        if program is None:
            yield from compile_findings(run, scope, verify)
        if program is None or run.steps is not None:
            yield from step_findings(run, scope, verify, whole_program=program is None)
        module = module_of(session, run) if with_hlo < MOST_MODULES and capture_of(run) is not None else None
        if module is None:
            continue
        from jaxprof.findings.modules import module_findings, weights_of_profile

        with_hlo += 1
        weights = weights_of_profile(session, run, program)
        yield from module_findings(session, module, weights, run, verify=verify)
    if program is None:
        yield from separate_programs(session, imported, verify)
    if not with_hlo:
        yield Abstention("no_hlo", "no HLO in the profile: its kernels have times, and no findings")


def _of_runs(session: Session, runs: Sequence[Run], name: str) -> _Items:
    read = 0
    baselines = {run.plan.baseline for run in session.runs.values() if run.plan.baseline != run.id}
    runs = [run for run in runs if not run.plan.trial]  # what is found in a changed program is not in the user's
    for run in runs:
        yield from run_findings(session, run, name, baselines)
        yield from call_findings(session, run, name)
        module = module_of(session, run) if read < MOST_MODULES else None
        if module is None:
            continue
        from jaxprof.findings.modules import module_findings, weights_of_call

        read += 1
        weights = weights_of_call(session, run, module)
        verify = run_verification(session, name, run)
        yield from step_findings(run, "call", verify, whole_program=False)
        yield from module_findings(session, module, weights, run, verify=verify)
        yield from capture_abstentions(run, name)
    uncaptured = [run for run in runs if run.plan.how == "jit" and run.status == "ok" and not run.measured]
    if uncaptured:
        first = uncaptured[0]
        others = f" and {len(uncaptured) - 1} more" if len(uncaptured) > 1 else ""
        reason = f"{first.id} {first.label}{others}: no capture, so the times of kernels are unknown"
        again = longer_run_command(session, name, first) if first.plan.capture else capture_command(session, first)
        yield Abstention("no_capture", reason, again)
    yield from run_abstentions(session, runs, name)


ENTRIES = (
    _FAILED, _DISPATCH_BOUND, _COPIES, *(entry for entry, _, _ in _SLOW_PARTS.values()), _SLOWER,
    _INCONCLUSIVE, _TRIED,
)  # fmt: skip
