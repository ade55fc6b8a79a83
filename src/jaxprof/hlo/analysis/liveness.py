"""How much memory a scheduled module needs at each of its instructions, derived from the text: an estimate.

Arguments and constants are always alive; any other value from the instruction that makes it to its last use, in a place
that others may take over (`buffer_slots`).

The peak is what must be alive at once. XLA's assignment takes more: it holds the outputs from the beginning (and lets
temporaries use their places where it can), aligns, leaves gaps, and keeps the branches of a conditional apart. On the
programs of the tests it takes up to a third more, and never less.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from jaxprof.hlo.analysis.buffer_slots import Scope, Spaces
from jaxprof.hlo.analysis.execution import Execution
from jaxprof.hlo.analysis.platform import platform_of
from jaxprof.hlo.frames import own_frame

if TYPE_CHECKING:
    from jaxprof.hlo.analysis.buffer_slots import BufferSlot
    from jaxprof.hlo.model import Instruction, Module

MOST_POINTS: Final = 4096
"""Most points of the live size over the schedule: a longer schedule is thinned, and every peak is kept."""
MOST_VALUES: Final = 512
"""Most values that are listed, the largest first."""


@dataclass(frozen=True, slots=True)
class LiveValue:
    """A value that takes memory, with where it came from."""

    bytes: int
    kind: str
    """`argument`, `output`, `temporary` or `constant`."""
    instruction: str
    shape: str
    op_name: str
    """The operation in JAX's words; of an argument, its name."""
    file: str
    line: int | None
    at_peak: bool
    """Whether it is alive at the instruction with the highest live size."""
    spans: tuple[tuple[int, int], ...]
    """The first and the last position in the entry's schedule of each stretch over which it is alive. A value inside a
    loop, branch or call is alive where that is called, if it is among what is needed there at the most."""

    def is_alive(self, position: int) -> bool:
        """Whether it takes memory at a position of the entry's schedule."""
        return any(first <= position <= last for first, last in self.spans)


@dataclass(frozen=True, slots=True)
class SchedulePoint:
    """An instruction of the entry, and the bytes that are alive while it runs."""

    position: int
    """In the entry's schedule, from 0."""
    bytes: int
    instruction: str
    op_name: str
    file: str
    line: int | None


@dataclass(frozen=True, slots=True)
class Liveness:
    """What the schedule of a module shows about its memory."""

    peak_bytes: int
    """The highest of `live_bytes`: the least memory that the module needs in this order."""
    parts: Mapping[str, int]
    """Bytes of each kind at that instruction, which add up to `peak_bytes`."""
    values: tuple[LiveValue, ...]
    """The largest first, at most `MOST_VALUES`."""
    points: tuple[SchedulePoint, ...]
    """The instructions of the entry, in order; an output counts from where it is made. At most `MOST_POINTS`: of a
    longer schedule the highest of each section."""
    length: int
    """Instructions of the entry."""

    @property
    def live_bytes(self) -> tuple[int, ...]:
        """The bytes of each point."""
        return tuple(point.bytes for point in self.points)

    @property
    def peak_at(self) -> int:
        """The number of the highest point, the first of equals."""
        return max(range(len(self.points)), key=lambda number: self.points[number].bytes)

    def alive(self, number: int) -> tuple[LiveValue, ...]:
        """The values that take memory at a point, the largest first. They add up to the bytes of the point, unless the
        module has more than `MOST_VALUES`."""
        position = self.points[number].position
        return tuple(value for value in self.values if value.is_alive(position))


def liveness(module: Module) -> Liveness | None:
    """The memory of `module`; None where its order is not the order of execution, or it has no entry."""
    if not module.is_scheduled or module.entry is None or not module.entry.instructions:
        return None
    execution = Execution(module)
    spaces = Spaces(tpu=platform_of(module) == "tpu")
    done: dict[str, Scope] = {}
    for name in execution.post_order():
        computation = module.get(name)
        if computation is not None:
            inner: dict[str, list[Scope]] = {}
            for edge in execution.edges[name]:
                if edge.callee in done:
                    inner.setdefault(edge.caller.name, []).append(done[edge.callee])
            done[name] = Scope(computation, inner, spaces, is_entry=computation is module.entry)
    entry = done.get(module.entry.name)
    return _summary(entry, done) if entry is not None else None


def _summary(entry: Scope, scopes: Mapping[str, Scope]) -> Liveness:
    every = [place for scope in scopes.values() for place in scope.places if place.kind != "given" and place.bytes]
    argument, constant = (
        sum(place.bytes for place in every if place.kind == kind) for kind in ("argument", "constant")
    )
    both = entry.over_schedule()
    highest = max(range(len(both)), key=both.__getitem__)
    temporary = entry.alive[highest]
    parts = {
        "argument": argument, "output": both[highest] - temporary, "temporary": temporary, "constant": constant
    }  # fmt: skip
    spans = _spans(entry)
    always = ((0, len(both) - 1),)
    every.sort(key=lambda place: -place.bytes)
    values = tuple(
        _value(place, always if place.kind in ("argument", "constant") else spans.get(id(place), ()), highest)
        for place in every[:MOST_VALUES]
    )
    points = tuple(_point(entry.instructions[at], at, both[at] + argument + constant) for at in _highest_of(both))
    return Liveness(sum(parts.values()), parts, values, points, len(both))


def _spans(entry: Scope) -> dict[int, tuple[tuple[int, int], ...]]:
    """Over which instructions of the entry each place, by its id(), takes memory."""
    spans = {id(place): [(place.first, place.end)] for place in entry.places}
    for position in range(len(entry.instructions)):
        for place in entry.within(position):
            spans.setdefault(id(place), []).append((position, position))
    return {place: tuple(stretches) for place, stretches in spans.items()}


def _value(place: BufferSlot, spans: tuple[tuple[int, int], ...], peak: int) -> LiveValue:
    maker = place.maker
    op_name, file, line = _origin(maker)
    at_peak = any(first <= peak <= last for first, last in spans)
    return LiveValue(place.bytes, place.kind, maker.name, str(place.shape), op_name, file, line, at_peak, spans)


def _point(instruction: Instruction, position: int, size: int) -> SchedulePoint:
    return SchedulePoint(position, size, instruction.name, *_origin(instruction))


def _origin(instruction: Instruction) -> tuple[str, str, int | None]:
    """The operation in JAX's words, the file and the line."""
    frame = own_frame(instruction.stack)
    file, line = (frame.file, frame.line) if frame is not None else ("", None)
    return instruction.metadata.op_name.partition(";")[0], file, line


def thinned(sizes: Sequence[int], most: int = MOST_POINTS) -> tuple[int, ...]:
    """At most `most` points: the highest of each section, so that no peak is lost."""
    return tuple(sizes[at] for at in _highest_of(sizes, most))


def _highest_of(sizes: Sequence[int], most: int = MOST_POINTS) -> Sequence[int]:
    """The places of at most `most` sizes: the highest of each section."""
    if len(sizes) <= most:
        return range(len(sizes))
    edges = [number * len(sizes) // most for number in range(most + 1)]
    return [max(range(low, high), key=sizes.__getitem__) for low, high in pairwise(edges)]
