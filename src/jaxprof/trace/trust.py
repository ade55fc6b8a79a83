"""Whether a capture can be trusted: one row for each check, good or bad.

A row has a code, a verdict (`good`, `doubt`, `bad`, `unknown`), a message and a fix. "No data" is reported as such,
never as zero. The checks are of the recording (is the file whole, are its times the program's), of the kernels (is
known what ran on the devices), and of the steps (can they stand for the program's).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from statistics import median

import numpy as np

from jaxprof.base.grouping import grouped, totals
from jaxprof.base.units import and_more, counted, percent, seconds
from jaxprof.events import TrustCheck
from jaxprof.trace.checks import CLEARLY, row
from jaxprof.trace.intervals import Coverage
from jaxprof.trace.launch import clock_fault, copies_of, count_lost_launches
from jaxprof.trace.model import NO_OP, PS, Trace
from jaxprof.trace.steps import STEPS_KEPT, Steps


def trust_rows(
    trace: Trace,
    kind: str,
    steps: Steps | None,
    compile_seconds: float | None,
    *,
    intervals_left_out: int = 0,
    busy_share: float | None = None,
    seconds_with: float | None = None,
    timed_seconds: float | None = None,
) -> list[TrustCheck]:
    """Return the rows for a capture. `busy_share` is device time over the measured time of the calls, if both are
    known.

    `seconds_with` and `timed_seconds` are the times of a call with the profiler, and without it before.
    """
    return [
        *file(trace),
        *tracers(trace),
        *clock(trace),
        *(kernels(trace, kind) if kind != "compile" else ()),
        *modules(trace, kind),
        *(step_checks(steps) if steps is not None else ()),
        *(gaps_between_ops(trace, steps) if steps is not None and trace.platform == "cpu" else ()),
        *compiles(trace, kind, compile_seconds),
        *timeline(intervals_left_out),
        *device_share(busy_share),
        *slowdown(seconds_with, timed_seconds),
    ]


# -- the recording -----------------------------------------------------------------------------------------------------


def file(trace: Trace) -> Iterator[TrustCheck]:
    """Check whether the whole file was read, and what the profiler reports about errors and dropped events."""
    events = trace.events  # reads the remaining lanes, whose problems must be known first
    if trace.problems:
        yield row("file", "bad", unread_text(trace))
    else:
        yield row("file", "good", f"the whole file was read: {events} events")
    for text in trace.errors:
        fix = None
        if "PRIVILEGE" in text.upper():
            fix = (
                "The driver lets only administrators profile: set NVreg_RestrictProfilingToAdminUsers=0, or run as "
                "root."
            )
        elif "cupti" in text.lower():
            fix = "Install the CUPTI of your CUDA version: jax[cuda12] includes it."
        yield row("profiler_error", "bad", f"the profiler says: {text}", fix)
    dropped = [text for text in trace.warnings if "drop" in text.lower()]
    for text in trace.warnings:
        yield row("dropped" if text in dropped else "profiler_warning", "doubt", f"the profiler says: {text}")
    if not dropped:
        yield row("dropped", "good", "the profiler reports no dropped events")


def unread_text(trace: Trace) -> str:
    """Return the parts of the file that could not be read, of which there is one at least."""
    more = f" (and {len(trace.problems) - 3} more)" if len(trace.problems) > 3 else ""
    return f"a part of the file could not be read: {'; '.join(trace.problems[:3])}{more}"


def tracers(trace: Trace) -> Iterator[TrustCheck]:
    """Check which tracers were on, and whether one that was off leaves the profile without its subject."""
    if trace.python_tracer or trace.tracers.get("python", 0):
        words = "the Python tracer was on: it slows the host down, several times over in plain loops"
        yield row("python_tracer", "doubt", words)
    else:
        yield row("python_tracer", "good", "the Python tracer was off")
    levels = [f"{name} {trace.tracers[name]}" for name in ("host", "device", "python") if name in trace.tracers]
    words = f"levels of tracing: {', '.join(levels)}"
    if not trace.tracers:
        yield row("tracers", "unknown", "the file does not say which levels of tracing were on")
    elif not trace.tracers.get("host", 1):
        # A CPU's ops are events of the host's tracer: without it there is nothing at all.
        words += ": without the host's tracer there are no launches, no annotations and no ops of a CPU"
        fix = "Record with ProfileOptions.host_tracer_level = 2 (the default)."
        yield row("tracers", "doubt" if trace.devices else "bad", words, fix)
    elif not trace.tracers.get("device", 1) and trace.platform != "cpu":
        words += ": without the device's tracer there are no kernels of a GPU or TPU"
        yield row("tracers", "bad", words, "Record with the device's tracer on (the default).")
    else:
        yield row("tracers", "good", words)


def clock(trace: Trace) -> Iterator[TrustCheck]:
    """Check the range of the times, and whether the clocks of host and devices agree."""
    span = trace.span_ps
    if span is None:
        yield row("clock", "unknown", "there is no event, so there is no range of times")
    elif fault := clock_fault(trace):
        words = "times of the host and of the device cannot be compared, so the causes of idle time are unknown"
        fix = "Times within one device are still comparable. Record it again to compare them with the host's."
        yield row("clock", "bad", f"{fault}: {words}", fix)
    else:
        yield row("clock", "good", f"the events span {seconds((span[1] - span[0]) * PS)} of one clock")


def timeline(left_out: int) -> Iterator[TrustCheck]:
    """Check whether the timeline holds all intervals."""
    if left_out:
        shortest = counted(left_out, "shortest interval")
        yield row("timeline", "doubt", f"the timeline, unlike the totals, leaves out the {shortest}")


_SLOWER, _MUCH_SLOWER = 1.5, 3.0
"""Slowdowns with the profiler on from which a call counts as slower and as much slower; it costs some microseconds per
op, up to half of a short call.
"""


def compiles(trace: Trace, kind: str, compile_seconds: float | None) -> Iterator[TrustCheck]:
    """Check how much of the profile compiles take."""
    span = trace.span_ps
    if kind == "compile" and compile_seconds is None:
        words = "no compile was recorded: it came from a cache, or this backend does not report it"
        yield row("compile", "unknown", words)
    elif kind == "compile" and compile_seconds is not None:
        yield row("compile", "good", f"the compile took {seconds(compile_seconds)} of the profile")
    elif compile_seconds and span is not None:
        share = compile_seconds / ((span[1] - span[0]) * PS)
        words = f"compiles took {percent(share)} of the profile"
        if share > 0.5:
            words = f"{words}: it mainly shows a compile"
        yield row("compile", "doubt" if share > 0.1 else "good", words)


def device_share(busy_share: float | None) -> Iterator[TrustCheck]:
    """Check whether the device's time fits the measured time of the calls."""
    if busy_share is not None:
        words = f"the device was busy for {percent(busy_share)} of the time that the calls took with the profiler on"
        yield row("sum", "good" if 0.5 <= busy_share <= 1.05 else "doubt", words)


