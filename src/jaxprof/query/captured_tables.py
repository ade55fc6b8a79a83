"""The tables of captures and profiles: intervals of the timeline, steps, passes of the compiler."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from jaxprof.analysis.timeline import TimelineLane, session_timelines
from jaxprof.events import StepTimes
from jaxprof.facts import (
    COUNT,
    INDEX,
    SECONDS,
    SHARE,
    TEXT,
    TRUTH,
    Encoded,
    Fact,
    Part,
    Relation,
    Repeated,
    SessionFile,
    at,
    within,
)
from jaxprof.facts.runs import RUN
from jaxprof.report.captures import PASSES, STEPS, PassRow, pass_rows
from jaxprof.report.table import described
from jaxprof.session import Run

if TYPE_CHECKING:
    from jaxprof.analysis.timeline import Timeline


def _intervals(file: SessionFile) -> Iterator[Part]:
    """Each lane is a part; a timeline that is damaged is left out, with a notice."""
    for run, timeline in session_timelines(file.session, file.notices):
        if timeline.left_out:
            file.notices.append(f"the {timeline.left_out} shortest intervals of run {run.id} are not in its timeline")
        for lane in timeline.lanes:
            if len(lane):
                yield _lane(run, timeline, lane)


def _lane(run: Run, timeline: Timeline, lane: TimelineLane) -> Part:
    import numpy as np

    ops = [timeline.ops[op] if op is not None else None for _, op in lane.labels]
    count = len(lane)
    return {
        "run": Repeated(run.id),
        "device": Repeated(lane.device),
        "lane": Repeated(lane.name),
        "lane_kind": Repeated(lane.kind),
        "name": Encoded([name for name, _ in lane.labels], lane.label_of),
        "module": Encoded([op.module if op else None for op in ops], lane.label_of),
        "op": Encoded([op.name if op else None for op in ops], lane.label_of),
        "start_seconds": np.asarray(lane.starts, dtype="f8") * 1e-9,
        "seconds": np.asarray(lane.durations, dtype="f8") * 1e-9,
        "execution": Repeated(None) if lane.executions is None else lane.executions,
        "correlation": Repeated(None)
        if lane.correlations is None
        else [None if number < 0 else number for number in lane.correlations],
        "step": [lane.steps.get(place) for place in range(count)] if lane.steps else Repeated(None),
    }


INTERVALS: Final = Relation(
    "intervals",
    "The timeline: a row for each interval of each lane; lanes overlap, and a loop holds what runs in it",
    (
        RUN,
        Fact("device", TEXT, "gpu:0, cpu:0, host"),
        Fact("lane", TEXT, "The stream, thread or line that it is on"),
        Fact("lane_kind", TEXT, "modules, steps, stream, ops, async, thread, host"),
        Fact("name", TEXT, "What ran"),
        Fact("module", TEXT, "The HLO module that it belongs to"),
        Fact("op", TEXT, "The HLO instruction that it belongs to: a name of kernels"),
        Fact("start_seconds", SECONDS, "When it began, on the profile's clock"),
        Fact("seconds", SECONDS, "How long it took"),
        Fact("execution", INDEX, "Which execution of its module it belongs to"),
        Fact("correlation", INDEX, "The number that a launch on the host and its kernel share"),
        Fact("step", INDEX, "Number of a step annotation"),
    ),
    arrays=_intervals,
)


@dataclass(frozen=True, slots=True)
class _OfRun:
    """Something that a run has several of."""

    run: Run
    item: Any


def _steps(file: SessionFile) -> Iterator[_OfRun]:
    for run in file.session.runs.values():
        rows: list[StepTimes] = run.steps.steps if run.steps is not None else []
        yield from (_OfRun(run, step) for step in rows)


STEPS_TABLE: Final = Relation(
    "steps",
    "Where the time of each step of a capture went, on each device",
    (
        RUN,
        *within(
            at("item"),
            described(
                STEPS,
                ("name", TEXT, "Name of the step"),
                ("device", TEXT, "gpu:0, cpu:0"),
                ("start_seconds", SECONDS, "When it began, on the profile's clock"),
                ("seconds", SECONDS, "How long it took: the sum of its parts"),
                ("complete", TRUTH, "False if the profile began or ended in the middle of it"),
                ("parts.kernels=kernel_seconds", SECONDS, "Kernels"),
                ("parts.transfers=transfer_seconds", SECONDS, "Copies"),
                ("parts.collectives_exposed=collective_seconds", SECONDS, "Collectives while nothing else ran"),
                ("parts.launch_gaps=gap_seconds", SECONDS, "Gaps between kernels"),
                ("parts.idle=idle_seconds", SECONDS, "Nothing"),
                ("collectives_overlapped_seconds=overlapped_seconds", SECONDS, "Collectives hidden behind kernels"),
                ("to_next", TRUTH, "False if no later step ends it: it cannot be compared with the others"),
            ),
        ),
    ),
    _steps,
)


def _passes(file: SessionFile) -> Iterator[_OfRun]:
    for run in file.session.runs.values():
        rows: Iterator[PassRow] = pass_rows(run.compile_passes.tree) if run.compile_passes is not None else iter(())
        yield from (_OfRun(run, row) for row in rows)


PASSES_TABLE: Final = Relation(
    "passes",
    "The phases and passes of each compilation that was captured, a parent before its children",
    (
        RUN,
        Fact("name", TEXT, "Name of the pass", at("item.node.name")),
        Fact("depth", INDEX, "0 for the whole compilation", at("item.depth")),
        *within(
            at("item"),
            described(
                PASSES,
                ("path", TEXT, "The names on the way to it, with / between them"),
                ("stage", TEXT, "Stage of the compiler"),
                ("seconds", SECONDS, "What it took, with the passes inside it"),
                ("self_seconds", SECONDS, "Without these: the self times add up to the whole"),
                ("count", COUNT, "How often it ran"),
            ),
        ),
        Fact("share", SHARE, "Share of the whole compilation, in 0..1", at("item.share")),
    ),
    _passes,
)
