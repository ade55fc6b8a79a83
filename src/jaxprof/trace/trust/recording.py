"""Check whether the recording is complete, and its times are the program's.

The checks cover the file, the profiler's own messages, the levels of tracing, the clocks, compiles among the times, the
device's share of the calls, and the cost of the profiler itself.
"""

from __future__ import annotations

from collections.abc import Iterator

from jaxprof.events import TrustCheck
from jaxprof.trace.checks import row
from jaxprof.trace.launch import MOST_APART_PS, hosts_of, launched_on, spans_apart_ps
from jaxprof.trace.model import PS, Trace
from jaxprof.units import counted, percent, seconds


def file(trace: Trace) -> Iterator[TrustCheck]:
    """Check whether the whole file was read, and what the profiler reports about errors and dropped events."""
    events = trace.events  # reads the remaining lanes, whose problems must be known first
    if trace.problems:
        more = f" (and {len(trace.problems) - 3} more)" if len(trace.problems) > 3 else ""
        yield row(
            "file",
            "bad",
            "a part of the file could not be read: " + "; ".join(trace.problems[:3]) + more,
        )
    else:
        yield row("file", "good", f"the whole file was read: {events} events")
    for text in trace.errors:
        yield row("profiler_error", "bad", f"the profiler says: {text}", _advice_for(text) or None)
    dropped = [text for text in trace.warnings if "drop" in text.lower()]
    for text in trace.warnings:
        yield row("dropped" if text in dropped else "profiler_warning", "doubt", f"the profiler says: {text}")
    if not dropped:
        yield row("dropped", "good", "the profiler reports no dropped events")


def _advice_for(text: str) -> str:
    if "PRIVILEGE" in text.upper():
        return "The driver lets only administrators profile: set NVreg_RestrictProfilingToAdminUsers=0, or run as root."
    if "cupti" in text.lower():
        return "Install the CUPTI of your CUDA version: jax[cuda12] includes it."
    return ""


def tracers(trace: Trace) -> Iterator[TrustCheck]:
    """Check which tracers were on, and whether one that was off leaves the profile without its subject."""
    if trace.python_tracer or trace.tracers.get("python", 0):
        yield row(
            "python_tracer",
            "doubt",
            "the Python tracer was on: it slows the host down, several times over in plain loops",
        )
    else:
        yield row("python_tracer", "good", "the Python tracer was off")
    if not trace.tracers:
        yield row("tracers", "unknown", "the file does not say which levels of tracing were on")
        return
    levels = ", ".join(
        f"{name} {trace.tracers[name]}" for name in ("host", "device", "python") if name in trace.tracers
    )
    words = f"levels of tracing: {levels}"
    if not trace.tracers.get("host", 1):
        # A CPU's ops are events of the host's tracer: without it there is nothing at all.
        yield row(
            "tracers",
            "doubt" if trace.devices else "bad",
            f"{words}: without the host's tracer there are no launches, no annotations and no ops of a CPU",
            "Record with ProfileOptions.host_tracer_level = 2 (the default).",
        )
    elif not trace.tracers.get("device", 1) and trace.platform != "cpu":
        yield row(
            "tracers",
            "bad",
            f"{words}: without the device's tracer there are no kernels of a GPU or TPU",
            "Record with the device's tracer on (the default).",
        )
    else:
        yield row("tracers", "good", words)