def slowdown(seconds_with: float | None, timed_seconds: float | None) -> Iterator[TrustCheck]:
    """Check how much slower a call was with the profiler on."""
    if not seconds_with or not timed_seconds:
        return
    times = seconds_with / timed_seconds
    words = f"a call took {seconds(seconds_with)} with the profiler and {seconds(timed_seconds)} without"
    if times <= _SLOWER:
        yield row("slowdown", "good", words)
        return
    yield row("slowdown", "bad" if times > _MUCH_SLOWER else "doubt", f"{words}: {times:.1f} times as long")


# -- what ran on the devices -------------------------------------------------------------------------------------------


def kernels(trace: Trace, kind: str) -> Iterator[TrustCheck]:
    """Check whether there are kernels, whether each names its HLO op, and whether each launch has its kernel."""
    with_lanes = {lane.device for lane in trace.lanes}
    empty = [device for device in trace.devices if device not in with_lanes]
    if empty and len(empty) < len(trace.devices):
        yield row("idle_devices", "good", f"nothing ran on {', '.join(empty)}")
    if not trace.platform:
        if trace.lost_names:
            planes = ", ".join(trace.lost_names[:3])
            why = f"the file was truncated before the names of the events of {planes}, so the times have no names"
            remedy = "The profiler writes names after the events: wait until the file is complete before you copy it."
        elif trace.devices:
            why = f"the planes of {', '.join(sorted(trace.devices)[:8])} name no HLO op"
            remedy = (
                "No JAX program ran there while the profiler was on, or its kernels ran in CUDA graphs: "
                "XLA_FLAGS=--xla_gpu_enable_command_buffer= turns those off."
            )
        elif any((lane.op_of != NO_OP).any() for lane in trace.launches):
            why = "the host launched some, but the device's own records are missing"
            remedy = "CUPTI (NVIDIA) or rocprofiler (AMD) was missing, or was not permitted to profile."
        elif not trace.lanes:
            why, remedy = "the profile has no events at all", "Record it again."
        else:
            why = "the profile has only host events, and none of them is an HLO op"
            remedy = (
                "Nothing ran under jit while the profiler was on, "
                "or it was recorded by another tool than JAX's profiler."
            )
        yield row("no_kernels", "bad", f"no kernels: {why}", remedy)
        return
    total = sum(int(lane.durations.sum()) for lane in trace.op_lanes())
    missing = 0
    for lane in trace.streams:
        nameless = np.isin(lane.op_of, [NO_OP, *trace.nameless])
        missing += int(lane.durations[nameless & ~copies_of(lane)].sum())
    share = missing / total if total else 0.0
    fix = "" if kind == "attribution" else None  # command buffers are off there already
    if share > CLEARLY:
        words = f"kernels with {percent(share)} of the device's time name no HLO op"
        yield row("unmatched", "bad" if share > 0.2 else "doubt", words, fix)
    else:
        words = f"kernels with only {percent(share)} of the device's time name no HLO op"
        words = words if missing else "every kernel names its HLO op"
        shared = "of CUDA graphs by the kernel's name, so ops that share a kernel count as one"
        yield row("unmatched", "good", f"{words}, {trace.renamed} {shared}" if trace.renamed else words)
    count, lost = count_lost_launches(trace)
    launches = counted(count, "launch", "launches")
    if count and lost / count > CLEARLY:
        words = "left no kernel in the file: the device's work at that time is unknown and looks like idle time"
        yield row("lost_kernels", "bad" if lost / count > 0.2 else "doubt", f"{lost} of {launches} {words}")
    elif count:
        yield row("lost_kernels", "good", f"{count - lost} of {launches} left a kernel in the file")


