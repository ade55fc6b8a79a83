"""Whether a capture can be trusted: one row for each thing that was looked at, good or bad.

A row has code, verdict (`good`, `doubt`, `bad`, `unknown`), message and advice. "No data" is said, and is never a zero.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from jaxprof.trace.launch import copies_of
from jaxprof.trace.model import NO_OP, Trace
from jaxprof.trace.steps import STEPS_KEPT, Steps
from jaxprof.units import seconds

PS: Final = 1e-12
Row = dict[str, Any]
_CLEARLY: Final = 0.01
"""A share of the time below which something is not worth a doubt."""
CHROME_LIMIT: Final = 1_000_000
"""Events after which JAX's Chrome export stops."""


def trust_rows(
    trace: Trace,
    kind: str,
    steps: Steps | None,
    compile_seconds: float | None,
    *,
    intervals_left_out: int = 0,
    busy_share: float | None = None,
) -> list[Row]:
    """The rows for a capture. `busy_share`: device time a call over the measured time a call, where both are known."""
    return [
        *_file(trace),
        *_tracers(trace),
        *_clock(trace),
        *(_kernels(trace, kind) if kind != "compile" else ()),
        *_modules(trace, kind),
        *(_steps(steps) if steps is not None and kind != "compile" else ()),
        *_compile(trace, kind, compile_seconds),
        *_timeline(intervals_left_out),
        *_sum(busy_share),
    ]


def _row(code: str, verdict: str, message: str, advice: str = "") -> Row:
    return {"code": code, "verdict": verdict, "message": message, "advice": advice}


def _file(trace: Trace) -> Iterator[Row]:
    if trace.problems:
        more = f" (and {len(trace.problems) - 3} more)" if len(trace.problems) > 3 else ""
        yield _row(
            "file",
            "bad",
            "a part of the file could not be read: " + "; ".join(trace.problems[:3]) + more,
            "What is missing is in no figure here; record it again where that matters.",
        )
    else:
        yield _row("file", "good", f"the whole file was read: {trace.events} events")
    for text in trace.errors:
        yield _row("profiler_error", "bad", f"the profiler says: {text}", _advice_for(text))
    dropped = [text for text in trace.warnings if "drop" in text.lower()]
    for text in trace.warnings:
        yield _row("dropped" if text in dropped else "profiler_warning", "doubt", f"the profiler says: {text}")
    if trace.chrome and trace.events >= CHROME_LIMIT:
        yield _row(
            "dropped",
            "bad",
            f"the file has {trace.events} events, and JAX writes at most {CHROME_LIMIT} into this format: "
            "what came later is missing, device kernels as likely as others",
            "Open the .xplane.pb beside it: it has everything.",
        )
    elif not dropped:
        yield _row("dropped", "good", "the profiler tells of no dropped events")


def _advice_for(text: str) -> str:
    if "PRIVILEGE" in text.upper():
        return "The driver lets only administrators profile: set NVreg_RestrictProfilingToAdminUsers=0, or run as root."
    if "cupti" in text.lower():
        return "Install the CUPTI that belongs to the CUDA version: jax[cuda12] brings it."
    return ""


def _tracers(trace: Trace) -> Iterator[Row]:
    by_python = sum(
        int(np.isin(lane.name_of, [at for at, name in enumerate(lane.names) if name.startswith("$")]).sum())
        for lane in trace.lanes
        if lane.kind == "host"
    )
    level = trace.tracers.get("python", 0)
    if by_python or level:
        yield _row(
            "python_tracer",
            "doubt",
            f"the Python tracer was on ({by_python} calls): it slows the host down, several times over in plain loops",
            "Record with ProfileOptions.python_tracer_level = 0 where times matter.",
        )
    else:
        yield _row("python_tracer", "good", "the Python tracer was off")
    if not trace.tracers:
        yield _row("tracers", "unknown", "the file does not say which levels of tracing were on")
        return
    said = ", ".join(f"{name} {trace.tracers[name]}" for name in ("host", "device", "python") if name in trace.tracers)
    verdict = "good" if trace.tracers.get("device", 1) else "bad"
    yield _row("tracers", verdict, f"levels of tracing: {said}")


