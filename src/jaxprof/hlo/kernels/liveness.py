"""Estimate how much memory a scheduled module needs at each of its instructions, from its text.

Arguments and constants are always alive. Any other value is alive from the instruction that makes it to its last use,
in a slot that later values may take over. Instructions that only name a value (bitcast, tuple, get-tuple-element, the
done of a pair) need no slot; a loop's state, an update in slot, a donated argument and an operand that a library
overwrites keep theirs, and what a call passes through stays where it is. The result of an elementwise kernel, or of a
fused update in slot, takes over the slot of an operand of its size that is no longer needed, as XLA's assignment allows
(`HloDataflowAnalysis::CanShareOperandBufferWithUser`). Memory that a loop, branch or call needs inside counts where it
is called.

The peak is what must be alive at once. XLA's assignment takes more: it reserves the outputs from the beginning (and
lets temporaries use their memory if possible), aligns, leaves gaps, and keeps the branches of a conditional apart. On
the programs of the tests it takes up to half more, and never less.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from jaxprof.base import values
from jaxprof.base.grouping import grouped, peaks
from jaxprof.base.values import frozen
from jaxprof.events import HeldBuffer
from jaxprof.hlo.kernels.cost.traffic import is_update_of_parameter
from jaxprof.hlo.kernels.execution import Execution
from jaxprof.hlo.kernels.kinds import platform_of
from jaxprof.hlo.kernels.opcodes import ARITHMETIC, NAMING, TRANSCENDENTAL
from jaxprof.hlo.shape import HOST_MEMORY, MAIN_MEMORY, Shape
from jaxprof.hlo.text.model import Computation, Instruction, Module

_IN_PLACE = frozenset({"while", "dynamic-update-slice", "scatter", "async-update", "set-dimension-size"})
"""Opcodes whose result stays in the memory of the first operand."""
_TAKES_OVER_SLOT = (ARITHMETIC | TRANSCENDENTAL | {"sort", "copy", "all-reduce", "all-reduce-start", "map"}) - {
    "compare", "convert", "is-finite",
}  # fmt: skip
"""Opcodes whose result may take over an operand's slot; those that change the dtype may not."""


_ALIAS = re.compile(r"\{([\d, ]*)\}: \((\d+), \{([\d, ]*)\}\)")
"""Path in the result, number of the operand, and path in it, in `output_to_operand_aliasing`."""


@dataclass(slots=True)
class BufferSlot:
    """A piece of memory, which several successive values can share."""

    bytes: int
    maker: Instruction
    shape: Shape
    kind: str
    first: int
    last: int
    successor: BufferSlot | None = None
    """Slot that took this one over and is the same memory."""

    @property
    def end(self) -> int:
        """Last instruction at which the slot counts; it ends just before the slot that takes it over begins."""
        return self.last if self.successor is None else max(self.successor.first - 1, self.first)