def modules(trace: Trace, kind: str) -> Iterator[TrustCheck]:
    """Check whether the HLO of the programs that ran is in the profile."""
    if kind == "compile" or not trace.ops:
        return
    identities = {program.program for program in trace.programs}
    names = {program.name for program in trace.programs}
    numbers = {number for lane in trace.op_lanes() for number in np.unique(lane.op_of).tolist() if number != NO_OP}
    used = {(trace.ops[number].module, trace.ops[number].program) for number in numbers}
    without = sorted(
        {module or str(program) for module, program in used if program not in identities and module not in names}
    )
    if without:
        words = "is not in the file, so there are times but no costs or source lines for the kernels"
        yield row("modules", "doubt", f"the HLO of {and_more(without, 5)} {words}")
    else:
        every = "the one program" if len(used) == 1 else f"all {len(used)} programs"
        yield row("modules", "good", f"the HLO of {every} that ran is in the file")


# -- the steps ---------------------------------------------------------------------------------------------------------


_UNRECORDED = 0.2
"""Share of the executed time without a recorded op above which a CPU's capture is in doubt."""
_UNEVEN = 1.5
"""Factor from the median, up or down, from which a step is another kind of step."""


def step_checks(steps: Steps) -> Iterator[TrustCheck]:
    """Check how the steps were found, which of them are complete, and how much of the device's time they hold."""
    if not steps.rows:
        yield row("steps", "unknown", "no step was found: nothing ran on a device")
        return
    cut = [step for step in steps.rows if not step.complete]
    ways = grouped((device.found_by, device.device) for device in steps.devices)
    how = ", ".join(f"on {and_more(names, 3)} {_HOW[way]}" for way, names in ways.items())
    if len(ways) == 1:
        how = _HOW[steps.devices[0].found_by]
    devices = f" on {len(steps.devices)} devices" if len(steps.devices) > 1 else ""
    found = f"{counted(steps.total, 'step')}{devices} found {how}"
    are = "is" if len(cut) == 1 else "are"
    incomplete = f"{counted(len(cut), 'step')} at the edges {are} incomplete; " if cut else ""
    yield row("steps", "doubt" if cut else "good", f"{incomplete}{found}")
    if steps.unlinked:
        annotations = f"{counted(max(steps.unlinked.values()), 'step annotation')} of the program"
        words = f"cannot be linked to the work of {and_more(steps.unlinked, 3)}"
        instead = "steps there are found in another way and are not the annotated ones"
        yield row("unlinked_steps", "doubt", f"{annotations} {words}: {instead}")
    # Whether one step can stand for the others, on the device on which they differ the most.
    lengths = grouped((step.device, step.seconds) for step in steps.rows if step.complete and step.to_next)
    several = {device: took for device, took in lengths.items() if len(took) > 1}
    if not several:
        yield row("one_step", "doubt", "there is one whole step, so how much steps differ is unknown")
    else:
        middles = {device: median(took) for device, took in several.items()}
        ratios = {
            device: max(max(took) / middles[device], middles[device] / max(min(took), 1e-12))
            for device, took in several.items()
            if middles[device]
        }
        device = max(ratios, key=lambda name: ratios[name], default=next(iter(several)))
        took = several[device]
        words = (
            f"steps on {device} took from {seconds(min(took))} to {seconds(max(took))}, "
            f"{seconds(middles[device])} in the middle"
        )
        yield row("uneven_steps", "doubt" if ratios.get(device, 1.0) > _UNEVEN else "good", words)
    if steps.total > STEPS_KEPT:
        yield row("steps_kept", "doubt", f"of {steps.total} steps the first {STEPS_KEPT} of each device are kept")
    busy = steps.inside_seconds + steps.outside_seconds
    share = steps.outside_seconds / busy if busy else 0.0
    if share > CLEARLY:
        fix = "Other programs ran before the first execution, or after the last."
        if steps.found_by == "annotation":
            fix = "It was launched by no annotated call: annotate that as well, or read the steps without it."
        yield row("outside_steps", "doubt", f"{percent(share)} of the devices' busy time is in no step", fix)


