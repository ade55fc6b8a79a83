"""One process of a job beside the others: part by part, and what it compiled again against what they did."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from jaxprof.analysis.jobs.figures import ProcessFigures, share_beside
from jaxprof.analysis.programs.verdict import PARTS
from jaxprof.events import SourceLocation


@dataclass(frozen=True, slots=True)
class PartBeside:
    """One part of the loop."""

    part: str
    share: float
    """Of its loop, on this process; an estimate from samples."""
    others_share: float
    """The median of the others."""
    more_seconds: float
    """What this process spends in it beyond that share; negative where it is less."""
    where: SourceLocation | None
    """The line that takes most of it on this process."""


@dataclass(frozen=True, slots=True)
class CompiledBeside:
    """A function that was compiled more than once, here or there."""

    function: str
    count: int
    """Compilations on this process after the first; exact."""
    others_most: int
    """The most that any other process has."""
    seconds: float
    reason: str
    called_from: SourceLocation | None


@dataclass(frozen=True, slots=True)
class BesideOthers:
    """What distinguishes a process."""

    index: int
    parts: tuple[PartBeside, ...] | None
    """The largest difference first; None where too little was seen of its loop, or of any other."""
    compiled: tuple[CompiledBeside, ...]
    """What it compiled again, the most beyond the others first."""


def beside_others(processes: Sequence[ProcessFigures], index: int) -> BesideOthers | None:
    """The process with that index beside the others; None if it is not there."""
    process = next((each for each in processes if each.index == index), None)
    if process is None:
        return None
    others = [each for each in processes if each is not process]
    return BesideOthers(index, _parts(process, others), tuple(_compiled(process, others)))


def _parts(process: ProcessFigures, others: Sequence[ProcessFigures]) -> tuple[PartBeside, ...] | None:
    loop = process.loop
    rows = []
    for part in PARTS:
        found = share_beside(process, others, part)
        if found is None or loop is None:
            return None
        share, usual = found
        more = (share - usual) * loop.seconds
        rows.append(PartBeside(part, share, usual, more, loop.line_of(part) if share else None))
    return tuple(sorted(rows, key=lambda row: -row.more_seconds))


def _compiled(process: ProcessFigures, others: Sequence[ProcessFigures]) -> list[CompiledBeside]:
    most: dict[tuple[str, int | None], int] = {}
    for other in others:
        for each in other.again or ():
            key = each.function, each.defined_line
            most[key] = max(most.get(key, 0), each.count)
    rows = [
        CompiledBeside(
            each.function,
            each.count,
            most.get((each.function, each.defined_line), 0),
            each.seconds,
            each.reason,
            each.called_from,
        )
        for each in process.again or ()
    ]
    return sorted(rows, key=lambda row: (row.others_most - row.count, -row.seconds))
