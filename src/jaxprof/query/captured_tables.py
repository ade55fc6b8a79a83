"""The tables of captures and profiles: intervals of the timeline, steps, passes of the compiler."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from jaxprof.analysis.timeline import TimelineLane, session_timelines
from jaxprof.events import StepTimes
from jaxprof.query.measured_tables import RUN
from jaxprof.query.schema import (
    REAL,
    TEXT,
    TRUTH,
    WHOLE,
    Encoded,
    Part,
    Repeated,
    SessionFile,
    SqlColumn,
    SqlTable,
    described,
    row_table,
    within,
)
from jaxprof.report.captures import PASSES, STEPS, PassRow, pass_rows
from jaxprof.report.table import at
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


INTERVALS: Final = SqlTable(
    "intervals",
    "The timeline: a row for each interval of each lane; lanes overlap, and a loop holds what runs in it",
    (
        RUN,
        SqlColumn("device", TEXT, "gpu:0, cpu:0, host"),
        SqlColumn("lane", TEXT, "The stream, thread or line that it is on"),
        SqlColumn("lane_kind", TEXT, "modules, steps, stream, ops, async, thread, host"),
        SqlColumn("name", TEXT, "What ran"),
        SqlColumn("module", TEXT, "The HLO module that it belongs to"),
        SqlColumn("op", TEXT, "The HLO instruction that it belongs to: a name of kernels"),
        SqlColumn("start_seconds", REAL, "When it began, on the profile's clock"),
        SqlColumn("seconds", REAL, "How long it took"),
        SqlColumn("execution", WHOLE, "Which execution of its module it belongs to"),
        SqlColumn("correlation", WHOLE, "The number that a launch on the host and its kernel share"),
        SqlColumn("step", WHOLE, "Number of a step annotation"),
    ),
    _intervals,
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


STEPS_TABLE: Final = row_table(
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
                ("start_seconds", REAL, "When it began, on the profile's clock"),
                ("seconds", REAL, "How long it took: the sum of its parts"),
                ("complete", TRUTH, "False if the profile began or ended in the middle of it"),
                ("parts.kernels=kernel_seconds", REAL, "Kernels"),
                ("parts.transfers=transfer_seconds", REAL, "Copies"),
                ("parts.collectives_exposed=collective_seconds", REAL, "Collectives while nothing else ran"),
                ("parts.launch_gaps=gap_seconds", REAL, "Gaps between kernels"),
                ("parts.idle=idle_seconds", REAL, "Nothing"),
                ("collectives_overlapped_seconds=overlapped_seconds", REAL, "Collectives hidden behind kernels"),
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


PASSES_TABLE: Final = row_table(
    "passes",
    "The phases and passes of each compilation that was captured, a parent before its children",
    (
        RUN,
        SqlColumn("name", TEXT, "Name of the pass", at("item.node.name")),
        SqlColumn("depth", WHOLE, "0 for the whole compilation", at("item.depth")),
        *within(
            at("item"),
            described(
                PASSES,
                ("path", TEXT, "The names on the way to it, with / between them"),
                ("stage", TEXT, "Stage of the compiler"),
                ("seconds", REAL, "What it took, with the passes inside it"),
                ("self_seconds", REAL, "Without these: the self times add up to the whole"),
                ("count", WHOLE, "How often it ran"),
            ),
        ),
        SqlColumn("share", REAL, "Share of the whole compilation, in 0..1", at("item.share")),
    ),
    _passes,
)
