"""Check whether what ran on the devices is known: kernels, their ops, the HLO of their programs."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from jaxprof.events import TrustCheck
from jaxprof.trace.checks import CLEARLY, row
from jaxprof.trace.launch import LaunchOutcome, copies_of, hosts_of, launched_on
from jaxprof.trace.model import NO_OP, Trace
from jaxprof.units import counted, percent


def kernels(trace: Trace, kind: str) -> Iterator[TrustCheck]:
    """Check whether there are kernels, and whether each names its HLO op."""
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
    fix = "" if kind == "attribution" else None  # command buffers are off there already
    if share > CLEARLY:
        words = f"kernels with {percent(share)} of the device's time name no HLO op"
        yield row("unmatched", "bad" if share > 0.2 else "doubt", words, fix)
    else:
        few = f"kernels with only {percent(share)} of the device's time name no HLO op"
        yield row("unmatched", "good", few if missing else "every kernel names its HLO op")
    yield from _launches(trace)
    if guessed:
        yield row(
            "guessed",
            "doubt",
            f"{percent(guessed / total)} of the device's time is in kernels that name no op and run between two "
            "kernels of the same op: they are assigned to that op and marked as guesses",
            fix,
        )


def _launches(trace: Trace) -> Iterator[TrustCheck]:
    """Check whether each launch on a host has its kernel."""
    launched = sum((launched_on(trace, host) for host in hosts_of(trace)), LaunchOutcome())
    if not launched.launches:
        return
    launches = counted(launched.launches, "launch", "launches")
    share = launched.lost / launched.launches
    if share <= CLEARLY:
        kept = launched.launches - launched.lost
        yield row("lost_kernels", "good", f"{kept} of {launches} left a kernel in the file")
        return
    yield row(
        "lost_kernels",
        "bad" if share > 0.2 else "doubt",
        f"{launched.lost} of {launches} left no kernel in the file: the device's work at that time is unknown and "
        "looks like idle time",
    )


def _empty_devices(trace: Trace) -> Iterator[TrustCheck]:
    with_lanes = {lane.device for lane in trace.lanes}
    empty = [device for device in trace.devices if device not in with_lanes]
    if empty and len(empty) < len(trace.devices):
        yield row("idle_devices", "good", f"nothing ran on {', '.join(empty)}")


def _no_kernels(trace: Trace) -> TrustCheck:
    if trace.lost_names:
        return row(
            "no_kernels",
            "bad",
            f"no kernels: the file was truncated before the names of the events of {', '.join(trace.lost_names[:3])}, "
            "so the times have no names",
            "The profiler writes names after the events: wait until the file is complete before you copy it.",
        )
    launches = any((lane.op_of != NO_OP).any() for lane in trace.launches)
    if trace.devices:
        return row(
            "no_kernels",
            "bad",
            f"no kernels: the planes of {', '.join(sorted(trace.devices)[:8])} name no HLO op",
            "No JAX program ran there while the profiler was on, or its kernels ran in CUDA graphs: "
            "XLA_FLAGS=--xla_gpu_enable_command_buffer= turns those off.",
        )
    if launches:
        return row(
            "no_kernels",
            "bad",
            "no kernels: the host launched some, but the device's own records are missing",
            "CUPTI (NVIDIA) or rocprofiler (AMD) was missing, or was not permitted to profile.",
        )
    if not trace.lanes:
        return row("no_kernels", "bad", "no kernels: the profile has no events at all", "Record it again.")
    return row(
        "no_kernels",
        "bad",
        "no kernels: the profile has only host events, and none of them is an HLO op",
        "Nothing ran under jit while the profiler was on, or it was recorded by another tool than JAX's profiler.",
    )


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
    if not without:
        every = "the one program" if len(used) == 1 else f"all {len(used)} programs"
        yield row("modules", "good", f"the HLO of {every} that ran is in the file")
        return
    shown = ", ".join(without[:5]) + (f" and {len(without) - 5} more" if len(without) > 5 else "")
    yield row(
        "modules",
        "doubt",
        f"the HLO of {shown} is not in the file, so there are times but no costs or source lines for the kernels",
    )