_HOW = {
    "annotation": "by their annotations",
    "modules": "by the executions of the program that took the longest",
    "whole": "by taking the profile as one step, because there are neither step annotations nor program executions",
}


_UNFINISHED = re.compile(r"ThunkExecutor::Execute \(wait for completion\)")
"""Events in which a CPU's program has begun all of its ops, and waits for those that go on in other threads."""


def gaps_between_ops(trace: Trace, steps: Steps) -> Iterator[TrustCheck]:
    """Find time in which a CPU executed a program and no op was recorded: a CPU launches nothing between two ops, and
    after the last one it waits only for ops whose record has ended."""
    parts = [(step.device, step.parts) for step in steps.rows]
    gaps = totals((device, part.launch_gaps) for device, part in parts)
    executing = totals(
        (device, part.kernels + part.transfers + part.collectives_exposed + part.launch_gaps) for device, part in parts
    )
    if len(executing) == 1:  # which device waits is not recorded
        waits = Coverage.over(lane.select(lane.matching(_UNFINISHED.match)) for lane in trace.threads)
        waiting = (waits - Coverage.over(trace.op_lanes())).total * PS
        executing, gaps = ({device: took + waiting for device, took in each.items()} for each in (executing, gaps))
    shares = {device: gap / executing[device] for device, gap in gaps.items() if executing[device]}
    device = max(shares, key=lambda name: shares[name], default="")
    if not device:
        return
    share = shares[device]
    words = f"{percent(share)} of the time in which programs were executed on {device} has no op in the record"
    yield row("unrecorded", "doubt" if share > _UNRECORDED else "good", words)