def clock(trace: Trace) -> Iterator[TrustCheck]:
    """Check the range of the times, and whether the hosts' recordings are of the same time."""
    span = trace.span_ps
    if span is None:
        yield row("clock", "unknown", "there is no event, so there is no range of times")
        return
    spans = f"the events span {seconds((span[1] - span[0]) * PS)}"
    if fault := _clock_fault(trace):
        yield row(
            "clock",
            "bad",
            fault + ": times of the host and of the device cannot be compared, so the causes of idle time are unknown",
            "Times within one device are still comparable. Record it again to compare them with the host's.",
        )
        return
    apart = _hosts_apart(trace)
    if apart is not None and trace.started_unix_ns is not None:
        first, second, gap = apart
        yield row(
            "clock",
            "bad",
            f"the recordings of {first} and {second} do not overlap: the second begins {seconds(gap * PS)} after the "
            "end of the first, so they are not of one run",
            "Open one of them alone (--host), or record them at the same time.",
        )
        return
    if len(trace.hosts) > 1 and trace.started_unix_ns is None:
        yield row(
            "clock",
            "doubt",
            f"{spans}; the hosts' files do not say when they began, so each begins at 0",
        )
    elif len(trace.hosts) > 1:
        yield row(
            "clock",
            "doubt",
            f"{spans}; {len(trace.hosts)} hosts are aligned by their wall clocks, whose difference is unknown: "
            "milliseconds if they are synchronised, otherwise up to minutes",
            "The order of events on different hosts is certain only within that difference. The folder of a job "
            "(jaxprof open run.jaxprof.d) has the offsets of the clocks, from collectives.",
        )
    else:
        yield row("clock", "good", f"{spans} of one clock")


def _clock_fault(trace: Trace) -> str:
    """Return what shows that the clocks of a host and its devices disagree; empty if nothing does."""
    for host in hosts_of(trace):
        launched = launched_on(trace, host)
        if launched.early:
            by = seconds(launched.early_by_ps * PS)
            return f"{launched.early} of {counted(launched.kernels, 'kernel')} begin before their launch, by up to {by}"
        gap = spans_apart_ps(trace, host)
        if gap > MOST_APART_PS:
            return f"what the host recorded and what its devices did lie {seconds(gap * PS)} apart"
    return ""


def _hosts_apart(trace: Trace) -> tuple[str, str, int] | None:
    """Return two hosts whose recordings follow each other, and the time between them; None if all of them overlap."""
    spans: dict[str, tuple[int, int]] = {}
    for lane in trace.lanes:
        host = lane.host
        if host and len(lane):
            begin, end = int(lane.starts.min()), int(lane.ends.max())
            earlier = spans.get(host, (begin, end))
            spans[host] = (min(begin, earlier[0]), max(end, earlier[1]))
    if len(spans) < 2:
        return None
    ended = min(spans, key=lambda host: spans[host][1])
    begun = max(spans, key=lambda host: spans[host][0])
    gap = spans[begun][0] - spans[ended][1]
    return (ended, begun, gap) if gap > 0 else None


def timeline(left_out: int) -> Iterator[TrustCheck]:
    """Check whether the timeline holds all intervals."""
    if left_out:
        yield row(
            "timeline",
            "doubt",
            f"the timeline, unlike the totals, leaves out the {counted(left_out, 'shortest interval')}",
        )


_SLOWER, _MUCH_SLOWER = 1.5, 3.0
"""Slowdowns with the profiler on from which a call counts as slower and as much slower; it costs some microseconds per
op, up to half of a short call.
"""


def compiles(trace: Trace, kind: str, compile_seconds: float | None) -> Iterator[TrustCheck]:
    """Check how much of the profile compiles take."""
    span = trace.span_ps
    if kind == "compile":
        if compile_seconds is None:
            yield row(
                "compile",
                "unknown",
                "no compile was recorded: it came from a cache, or this backend does not report it",
            )
        else:
            yield row("compile", "good", f"the compile took {seconds(compile_seconds)} of the profile")
        return
    if compile_seconds and span is not None:
        share = compile_seconds / ((span[1] - span[0]) * PS)
        yield row(
            "compile",
            "doubt" if share > 0.1 else "good",
            f"compiles took {percent(share)} of the profile" + (": it mainly shows a compile" * (share > 0.5)),
        )


def device_share(busy_share: float | None) -> Iterator[TrustCheck]:
    """Check whether the device's time fits the measured time of the calls."""
    if busy_share is None:
        return
    yield row(
        "sum",
        "good" if 0.5 <= busy_share <= 1.05 else "doubt",
        f"the device was busy for {percent(busy_share)} of the time that the calls took with the profiler on",
    )


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
