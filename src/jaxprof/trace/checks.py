"""What can make a capture doubtful: the title of each check, and what to do about it. Needs no numpy."""

from __future__ import annotations

from jaxprof.events import TrustCheck

TRUST: dict[str, tuple[str, str]] = {
    "no_kernels": ("no kernels were recorded", "Run a compiled program while the profiler is on."),
    "unmatched": (
        "kernels that name no HLO op",
        "CUDA graphs hide the names: XLA_FLAGS=--xla_gpu_enable_command_buffer= turns them off.",
    ),
    "lost_kernels": (
        "launches without a kernel",
        "The profiler lost them, or was stopped before they ran: wait for the last step before you stop it, and record "
        "fewer steps.",
    ),
    "modules": ("kernels without their HLO", "Record with enable_hlo_proto on (the default)."),
    "dropped": ("the profiler dropped events", "Capture fewer steps, or trace less of the host."),
    "profiler_error": ("the profiler reported an error", "Fix what it names, and record again."),
    "profiler_warning": ("the profiler reported a warning", "Record again if it concerns what you look at."),
    "file": ("the file is incomplete", "Figures do not include the missing part; record again if that matters."),
    "python_tracer": (
        "the Python tracer was on",
        "Record with ProfileOptions.python_tracer_level = 0 where times matter.",
    ),
    "tracers": ("the tracing levels change the times", "Record with the default levels."),
    "clock": ("clocks that do not agree", "Look at the device by itself."),
    "compile": (
        "compiles inside the capture",
        "Run once before the profiler is started, unless the compile is what you look at.",
    ),
    "slowdown": (
        "calls were slower with the profiler on",
        "The kernels' shares are those of the slower call: the machine was busy, or the ops are too short to be "
        "recorded one by one. Take times from the timed runs.",
    ),
    "sum": (
        "the kernels' times do not add up to the calls'",
        "The rest is dispatch, waiting, or work that the profiler does not see: take times from the timed runs.",
    ),
    "steps": ("steps that the capture cuts off", "Capture a few steps more."),
    "one_step": ("only one whole step", "Record a few steps, after the first two."),
    "steps_kept": ("more steps than are listed", "Capture fewer steps; the totals are of all."),
    "timeline": ("intervals that are not in the timeline", "Capture fewer steps; the sums are of all."),
    "uneven_steps": (
        "steps of different kinds",
        "A mean or a total represents none of them: look at a short step and a long step separately.",
    ),
    "outside_steps": ("work outside the steps", "Annotate what launches it, or read the steps without it."),
    "unlinked_steps": (
        "annotations without a link to the device's work",
        "Links are the correlation ids of launches and the calls of jitted functions: record whole steps, with "
        "ProfileOptions.host_tracer_level = 2 (the default).",
    ),
    "unrecorded": (
        "time without any recorded op",
        "The runtime may continue an op (a sort, say) on threads that it does not record: ops before such gaps took "
        "longer than is shown here. Take times from runs without the profiler.",
    ),
    "attribution": (
        "two captures that differ",
        "Take shares from the capture without command buffers, and total times from the default capture.",
    ),
}
"""Title and fix of each check, by its code."""

INCOMPLETE = "incomplete_file"
"""Code of the warning about a profile that could not be read in part."""
CLEARLY = 0.01
"""Share of the time below which something is not worth a doubt."""


def row(code: str, verdict: str, message: str, own_fix: str | None = None) -> TrustCheck:
    """Return the result of a check; `verdict` is `good`, `doubt`, `bad` or `unknown`. A doubtful one has the fix of its
    check, unless this case has one of its own."""
    usual = TRUST[code][1] if verdict in ("bad", "doubt") else ""
    return TrustCheck(code=code, verdict=verdict, message=message, advice=usual if own_fix is None else own_fix)
