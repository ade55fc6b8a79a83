"""How much memory a scheduled module needs at each of its instructions, derived from the text: an estimate.

Arguments and constants are always alive; any other value from the instruction that makes it to its last use, in a place
that others may take over. What only names a value (bitcast, tuple, get-tuple-element, the done of a pair) makes none;
a loop's state, an update in place and a donated argument stay where they are. The result of an elementwise kernel, or
of a fused update in place, takes the place of an operand of its size that is no longer needed, as XLA's assignment lets
it (`HloDataflowAnalysis::CanShareOperandBufferWithUser`). What a loop, branch or call needs inside is added where it is
called.

The peak is what must be alive at once. XLA's assignment takes more: it holds the outputs from the beginning (and lets
temporaries use their places where it can), aligns, leaves gaps, and keeps the branches of a conditional apart. On the
programs of the tests it takes up to a third more, and never less.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from jaxprof.hlo.analysis.cost.traffic import updates_in_place
from jaxprof.hlo.analysis.execution import Execution
from jaxprof.hlo.analysis.opcodes import ARITHMETIC, TRANSCENDENTAL
from jaxprof.hlo.analysis.platform import platform_of
from jaxprof.hlo.frames import own_frame

if TYPE_CHECKING:
    from jaxprof.hlo.model import Computation, Instruction, Module
    from jaxprof.hlo.shape import Shape


_HOST: Final = 5
_NAMING: Final = frozenset({"bitcast", "tuple", "get-tuple-element", "opt-barrier", "optimization-barrier", "domain"})
_FIRST_OPERAND: Final = frozenset({"bitcast", "opt-barrier", "optimization-barrier", "domain", "add-dependency"})
_IN_PLACE: Final = frozenset({"while", "dynamic-update-slice", "scatter", "async-update", "set-dimension-size"})
"""The result is where the first operand was."""
_TAKES_A_PLACE: Final = (
    ARITHMETIC | TRANSCENDENTAL | {"sort", "copy", "all-reduce", "all-reduce-start", "map", "reverse"}
) - {"compare", "convert", "is-finite", "reverse"}
_ALIAS: Final = re.compile(r"\{\s*([\d,\s]*)\}\s*:\s*\(\s*(\d+)\s*,\s*\{\s*([\d,\s]*)\}")


@dataclass(slots=True)
class BufferSlot:
    """A place in memory; several values that follow each other can share it."""

    bytes: int
    maker: Instruction
    shape: Shape
    kind: str
    first: int
    last: int
    successor: BufferSlot | None = None
    """The place that took this one over, and is the same memory."""

    @property
    def end(self) -> int:
        """The last instruction at which it counts: a place that takes over begins when the previous one ends."""
        return self.last if self.successor is None else max(self.successor.first - 1, self.first)


@dataclass(frozen=True, slots=True)
class Spaces:
    """Which memory is counted: the device's own. On a TPU every other space is on the chip, elsewhere only 5 is not."""

    tpu: bool

    def bytes(self, shape: Shape) -> int:
        """Bytes of the counted memory that a leaf takes, with its padding."""
        space = shape.layout.memory_space if shape.layout else 0
        return 0 if space == _HOST or (self.tpu and space) else shape.padded_bytes