def _clock(trace: Trace) -> Iterator[Row]:
    span = trace.span_ps
    if span is None:
        yield _row("clock", "unknown", "there is no event, so there is no range of times")
        return
    spans = f"the events span {seconds((span[1] - span[0]) * PS)}"
    if len(trace.hosts) > 1 and trace.started_unix_ns is None:
        yield _row(
            "clock",
            "doubt",
            f"{spans}; the hosts' files do not say when they began, so each begins at 0",
        )
    elif len(trace.hosts) > 1:
        yield _row(
            "clock",
            "doubt",
            f"{spans}; {len(trace.hosts)} hosts are joined by their wall clocks, which may differ by milliseconds",
        )
    else:
        yield _row("clock", "good", f"{spans} of one clock")


def _kernels(trace: Trace, kind: str) -> Iterator[Row]:
    yield from _empty_devices(trace)
    if not trace.platform:
        yield _no_kernels(trace)
        return
    total = sum(int(lane.durations.sum()) for lane in trace.op_lanes())
    missing = guessed = 0
    for lane in trace.op_lanes():
        if lane.kind == "stream":
            missing += int(lane.durations[(lane.op_of == NO_OP) & ~copies_of(lane)].sum())
        if lane.guessed is not None:
            guessed += int(lane.durations[lane.guessed].sum())
    share = missing / total if total else 0.0
    if share > _CLEARLY:
        yield _row(
            "unmatched",
            "bad" if share > 0.2 else "doubt",
            f"kernels with {share:.0%} of the device's time name no HLO op",
            "CUDA graphs hide the names: XLA_FLAGS=--xla_gpu_enable_command_buffer= turns them off."
            if kind != "attribution"
            else "",
        )
    else:
        yield _row("unmatched", "good", "kernels with all of the device's time name their HLO op")
    if guessed:
        yield _row(
            "guessed",
            "doubt",
            f"{guessed / total:.1%} of the device's time is of kernels that name no op and run between two kernels of "
            "one: they are counted as that op's, and marked",
        )


def _empty_devices(trace: Trace) -> Iterator[Row]:
    with_lanes = {lane.device for lane in trace.lanes}
    empty = [device for device in trace.devices if device not in with_lanes]
    if empty and len(empty) < len(trace.devices):
        yield _row("idle_devices", "good", f"nothing ran on {', '.join(empty)}")


def _no_kernels(trace: Trace) -> Row:
    launches = any(lane.kind == "host" and (lane.op_of != NO_OP).any() for lane in trace.lanes)
    if trace.devices:
        return _row(
            "no_kernels",
            "bad",
            f"no kernels: the planes of {', '.join(sorted(trace.devices)[:8])} name no HLO op",
            "Nothing of JAX's ran there while the profiler was on, or its kernels ran in CUDA graphs: "
            "XLA_FLAGS=--xla_gpu_enable_command_buffer= turns those off.",
        )
    if launches:
        return _row(
            "no_kernels",
            "bad",
            "no kernels: the host launched some, but the device's own records are missing",
            "CUPTI (NVIDIA) or rocprofiler (AMD) was not there, or was not permitted to profile.",
        )
    if not trace.lanes:
        return _row("no_kernels", "bad", "no kernels: the profile has no events at all", "Record it again.")
    return _row(
        "no_kernels",
        "bad",
        "no kernels: the profile has a host's events only, and none of them is an HLO op",
        "Nothing ran under jit while the profiler was on, or it was recorded by another tool than JAX's profiler.",
    )