class Scope:
    """The slots of one computation, and what is alive at each of its instructions."""

    def __init__(
        self, computation: Computation, inner: Mapping[str, list[Scope]], *, tpu: bool, is_entry: bool, calls: int
    ) -> None:
        self.inner = inner
        self.called_again = calls > 1
        self.instructions = computation.instructions
        self.slots: list[BufferSlot] = []
        self._tpu = tpu
        self._is_entry = is_entry
        self._contents: dict[str, Held] = {}
        self._passed: list[tuple[Scope, int, BufferSlot, BufferSlot]] = []
        """Callee and position of each call, with the slot of a parameter and that of its operand."""
        for position, instruction in enumerate(self.instructions):
            self._contents[instruction.name] = self._slots_of_result(instruction, position)
            if instruction.opcode not in NAMING | {"tuple", "get-tuple-element"}:
                for operand in instruction.operands:
                    for slot in _slots(self._contents.get(operand, [])):
                        slot.last = position
        self.parameters = [self._contents[each.name] for each in computation.parameters]
        self.result = self._contents.get(computation.root.name, []) if computation.root is not None else []
        self._end(computation)
        self._take_over()
        for callee, position, own, outer in self._passed:
            # An operand that nobody needs after the call lives as long as the callee needs it.
            if outer.kind == "temporary" and outer.end == position > outer.first and not callee.called_again:
                outer.last -= 1
                own.bytes, own.kind, own.maker, own.shape = outer.bytes, outer.kind, outer.maker, outer.shape
                callee.measure()
        self.measure()

    def measure(self) -> None:
        """Find how much is alive at each instruction, and where it is most."""
        self.alive = self.over_schedule("temporary")
        """Bytes of temporaries at each instruction, including the computations that it calls."""
        self.peak_at = max(range(len(self.alive)), key=self.alive.__getitem__, default=0)
        self.peak_bytes = self.alive[self.peak_at] if self.alive else 0

    def _slots_of_result(self, instruction: Instruction, position: int) -> Held:
        """Return the slots of an instruction's value: those of other values, or new ones."""
        opcode, given = instruction.opcode, [self._contents.get(name, []) for name in instruction.operands]
        if opcode == "tuple":
            return given
        if opcode == "call" and (called := self.inner.get(instruction.name)):
            return self._slots_of_call(instruction, called[0], given, position)
        held: Held = []
        if opcode == "get-tuple-element" and given:
            held = _member(given[0], next(iter(instruction.integers("index")), -1))
        elif (opcode in NAMING or opcode in _IN_PLACE) and given:
            held = given[0]
        elif opcode.endswith("-done") and given:
            held, start = given[0], instruction.operand(0)
            if start is not None and start.shape.is_tuple and len(instruction.shape.leaves()) != len([*_slots(held)]):
                held = _member(held, 0 if start.opcode == "copy-start" else 1)
        elif opcode.endswith("-start") and instruction.shape.is_tuple and given:
            return self._slots_of_start(instruction, given, position)
        if held != [] and len([*_slots(held)]) == len(instruction.shape.leaves()):
            return held
        made = [self._new(instruction, instruction.shape, position)]
        for result, number, path in _ALIAS.findall(instruction.attributes.get("output_to_operand_aliasing", "")):
            # A result that a library writes into its operand: the new slot is none.
            kept = _at_path(given[int(number)], path) if int(number) < len(given) else []
            parent, _, last = ("0," + result).replace(" ", "").rstrip(",").rpartition(",")
            siblings = _at_path(made, parent)
            new = _member(siblings, int(last))
            if isinstance(new, BufferSlot) and isinstance(kept, BufferSlot) and isinstance(siblings, list):
                new.bytes, siblings[int(last)] = 0, kept
        return made[0]

    def _slots_of_call(self, call: Instruction, callee: Scope, given: list[Held], position: int) -> Held:
        """Return the slots of the result of a call. What of it is in the memory of a parameter is in that of an
        operand; operands that nobody needs afterwards end where the callee has used them for the last time."""
        pairs = [
            pair
            for own_held, outer_held in zip(callee.parameters, given, strict=False)
            for pair in zip(_slots(own_held), _slots(outer_held), strict=False)
        ]
        operands = {id(own): outer for own, outer in pairs}
        self._passed += [(callee, position, own, outer) for own, outer in pairs]

        def result(held: Held, shape: Shape) -> Held:
            members = shape.tuple_shapes
            if isinstance(held, list) and len(held) == len(members):
                return [result(each, member) for each, member in zip(held, members, strict=True)]
            kept = operands.get(id(held))
            return kept if kept is not None else self._new(call, shape, position)

        return result(callee.result, call.shape)

    def _new(self, instruction: Instruction, shape: Shape, position: int) -> Held:
        if shape.is_tuple or shape.tuple_shapes:
            return [self._new(instruction, member, position) for member in shape.tuple_shapes]
        kind = "temporary"
        if instruction.opcode == "parameter":
            kind = "argument" if self._is_entry else "given"
        elif instruction.opcode == "constant":
            kind = "constant"
        # Only the device's own memory counts: on a TPU every other space is on the chip, elsewhere all but the host's
        # is its own.
        space = shape.layout.memory_space if shape.layout else MAIN_MEMORY
        size = 0 if space == HOST_MEMORY or (self._tpu and space) else shape.padded_bytes
        self.slots.append(BufferSlot(size, instruction, shape, kind, position, position))
        return self.slots[-1]

    def _slots_of_start(self, instruction: Instruction, given: list[Held], position: int) -> Held:
        """Return the slots of `((operands), results, ...)`, or of `(result, operand, context)` for `copy-start`.
        Operands keep theirs."""
        old = 1 if instruction.opcode == "copy-start" else 0
        count = len([*_slots(given)])
        return [
            given if number == old and len(member.leaves()) == count else self._new(instruction, member, position)
            for number, member in enumerate(instruction.shape.tuple_shapes)
        ]

    def _end(self, computation: Computation) -> None:
        """Keep the computation's result alive to the end. A called computation writes it where its caller needs it."""
        for slot in _slots(self.result):
            slot.last = max(len(self.instructions) - 1, 0)
            if slot.kind == "temporary":
                slot.kind = "output" if self._is_entry else "given"
        # Outputs that are written into an argument's buffer take no memory of their own.
        for path in computation.module.aliases if self._is_entry else ():
            output = next(_slots(_member(self.result, path[0]) if path else self.result), None)
            if len(path) < 2 and output is not None and output.kind == "output":
                output.kind = "given"

    def _take_over(self) -> None:
        """Let results take over the slots of operands that end there, so both share one slot."""
        made = grouped((slot.maker.name, slot) for slot in self.slots)
        for position, instruction in enumerate(self.instructions):
            may = instruction.opcode in _TAKES_OVER_SLOT
            if instruction.opcode == "fusion":
                root = instruction.called_root
                is_elementwise = instruction.attributes.get("kind") == "kLoop"
                may = is_elementwise or (root is not None and is_update_of_parameter(root))
            if not may:
                continue
            free = [
                slot
                for operand in dict.fromkeys(instruction.operands)
                for slot in _slots(self._contents.get(operand, []))
                if slot.last == position and slot.kind == "temporary" and slot.successor is None
            ]
            for slot in made.get(instruction.name, ()):
                before = next(
                    (earlier for earlier in free if earlier.bytes == slot.bytes and earlier.maker is not instruction),
                    None,
                )
                if before is not None:
                    free.remove(before)
                    before.successor = slot
        for slot in reversed(self.slots):  # the last slot of a chain determines its kind
            if slot.successor is not None:
                slot.kind = slot.successor.kind

    def over_schedule(self, *kinds: str) -> list[int]:
        """Return the bytes of these kinds at each instruction, including the computations that it calls."""
        change = [0] * (len(self.instructions) + 1)
        for slot in self.slots:
            if slot.kind in kinds:
                change[slot.first] += slot.bytes
                change[slot.end + 1] -= slot.bytes
        sizes: list[int] = []
        total = 0
        for position, instruction in enumerate(self.instructions):
            total += change[position]
            called = self.inner.get(instruction.name)
            sizes.append(total + (max(scope.peak_bytes for scope in called) if called else 0))
        return sizes

    def within(self, position: int) -> list[BufferSlot]:
        """Return the temporaries that the computations called at an instruction need, at the peak of the largest."""
        called = self.inner.get(self.instructions[position].name)
        return max(called, key=lambda scope: scope.peak_bytes).at_peak() if called else []

    def at_peak(self) -> list[BufferSlot]:
        """Return the temporaries alive at the computation's own peak, including those of the computations that it calls
        there."""
        if not self.instructions:
            return []
        at = self.peak_at
        own = [slot for slot in self.slots if slot.kind == "temporary" and slot.first <= at <= slot.end]
        return own + self.within(at)