class Scope:
    """One computation: its places, and what is alive at each of its instructions."""

    def __init__(
        self, computation: Computation, inner: Mapping[str, list[Scope]], spaces: Spaces, *, is_entry: bool
    ) -> None:
        self.inner = inner
        self.instructions = computation.instructions
        self.places: list[BufferSlot] = []
        self._spaces = spaces
        self._is_entry = is_entry
        self._contents: dict[str, list[BufferSlot]] = {}
        self._offsets: dict[str, list[int]] = {}
        for position, instruction in enumerate(self.instructions):
            self._contents[instruction.name] = self._made_by(instruction, position)
            if instruction.opcode not in _NAMING:
                for operand in instruction.operands:
                    for place in self._contents.get(operand, ()):
                        place.last = position
        self._end(computation)
        self._take_over()
        self.alive = self._alive({"temporary"})
        """Bytes of temporaries at each instruction, including what it calls."""
        self.peak_at = max(range(len(self.alive)), key=self.alive.__getitem__, default=0)
        self.peak_bytes = self.alive[self.peak_at] if self.alive else 0

    def _made_by(self, instruction: Instruction, position: int) -> list[BufferSlot]:
        """The places of the leaves of an instruction's value: those of others, or new ones."""
        opcode, given = instruction.opcode, [self._contents.get(name, []) for name in instruction.operands]
        if opcode == "tuple":
            return [place for places in given for place in places]
        leaves = instruction.shape.leaves()
        if opcode == "get-tuple-element":
            slots = self._element(instruction)
        elif opcode in _FIRST_OPERAND or opcode in _IN_PLACE:
            slots = given[0] if given else []
        elif opcode.endswith("-done") and given:
            slots = self._finished(instruction, given[0])
        elif opcode.endswith("-start") and instruction.shape.is_tuple and given:
            return self._started(instruction, given, position)
        else:
            slots = []
        return slots if slots and len(slots) == len(leaves) else self._new(instruction, leaves, position)

    def _new(self, instruction: Instruction, leaves: Iterable[Shape], position: int) -> list[BufferSlot]:
        kind = "temporary"
        if instruction.opcode == "parameter":
            kind = "argument" if self._is_entry else "given"
        elif instruction.opcode == "constant":
            kind = "constant"
        made = [BufferSlot(self._spaces.bytes(leaf), instruction, leaf, kind, position, position) for leaf in leaves]
        self.places += made
        return made

    def _element(self, instruction: Instruction) -> list[BufferSlot]:
        source, numbers = instruction.operand(0), instruction.integers("index")
        if source is None or not numbers:
            return []
        offsets = self._offsets.get(source.name)
        if offsets is None:
            offsets = self._offsets[source.name] = _offsets(source.shape)
        number = numbers[0]
        if not 0 <= number < len(offsets) - 1:
            return []
        return self._contents.get(source.name, [])[offsets[number] : offsets[number + 1]]

    def _started(self, instruction: Instruction, given: list[list[BufferSlot]], position: int) -> list[BufferSlot]:
        """`((operands), results, ...)`; of `copy-start` `(result, operand, context)`. Operands are where they were."""
        operands = [place for places in given for place in places]
        old = 1 if instruction.opcode == "copy-start" else 0
        slots: list[BufferSlot] = []
        for number, member in enumerate(instruction.shape.tuple_shapes):
            leaves = member.leaves()
            same = number == old and len(leaves) == len(operands)
            slots += operands if same else self._new(instruction, leaves, position)
        return slots

    def _finished(self, done: Instruction, started: list[BufferSlot]) -> list[BufferSlot]:
        start = done.operand(0)
        if start is None or not start.shape.is_tuple or len(done.shape.leaves()) == len(started):
            return started
        offsets = _offsets(start.shape)
        number = 0 if start.opcode == "copy-start" else 1
        return started[offsets[number] : offsets[number + 1]] if number + 1 < len(offsets) else []

    def _end(self, computation: Computation) -> None:
        """The computation's result is alive to the end; a called computation writes it where its caller needs it."""
        root = computation.root
        for place in self._contents.get(root.name, ()) if root is not None else ():
            place.last = max(len(self.instructions) - 1, 0)
            if place.kind == "temporary":
                place.kind = "output" if self._is_entry else "given"
        if self._is_entry and root is not None:
            self._donate(computation, root)

    def _donate(self, computation: Computation, root: Instruction) -> None:
        """Outputs that are written into an argument's buffer take none of their own."""
        given, offsets = self._contents[root.name], _offsets(root.shape)
        for text in computation.module.aliases:
            alias = _ALIAS.search(text)
            path = list(map(int, re.findall(r"\d{1,18}", alias[1]))) if alias is not None else []
            at = offsets[path[0]] if path and path[0] < len(offsets) - 1 else 0
            if alias is not None and len(path) < 2 and at < len(given) and given[at].kind == "output":
                given[at].kind = "given"

    def _take_over(self) -> None:
        """Lets results take the places of operands that end there, so that both share one place."""
        made: dict[str, list[BufferSlot]] = {}
        for place in self.places:
            made.setdefault(place.maker.name, []).append(place)
        for position, instruction in enumerate(self.instructions):
            if not _may_take_a_place(instruction):
                continue
            free = [
                place
                for operand in dict.fromkeys(instruction.operands)
                for place in self._contents.get(operand, ())
                if place.last == position and place.kind == "temporary" and place.successor is None
            ]
            for place in made.get(instruction.name, ()):
                before = next(
                    (earlier for earlier in free if earlier.bytes == place.bytes and earlier.maker is not instruction),
                    None,
                )
                if before is not None:
                    free.remove(before)
                    before.successor = place
        for place in reversed(self.places):  # a chain of places is of the kind of its last one
            if place.successor is not None:
                place.kind = place.successor.kind

    def _alive(self, kinds: set[str]) -> list[int]:
        """Bytes at each instruction, with what it calls."""
        change = [0] * (len(self.instructions) + 1)
        for place in self.places:
            if place.kind in kinds:
                change[place.first] += place.bytes
                change[place.end + 1] -= place.bytes
        sizes: list[int] = []
        total = 0
        for position, instruction in enumerate(self.instructions):
            total += change[position]
            called = self.inner.get(instruction.name)
            sizes.append(total + (max(scope.peak_bytes for scope in called) if called else 0))
        return sizes

    def over_schedule(self) -> list[int]:
        """Of the entry: temporaries and outputs at each instruction."""
        return self._alive({"temporary", "output"})

    def within(self, position: int) -> list[BufferSlot]:
        """The temporaries that the computations called at an instruction need, at the peak of the largest of them."""
        called = self.inner.get(self.instructions[position].name)
        if not called:
            return []
        deepest = max(called, key=lambda scope: scope.peak_bytes)
        return deepest.at_peak()

    def at_peak(self) -> list[BufferSlot]:
        """The temporaries that are alive at the computation's own peak, with those of what it calls there."""
        if not self.instructions:
            return []
        at = self.peak_at
        own = [place for place in self.places if place.kind == "temporary" and place.first <= at <= place.end]
        return own + self.within(at)


def _may_take_a_place(instruction: Instruction) -> bool:
    if instruction.opcode != "fusion":
        return instruction.opcode in _TAKES_A_PLACE
    called = instruction.called_computations()
    root = called[0].root if called else None
    return instruction.attributes.get("kind") == "kLoop" or (root is not None and updates_in_place(root))


def _offsets(shape: Shape) -> list[int]:
    """Where each member of a tuple begins among its leaves, and the end."""
    offsets = [0]
    for member in shape.tuple_shapes:
        offsets.append(offsets[-1] + len(member.leaves()))
    return offsets


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
