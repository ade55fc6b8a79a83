"""Where the time of a compile went, by stage: the self times of all its passes, which add up to the whole."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from jaxprof.events import PassTimes


@dataclass(frozen=True, slots=True)
class StageTime:
    """One of XLA's stages, over all threads: where several work at once, stages add up to more than the clock shows."""

    stage: str
    seconds: float
    """Self time."""
    passes: int


def passes_in(tree: PassTimes) -> Iterator[PassTimes]:
    """The pass and all passes inside it, in no particular order."""
    pending = [tree]
    while pending:
        node = pending.pop()
        yield node
        pending += node.children


def stage_times(tree: PassTimes) -> tuple[StageTime, ...]:
    """The stages that took any time, the longest first."""
    by_stage: dict[str, tuple[float, int]] = {}
    for node in passes_in(tree):
        seconds, passes = by_stage.get(node.stage, (0.0, 0))
        by_stage[node.stage] = seconds + node.self_seconds, passes + node.count
    stages = (StageTime(stage, *rest) for stage, rest in by_stage.items() if rest[0] > 0)
    return tuple(sorted(stages, key=lambda spent: (-spent.seconds, spent.stage)))


def seconds_of_threads(tree: PassTimes) -> float:
    """The time that all threads worked, added up."""
    return sum(node.self_seconds for node in passes_in(tree))
