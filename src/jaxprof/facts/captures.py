"""Facts of captures and profiles: steps, compile passes, whether a capture can be trusted, and the timeline."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from jaxprof.base.units import UNKNOWN, integer, seconds
from jaxprof.base.values import frozen
from jaxprof.facts import RUN, Encoded, Fact, Facts, Part, Relation, Repeated, RunItems, SessionFile, column, within
from jaxprof.facts.units import BYTE_RATE, BYTES, COUNT, INDEX, NUMBERS, SECONDS, SHARE, TEXT, TRUTH

if TYPE_CHECKING:
    from jaxprof.analysis.timeline.profile import DeviceSteps
    from jaxprof.events import CopyTimes, PassTimes, StepTimes, TrustCheck
    from jaxprof.session import Run, Session

STEPS: Facts[StepTimes] = (
    Fact("name", TEXT, "Name of the step", title="step"),
    Fact("device", TEXT, "gpu:0, cpu:0", title="device"),
    Fact("start_seconds", SECONDS, "When it began, on the profile's clock"),
    Fact("seconds", SECONDS, "How long it took: the sum of its parts", title="time"),
    Fact("complete", TRUTH, "False if the profile began or ended in the middle of it", title="complete",
         show=lambda complete: "" if complete else "no", right=False),
    Fact("kernel_seconds", SECONDS, "Time of kernels", "parts.kernels", "kernels"),
    Fact("transfer_seconds", SECONDS, "Time of copies", "parts.transfers", "copies"),
    Fact("collective_seconds", SECONDS, "Time of collectives while nothing else ran", "parts.collectives_exposed",
         "collectives"),
    Fact("gap_seconds", SECONDS, "Time of gaps between kernels", "parts.launch_gaps", "gaps"),
    Fact("idle_seconds", SECONDS, "Time in which nothing ran", "parts.idle", "idle"),
    Fact("overlapped_seconds", SECONDS, "Time of collectives hidden behind kernels",
         "collectives_overlapped_seconds", "overlapped"),
    Fact("to_next", TRUTH, "False if no later step ends it: it cannot be compared with the others"),
)  # fmt: skip


def _found_by_text(device: DeviceSteps) -> str:
    from jaxprof.analysis.timeline.profile import FOUND_BY

    return FOUND_BY.get(device.found_by, device.found_by)


DEVICE_STEPS: Facts[DeviceSteps] = (
    Fact("device", TEXT, "gpu:0, cpu:0", title="device"),
    Fact("found_by", TEXT, "annotation, modules or whole"),
    Fact("count", COUNT, "Steps"),
    Fact("complete_count", COUNT, "Those that are whole, and compared", "complete"),
    column(
        "steps",
        lambda device: (
            integer(device.count) + (f" ({device.complete} compared)" if device.complete < device.count else "")
        ),
        right=True,
    ),
    Fact("median_seconds", SECONDS, "Median step", title="median"),
    Fact("minimum_seconds", SECONDS, "Shortest step", title="least"),
    Fact("maximum_seconds", SECONDS, "Longest step", title="most"),
    Fact(
        "quartiles_seconds",
        NUMBERS,
        "First and third quartile",
        title="middle half",
        show=lambda quartiles: UNKNOWN if quartiles is None else f"{seconds(quartiles[0])} - {seconds(quartiles[1])}",
        right=False,
    ),
    Fact("span_seconds", SECONDS, "From the first event to the last"),
    Fact("busy_seconds", SECONDS, "How long the device was busy in it", title="busy"),
    Fact("idle_seconds", SECONDS, "How long it was idle"),
    Fact("idle_share", SHARE, "Idle share of it", title="idle"),
    column("steps found by", _found_by_text, gives_way=True),
)
"""Facts of all steps of a device: how they were found, their spread, and how idle the device was."""
COPIES: Facts[CopyTimes] = (
    Fact("direction", TEXT, "host_to_device, device_to_host, device_to_device, peer_to_peer, fill, ...",
         lambda row: row.direction.replace(" ", "_")),
    Fact("device", TEXT, "gpu:0, cpu:0"),
    Fact("count", COUNT, "How many copies"),
    Fact("total_seconds", SECONDS, "Sum of their times"),
    Fact("bytes", BYTES, "Bytes of all of these copies"),
    Fact("bytes_per_second", BYTE_RATE, "Bytes over the time",
         lambda row: row.bytes / row.total_seconds if row.bytes and row.total_seconds else None),
)  # fmt: skip


@frozen
class CaptureCheck:
    kind: str
    check: TrustCheck


def trust_rows(run: Run) -> list[CaptureCheck]:
    return [CaptureCheck(kind, check) for kind, event in run.trust.items() for check in event.rows]


TRUST: Facts[CaptureCheck] = (
    Fact("kind", TEXT, "Kind of the capture"),
    *within(
        "check",
        (
            Fact("code", TEXT, "What was checked"),
            Fact("verdict", TEXT, "good, doubt, bad, unknown"),
            Fact("message", TEXT, "What was found"),
            Fact("fix", TEXT, "What to do about it", "advice"),
        ),
    ),
)


@frozen
class PassRow:
    node: PassTimes
    path: str
    """Names of the nodes from the root to this one."""
    depth: int
    share: float | None
    """Share of the whole compile; None if its time is unknown."""


def pass_rows(tree: PassTimes) -> Iterator[PassRow]:
    """Yield the nodes of the tree, a parent before its children."""

    def walk(node: PassTimes, path: str, depth: int) -> Iterator[PassRow]:
        yield PassRow(node, path, depth, node.seconds / tree.seconds if tree.seconds else None)
        for child in node.children:
            yield from walk(child, f"{path}/{child.name}", depth + 1)

    return walk(tree, tree.name, 0)


PASSES: Facts[PassRow] = (
    Fact("path", TEXT, "The names on the way to it, with / between them"),
    Fact("depth", INDEX, "0 for the whole compilation"),
    *within("node", (
        Fact("name", TEXT, "Name of the pass"),
        Fact("stage", TEXT, "Stage of the compiler", title="stage"),
        Fact("seconds", SECONDS, "What it took, with the passes inside it", title="total"),
        Fact("self_seconds", SECONDS, "What it took without the passes inside it; these add up to the whole",
             title="self"),
        Fact("count", COUNT, "How often it ran", title="times"),
    )),
    Fact("share", SHARE, "Share of the whole compilation, in 0..1", title="share"),
    column("phase or pass", lambda row: "  " * row.depth + row.node.name, gives_way=True),
)  # fmt: skip


def device_steps_of(run: Run) -> Iterable[DeviceSteps]:
    from jaxprof.analysis.timeline.profile import device_steps

    return device_steps(run.steps)


def _copies(_: Session, run: Run) -> Iterable[CopyTimes]:
    from jaxprof.analysis.kernels.measured import capture_of

    captured = capture_of(run)
    return captured.transfers if captured is not None else ()


def _intervals(file: SessionFile) -> Iterator[Part]:
    """Yield a part for each lane. A damaged timeline is left out, with a notice."""
    import numpy as np

    from jaxprof.analysis.timeline import session_timelines

    for run, timeline in session_timelines(file.session, file.notices):
        if timeline.left_out:
            file.notices.append(f"the {timeline.left_out} shortest intervals of run {run.id} are not in its timeline")
        for lane in timeline.lanes:
            if len(lane):
                ops = [timeline.ops[op] if op is not None else None for _, op in lane.labels]
                yield {
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
                    "step": [lane.steps.get(index) for index in range(len(lane))] if lane.steps else Repeated(None),
                }


VIEWS = {
    "steps": RunItems(STEPS, lambda _, run: run.steps.steps if run.steps is not None else None),
    "compile": RunItems(
        PASSES,
        lambda _, run: (
            sorted(pass_rows(run.compile_passes.tree), key=lambda row: -row.node.self_seconds)
            if run.compile_passes is not None
            else None
        ),
    ),
    "trust": RunItems(TRUST, lambda _, run: trust_rows(run)),
}
RELATIONS = (
    Relation(
        "intervals",
        "The timeline: a row for each interval of each lane; lanes overlap, and a loop holds what runs in it",
        (
            RUN,
            Fact("device", TEXT, "gpu:0, cpu:0, host"),
            Fact("lane", TEXT, "The stream, thread or line that it is on"),
            Fact("lane_kind", TEXT, "modules, steps, stream, ops, async, thread, host"),
            Fact("name", TEXT, "What ran"),
            Fact("module", TEXT, "The HLO module that it belongs to"),
            Fact("op", TEXT, "The HLO instruction that it belongs to: name in table kernels"),
            Fact("start_seconds", SECONDS, "When it began, on the profile's clock"),
            Fact("seconds", SECONDS, "How long it took"),
            Fact("execution", INDEX, "Which execution of its module it belongs to"),
            Fact("correlation", INDEX, "The number that a launch on the host and its kernel share"),
            Fact("step", INDEX, "Number of a step annotation"),
        ),
        arrays=_intervals,
    ),
    VIEWS["steps"].relation("steps", "Where the time of each step of a capture went, on each device"),
    VIEWS["compile"].relation(
        "passes", "The phases and passes of each compilation that was captured, the longest self time first"
    ),
    RunItems(DEVICE_STEPS, lambda _, run: device_steps_of(run)).relation(
        "device_steps", "The steps of each device in a capture as a whole"
    ),
    RunItems(COPIES, _copies).relation("copies", "The copies of each capture by direction and device"),
    VIEWS["trust"].relation("trust", "Whether the captures can be trusted, check by check"),
)
