"""The catalogue's entries for captures and profiles: what the devices did, and what makes a capture doubtful."""

from __future__ import annotations

from typing import Final

from jaxprof.analysis.explain.entry import CatalogueEntry


def _capture(code: str, title: str, means: str, fix: str) -> CatalogueEntry:
    return CatalogueEntry(code, "capture", title, means, fix, "traces.md#steps")


def _trust(code: str, title: str, fix: str) -> CatalogueEntry:
    means = "The capture does not show what it seems to show; figures that rest on it may be off."
    return CatalogueEntry(code, "trust", title, means, fix, "traces.md#trust")


ENTRIES: Final = (
    _capture(
        "device-idle",
        "the device waits between steps or kernels",
        "For part of each step nothing ran on the device and nothing was about to: the host prepared data, waited for "
        "a value, or did other work.",
        "Record the program (jaxprof script FILE.py) to see which line the host spends this time at; prepare data "
        "ahead, fetch values less often.",
    ),
    _capture(
        "launch-gaps",
        "gaps between kernels of one program",
        "The device was done with one kernel before the next one was launched: kernels shorter than their launch.",
        "Launch fewer, larger kernels: batch with vmap, unroll scans, leave CUDA graphs (command buffers) on.",
    ),
    _capture(
        "exposed-collectives",
        "the device waits for collectives",
        "Time in collectives during which the device computed nothing.",
        "Let them overlap with work that does not need them (XLA's latency-hiding scheduler), exchange less (another "
        "sharding), or exchange in a narrower dtype.",
    ),
    _capture(
        "copies-in-steps",
        "copies between host and device inside the steps",
        "For part of each step the device only copied to or from the host.",
        "Place what stays the same on the device once, copy the next batch ahead, and fetch results less often.",
    ),
    _trust("no_kernels", "no kernels were recorded", "Run a compiled program while the profiler is on."),
    _trust(
        "unmatched",
        "kernels that name no HLO op",
        "CUDA graphs hide the names: XLA_FLAGS=--xla_gpu_enable_command_buffer= turns them off.",
    ),
    _trust("lost_kernels", "launches without a kernel", "Wait for the last step before the profiler is stopped."),
    _trust("guessed", "kernels whose op is a guess", "Capture with command buffers off for exact names."),
    _trust("modules", "kernels without their HLO", "Record with enable_hlo_proto on, and open the .xplane.pb."),
    _trust("dropped", "the profiler dropped events", "Capture fewer steps, or trace less of the host."),
    _trust("profiler_error", "the profiler reported an error", "Mend what it names, and record again."),
    _trust("profiler_warning", "the profiler reported a warning", "Record again if it concerns what you look at."),
    _trust("file", "the file is incomplete", "Wait until the profiler has written all of it, and copy it again."),
    _trust("python_tracer", "the Python tracer was on", "Turn it off: it slows the host down."),
    _trust("tracers", "the tracing levels change the times", "Record with the default levels."),
    _trust("clock", "clocks that do not agree", "Look at each device by itself."),
    _trust("compile", "compiles inside the capture", "Run once before the profiler is started."),
    _trust("slowdown", "calls were slower with the profiler on", "Take times from the timed runs."),
    _trust("sum", "the kernels' times do not add up to the calls'", "Take times from the timed runs."),
    _trust("steps", "steps that the capture cuts off", "Capture a few steps more."),
    _trust("one_step", "only one whole step", "Record a few steps, after the first two."),
    _trust("steps_kept", "more steps than are listed", "Capture fewer steps; the totals are of all."),
    _trust("timeline", "intervals that are not in the timeline", "Capture fewer steps; the sums are of all."),
    _trust("uneven_steps", "steps of different kinds", "Look at a short step and a long step separately."),
    _trust("outside_steps", "work outside the steps", "Annotate what launches it, or read the steps without it."),
    _trust("unlinked_steps", "annotations without a link to the device's work", "Record whole steps, host tracer on."),
    _trust("unrecorded", "time without any recorded op", "Take times from the timed runs."),
    _trust("attribution", "two captures that differ", "Take times from the capture with command buffers on."),
)