def _modules(trace: Trace, kind: str) -> Iterator[Row]:
    if kind == "compile" or not trace.ops:
        return
    known = {program.program for program in trace.programs}
    names = {program.name for program in trace.programs}
    used = {(op.module, op.program) for lane in trace.op_lanes() for op in _ops_of(trace, lane.op_of)}
    without = sorted(
        {module or str(program) for module, program in used if program not in known and module not in names}
    )
    if not without:
        yield _row(
            "modules",
            "good",
            "the HLO of "
            + ("the one program" if len(used) == 1 else f"all {len(used)} programs")
            + " that ran is in the file",
        )
        return
    shown = ", ".join(without[:5]) + (f" and {len(without) - 5} more" if len(without) > 5 else "")
    yield _row(
        "modules",
        "doubt",
        f"the HLO of {shown} is not in the file, so its kernels have times and nothing else",
        "This format never has it: open the .xplane.pb."
        if trace.chrome
        else "Record with enable_hlo_proto on (the default).",
    )


def _ops_of(trace: Trace, column: np.ndarray[Any, np.dtype[np.int64]]) -> Iterator[Any]:
    return (trace.ops[index] for index in np.unique(column).tolist() if index != NO_OP)


def _steps(steps: Steps) -> Iterator[Row]:
    if not steps.rows:
        yield _row("steps", "unknown", "no step was found: nothing ran on a device")
        return
    cut = [row for row in steps.rows if not row["complete"]]
    how = {
        "annotation": "by their annotations",
        "modules": "by the executions of the program that took the longest",
        "whole": "as one: there are neither annotations nor executions of programs",
    }[steps.found_by]
    if cut:
        yield _row(
            "steps",
            "doubt",
            f"{_steps_in_words(len(cut))} at the edges {'is' if len(cut) == 1 else 'are'} incomplete; "
            f"{_steps_in_words(steps.total)} found {how}",
        )
    else:
        yield _row("steps", "good", f"{_steps_in_words(steps.total)} found {how}")
    if steps.total > STEPS_KEPT:
        yield _row("steps_kept", "doubt", f"of {steps.total} steps the first {STEPS_KEPT} of each device are kept")
    busy = steps.inside_seconds + steps.outside_seconds
    share = steps.outside_seconds / busy if busy else 0.0
    if share > _CLEARLY:
        yield _row(
            "outside_steps",
            "doubt",
            f"{share:.0%} of the devices' busy time is in no step",
            "Block until the result is ready inside of the annotation, so that the step holds its own work."
            if steps.found_by == "annotation"
            else "Other programs ran before the first execution, or after the last.",
        )


def _steps_in_words(count: int) -> str:
    return f"{count} step{'s' if count != 1 else ''}"


def _compile(trace: Trace, kind: str, compile_seconds: float | None) -> Iterator[Row]:
    span = trace.span_ps
    if kind == "compile":
        if compile_seconds is None:
            yield _row(
                "compile", "unknown", "no compile was recorded: it came from a cache, or this backend does not tell"
            )
        else:
            yield _row("compile", "good", f"the compile took {seconds(compile_seconds)} of the profile")
        return
    if compile_seconds and span is not None:
        share = compile_seconds / ((span[1] - span[0]) * PS)
        yield _row(
            "compile",
            "doubt" if share > 0.1 else "good",
            f"compiles took {share:.0%} of the profile" + (": it is of a compile more than of a run" * (share > 0.5)),
            "Run once before the profiler is started." if share > 0.1 else "",
        )


def _timeline(left_out: int) -> Iterator[Row]:
    if left_out:
        yield _row(
            "timeline", "doubt", f"the {left_out} shortest intervals are not in the timeline; they are in the sums"
        )


def _sum(busy_share: float | None) -> Iterator[Row]:
    if busy_share is None:
        return
    good = 0.5 <= busy_share <= 1.05
    yield _row(
        "sum",
        "good" if good else "doubt",
        f"in each call the device was busy for {busy_share:.0%} of the time that the call took with the profiler on",
        "" if good else "The rest is dispatch, waiting, or work that the profiler does not see.",
    )
