"""Sessions that have something to explain, each with the figures that a test plants."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

import program_events as made
from analysis.made_runs import hlo_text, planned
from folding import fold
from jaxprof import events as e
from jaxprof.analysis.explain.derive import explanation
from jaxprof.analysis.explain.model import Explanation
from jaxprof.session import Session
from report import sessions

TRANSPOSES = sessions.TRANSPOSES
MENDED = TRANSPOSES.replace("transpose(%p), dimensions={1,0}", "negate(%p)")
CAPTURE = sessions.kernels(fusion_1=3e-3, fusion_2=1e-3)


def codes(explained: Explanation) -> list[str]:
    return [finding.code for finding in explained.findings]


def unknown(explained: Explanation) -> list[str]:
    return [abstention.code for abstention in explained.abstentions]


def explained(session: Session) -> Explanation:
    return explanation(session, "s")


def changed(events: Iterable[e.Event], kind: type[e.Event], change: Callable[[e.Event], e.Event]) -> list[e.Event]:
    """The events, where `change` was made to those of a kind."""
    return [change(event) if isinstance(event, kind) else event for event in events]


def with_hlo(events: Iterable[e.Event], hlo: str) -> list[e.Event]:
    return changed(events, e.TextRecorded, lambda event: replace(event, text=hlo) if event.name == "hlo" else event)


def session_of(*events: e.Event) -> Session:
    """These events after a run of NumPy."""
    return fold(sessions.HEADER, [*sessions.numpy_run("r1"), *events, e.SessionClosed()])


def run_of(hlo: str, *captured: e.Event) -> Session:
    """A compiled run of `hlo` beside NumPy's, with what was captured of it."""
    run = with_hlo(sessions.jit_run("r2", "r1"), hlo)
    return session_of(*run[:-2], *captured, *run[-2:])


def compared(slower: float, *, together: bool = True) -> Session:
    """A and B of a comparison, where B takes `slower` times as long as A."""

    def of_side(event: e.Event, side: str) -> e.Event:
        if isinstance(event, e.RunPlanned):
            return replace(event, spec=replace(event.spec, side=side, workload=f"m.py:{side}"))
        if isinstance(event, e.SamplesTaken) and side == "A" and event.block is not None:
            return replace(event, block=event.block - 1)
        return event

    first = [of_side(event, "A") for event in sessions.jit_run("r1", "", 1e-3)]
    other = [of_side(event, "B") for event in sessions.jit_run("r2", "r1", 1e-3 * slower)]
    if not together:
        other = [event for event in other if not (isinstance(event, e.SamplesTaken) and event.series == "run")]
    return fold(sessions.HEADER, [*first, *other, e.SessionClosed()])


def on_gpu(median: float, dispatch: float, copy: float) -> Session:
    """A run on a GPU: how long a call takes, until it returns, and how long its arguments take to be copied."""
    took = {"dispatch": dispatch, "transfer_in": copy}
    run = with_hlo(sessions.jit_run("r2", "r1", median), MENDED)
    run = changed(run, e.RunPlanned, lambda event: replace(event, spec=replace(event.spec, device="cuda:0")))
    run = changed(
        run,
        e.SamplesTaken,
        lambda event: replace(event, seconds=sessions.around(took[event.series], 9)) if event.series in took else event,
    )
    return session_of(*run)


def steps(platform: str, found_by: str = "annotation", run: str = "r2", **parts: float) -> list[e.Event]:
    """A capture of ten steps of 1 ms."""
    kernels = 1e-3 - sum(parts.values())
    return [
        e.CaptureTaken(run=run, kind="run", platform=platform, calls=10, wall_seconds=0.01),
        e.StepsMeasured(run=run, found_by=found_by, steps=[
            e.StepTimes(name=str(number), device="gpu:0", start_seconds=1e-3 * number, seconds=1e-3,
                        parts=e.StepParts(kernels=kernels, **parts))
            for number in range(10)
        ]),
    ]  # fmt: skip


def profile(*more: e.Event, hlo: str = TRANSPOSES, gap: float = 2e-4) -> list[e.Event]:
    """A profile that was opened: all of it as one run, and one program with its HLO as another. On two devices."""

    imported = {"variant": "profile", "how": "imported", "device": "gpu:0"}
    rows = [replace(row, device=device) for row in CAPTURE.rows for device in ("gpu:0", "gpu:1")]
    return [
        planned("r1", workload="2026", **imported),
        *steps("gpu", run="r1", launch_gaps=gap, idle=gap),
        planned("r2", workload="jit_turn", **imported),
        hlo_text(hlo, "r2"),
        e.CaptureTaken(run="r2", kind="imported", platform="gpu", calls=10),
        e.KernelsMeasured(run="r2", kind="imported", calls=10, rows=rows),
        *more,
    ]


def mostly_compiling(seconds: float, cache: str = "off", *more: e.Event) -> list[e.Event]:
    """Ten seconds of a program, of which so many went to one compilation."""
    share = seconds / 10
    states = {"compile": share, "device_busy": 1 - share}
    return [made.compiled(cache=cache, compile_seconds=seconds), *made.steady(10, states), *more]