Held: TypeAlias = "BufferSlot | list[Held]"
"""The slots of a value: one for an array, a list for a tuple."""


def _slots(held: Held) -> Iterator[BufferSlot]:
    waiting = [held]
    while waiting:  # without recursion, because a file may nest tuples deeper than Python's stack
        each = waiting.pop()
        if isinstance(each, BufferSlot):
            yield each
        else:
            waiting += reversed(each)


def _at_path(held: Held, path: str) -> Held:
    """Return the slots at a path of indices into nested tuples, such as `1, 0`; empty if there are none."""
    for index in path.split(",") if path.strip() else ():
        held = _member(held, int(index))
    return held


def _member(held: Held, number: int) -> Held:
    return held[number] if isinstance(held, list) and 0 <= number < len(held) else []


MOST_POINTS = 4096
"""Most points of live size over the schedule; a longer schedule is thinned, but keeps every peak."""
MOST_VALUES = 512
"""Most values that are listed, largest first."""


@values.frozen(kw_only=True)
class LiveValue(HeldBuffer):
    """A value that takes memory, and where it came from; `op_name` of an argument is its name. If several values use
    one slot in turn, it is the value that names the slot."""

    at_peak: bool | None = None
    """Whether the value is alive at the instruction with the highest live size; None if unknown."""
    spans: tuple[tuple[int, int], ...] = ()
    """First and last position, in the entry's schedule, of each span over which the value is alive. A value inside a
    loop, branch or call is alive where that is called, if it belongs to the peak there."""

    def is_alive(self, position: int) -> bool:
        """Return whether the value takes memory at a position of the entry's schedule."""
        return any(first <= position <= last for first, last in self.spans)


@frozen
class SchedulePoint:
    """An instruction of the entry, and the bytes alive while it runs."""

    position: int
    """Position in the entry's schedule, from 0."""
    bytes: int
    instruction: str
    op_name: str
    file: str
    line: int | None


@frozen
class Liveness:
    """Memory of a module over its schedule."""

    peak_bytes: int
    """Highest of `live_bytes`: the least memory that the module needs in this order."""
    parts: Mapping[str, int]
    """Bytes of each kind at the peak, which add up to `peak_bytes`."""
    values: tuple[LiveValue, ...]
    """Values by size, largest first, at most `MOST_VALUES`."""
    points: tuple[SchedulePoint, ...]
    """Instructions of the entry in order; an output counts from where it is made. A schedule of more than `MOST_POINTS`
    keeps the highest point of each section."""
    length: int
    """Number of instructions of the entry."""

    @property
    def live_bytes(self) -> tuple[int, ...]:
        """Bytes alive at each point."""
        return tuple(point.bytes for point in self.points)

    @property
    def peak_at(self) -> int:
        """Index of the highest point, the first of equals."""
        return max(range(len(self.points)), key=lambda number: self.points[number].bytes)

    def alive(self, number: int) -> tuple[LiveValue, ...]:
        """Return the values that take memory at a point, largest first. They add up to the bytes of the point, unless
        the module has more than `MOST_VALUES`."""
        position = self.points[number].position
        return tuple(value for value in self.values if value.is_alive(position))


def liveness(module: Module) -> Liveness | None:
    """Return the memory of `module`; None if its text is not in execution order or it has no entry."""
    if not module.is_scheduled or module.entry is None or not module.entry.instructions:
        return None
    execution = module.once(Execution)
    tpu = platform_of(module) == "tpu"
    calls = Counter(edge.callee for edges in execution.edges.values() for edge in edges)
    done: dict[str, Scope] = {}
    for name in execution.post_order:
        computation = module.get(name)
        if computation is not None:
            known = (edge for edge in execution.edges[name] if edge.callee in done)
            inner = grouped((edge.caller.name, done[edge.callee]) for edge in known)
            done[name] = Scope(computation, inner, tpu=tpu, is_entry=computation is module.entry, calls=calls[name])
    entry = done.get(module.entry.name)
    return _summary(entry, done) if entry is not None else None


def _summary(entry: Scope, scopes: Mapping[str, Scope]) -> Liveness:
    every = [slot for scope in scopes.values() for slot in scope.slots if slot.kind != "given" and slot.bytes]
    argument, constant = (sum(slot.bytes for slot in every if slot.kind == kind) for kind in ("argument", "constant"))
    both = entry.over_schedule("temporary", "output")
    highest = max(range(len(both)), key=both.__getitem__)
    temporary = entry.alive[highest]
    parts = {
        "argument": argument, "output": both[highest] - temporary, "temporary": temporary, "constant": constant
    }  # fmt: skip
    # The instructions of the entry over which each slot, by its id(), takes memory.
    spans = {id(slot): [(slot.first, slot.end)] for slot in entry.slots}
    for position in range(len(entry.instructions)):
        for slot in entry.within(position):
            spans.setdefault(id(slot), []).append((position, position))
    always = ((0, len(both) - 1),)
    every.sort(key=lambda slot: -slot.bytes)
    values = tuple(
        _value(slot, always if slot.kind in ("argument", "constant") else tuple(spans.get(id(slot), ())), highest)
        for slot in every[:MOST_VALUES]
    )
    points = tuple(
        SchedulePoint(at, both[at] + argument + constant, instruction.name, *instruction.origin)
        for at in peaks(both, MOST_POINTS)
        for instruction in entry.instructions[at : at + 1]
    )
    return Liveness(sum(parts.values()), parts, values, points, len(both))


def _value(slot: BufferSlot, spans: tuple[tuple[int, int], ...], peak: int) -> LiveValue:
    maker = slot.maker
    op_name, file, line = maker.origin
    return LiveValue(
        bytes=slot.bytes,
        kind=slot.kind,
        instruction=maker.name,
        shape=str(slot.shape),
        op_name=op_name,
        file=file,
        line=line,
        at_peak=any(first <= peak <= last for first, last in spans),
        spans=spans,
    )
