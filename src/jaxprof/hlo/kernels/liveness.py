"""Estimate how much memory a scheduled module needs at each of its instructions, from its text.

Arguments and constants are always alive. Any other value is alive from the instruction that makes it to its last use,
in a slot that later values may take over. Instructions that only name a value (bitcast, tuple, get-tuple-element, the
done of a pair) need no slot; a loop's state, an update in place, a donated argument and an operand that a library
overwrites keep theirs, and what a call passes through stays where it is. The result of an elementwise kernel, or of a
fused update in place, takes over the slot of an operand of its size that is no longer needed, as XLA's assignment
allows (`HloDataflowAnalysis::CanShareOperandBufferWithUser`). Memory that a loop, branch or call needs inside counts
where it is called.

XLA reserves the outputs from the beginning, and lets temporaries use their memory before. Where its assignment is
greedy, this one takes the better choice; XLA also aligns, and leaves gaps. `bench/memory.py` holds the peak against
what XLA takes.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import nsmallest
from math import inf
from typing import TypeAlias

from jaxprof.base import values
from jaxprof.base.grouping import grouped, peaks
from jaxprof.base.values import frozen
from jaxprof.events import HeldBuffer
from jaxprof.hlo.kernels import ARITHMETIC, NAMING, TRANSCENDENTAL
from jaxprof.hlo.kernels.cost.model import is_update_of_parameter
from jaxprof.hlo.kernels.execution import Execution
from jaxprof.hlo.kernels.kinds import platform_of
from jaxprof.hlo.shape import HOST_MEMORY, MAIN_MEMORY, Shape
from jaxprof.hlo.text.model import Computation, Instruction, Module

_IN_PLACE = frozenset({"while", "dynamic-update-slice", "scatter", "async-update", "set-dimension-size"})
"""Opcodes whose result stays in the memory of the first operand."""
_TAKES_OVER_SLOT = (ARITHMETIC | TRANSCENDENTAL | {"sort", "copy", "all-reduce", "all-reduce-start", "map"}) - {
    "compare", "convert", "is-finite",
}  # fmt: skip
"""Opcodes whose result may take over an operand's slot; those that change the dtype may not."""
_AT_SAME_INDEX = ARITHMETIC | TRANSCENDENTAL | {"copy", "map", "tuple"}
"""Opcodes in a fusion that read their operands at the index that they write."""


_MOST_LENT = 1000
"""Most temporaries for which room in an output is searched, the largest ones."""
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
    reserved: bool = False
    """Whether it counts from the start, before it is needed."""

    @property
    def begin(self) -> int:
        """First instruction at which the slot counts."""
        return 0 if self.reserved else self.first

    @property
    def end(self) -> int:
        """Last instruction at which the slot counts; it ends just before the slot that takes it over begins."""
        return self.last if self.successor is None else max(self.successor.first - 1, self.first)


class Scope:
    """The slots of one computation, and what is alive at each of its instructions."""

    def __init__(
        self,
        computation: Computation,
        inner: Mapping[str, list[Scope]],
        *,
        platform: str,
        is_entry: bool,
        is_body: bool,
        calls: int,
    ) -> None:
        self.inner = inner
        self.called_again = calls > 1
        self.instructions = computation.instructions
        self.slots: list[BufferSlot] = []
        self._tpu = platform == "tpu"
        self._gpu = platform == "gpu"
        self._is_entry = is_entry
        self._is_body = is_body
        self._contents: dict[str, Held] = {}
        self._donated: dict[int, BufferSlot] = {}
        """Slot of the donated argument by the id() of that of the output in its buffer."""
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
        # In this order: what may be taken over is known once the outputs have their end, and how a call's operands end
        # once the caller's slots have theirs.
        self._end(computation)
        self._take_over()
        for callee, position, own, outer in self._passed:
            # An operand that nothing needs after the call lives as long as the callee needs it.
            if outer.kind == "temporary" and outer.end == position > outer.first and not callee.called_again:
                outer.last -= 1
                own.bytes, own.kind, own.maker, own.shape = outer.bytes, outer.kind, outer.maker, outer.shape
                callee.measure()
        if is_entry:
            self._reserve_outputs()
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
        # Opcodes that only name, or write in place, make no slot.
        held: Held = []
        if opcode == "get-tuple-element" and given:
            held = _member(given[0], next(iter(instruction.integers("index")), -1))
        elif (opcode in NAMING or opcode in _IN_PLACE) and given:
            held = given[0]
        elif opcode.endswith("-done") and given:
            held, start = given[0], instruction.operand(0)
            # The start's tuple has operands and results, the latter of which the end yields.
            if start is not None and start.shape.is_tuple and len(instruction.shape.leaves()) != len([*_slots(held)]):
                held = _member(held, 0 if start.opcode == "copy-start" else 1)
        elif opcode.endswith("-start") and instruction.shape.is_tuple and given:
            # The slots of `((operands), results, ...)`, or of `(result, operand, context)` for `copy-start`: operands
            # keep theirs.
            old = 1 if instruction.opcode == "copy-start" else 0
            count = len([*_slots(given)])
            return [
                given if number == old and len(member.leaves()) == count else self._new(instruction, member, position)
                for number, member in enumerate(instruction.shape.tuple_shapes)
            ]
        if held != [] and len([*_slots(held)]) == len(instruction.shape.leaves()):
            return held
        made = [self._new(instruction, instruction.shape, position)]
        # XLA writes `{1}: (0, {})`: result 1 is in the memory of operand 0.
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
        operand; operands that nothing needs afterwards end where the callee has used them for the last time."""
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

    def _end(self, computation: Computation) -> None:
        """Keep the computation's result alive to the end. A called computation writes it where its caller needs it."""
        for slot in _slots(self.result):
            slot.last = max(len(self.instructions) - 1, 0)
            if slot.kind == "temporary":
                slot.kind = "output" if self._is_entry else "given"
        # Outputs that are written into an argument's buffer take no memory of their own.
        for path, number in computation.module.aliases.items() if self._is_entry else ():
            output = next(_slots(_member(self.result, path[0]) if path else self.result), None)
            if len(path) < 2 and output is not None and output.kind == "output":
                output.kind = "given"
                donated = next(_slots(_member(self.parameters, number)), None)
                if donated is not None:
                    self._donated[id(output)] = donated

    def _take_over(self) -> None:
        """Let results take over the slots of operands that end there, so both share one slot."""
        made = grouped((slot.maker.name, slot) for slot in self.slots)
        for position, instruction in enumerate(self.instructions):
            free: list[BufferSlot] = []
            for operand in dict.fromkeys(instruction.operands) if instruction.name in made else ():
                held = _slots(self._contents.get(operand, []))
                ending = [
                    slot
                    for slot in held
                    if slot.last == position and slot.kind == "temporary" and slot.successor is None
                ]
                free += ending if ending and self._stays_in_place(instruction, operand) else ()
            for slot in made.get(instruction.name, ()) if free else ():
                before = next((earlier for earlier in free if self._fits(slot, earlier, instruction)), None)
                if before is not None:
                    free.remove(before)
                    before.successor = slot
        for slot in reversed(self.slots):  # the last slot of a chain determines its kind
            if slot.successor is not None:
                slot.kind = slot.successor.kind

    def _stays_in_place(self, instruction: Instruction, operand: str) -> bool:
        """Return whether each element of the result may be written where that of the operand was: the operand is read
        at the index that is written, wherever a fusion takes it, or is updated in place."""
        if instruction.opcode != "fusion":
            return instruction.opcode in _TAKES_OVER_SLOT
        root, called = instruction.called_root, instruction.callees()
        if root is not None and is_update_of_parameter(root):
            return True
        if instruction.attributes.get("kind") != "kLoop" or not called:
            return False
        parameters = called[0].parameters
        waiting = [
            parameters[number]
            for number, name in enumerate(instruction.operands)
            if name == operand and number < len(parameters)
        ]
        seen: set[str] = set()
        while waiting:
            value = waiting.pop()
            for user in value.users:
                is_updated = user.opcode == "dynamic-update-slice" and value.name not in user.operands[1:]
                if not (user.opcode in _AT_SAME_INDEX or is_updated or (self._gpu and user.opcode in NAMING)):
                    return False
                if user.name not in seen:
                    seen.add(user.name)
                    waiting.append(user)
        return True

    def _fits(self, slot: BufferSlot, earlier: BufferSlot, maker: Instruction) -> bool:
        """Return whether a slot of the result `maker` can be an earlier one. An output in a donated argument's buffer
        takes over only what can be there, too."""
        if earlier.bytes != slot.bytes or earlier.maker is maker or (not self._gpu and earlier.shape != slot.shape):
            return False
        if self._is_body and slot.kind == "given" and not self._gpu:
            return False  # the next state of a loop, whose memory holds the present one
        donated = self._donated.get(id(slot))
        if donated is None or earlier.first > donated.last:
            return True
        is_update = earlier.first == donated.last and earlier.shape == donated.shape
        return is_update and self._stays_in_place(earlier.maker, donated.maker.name)

    def _chains(self) -> Iterator[list[BufferSlot]]:
        """Yield the slots that are the same memory, in the order in which they take it over."""
        successors = {id(slot.successor) for slot in self.slots if slot.successor is not None}
        for slot in self.slots:
            if id(slot) not in successors:
                chain = [slot]
                while (following := chain[-1].successor) is not None:
                    chain.append(following)
                yield chain

    def _reserve_outputs(self) -> None:
        """Reserve the outputs from the start, as XLA does, with the temporaries that use their memory before they are
        made, or after a donated argument was read for the last time; those of called computations too. The largest come
        first, each in the smallest output that holds it."""
        chains = list(self._chains())
        outputs = [chain for chain in chains if chain[0].kind == "output"]
        donated = [(chain, self._donated[id(chain[-1])]) for chain in chains if id(chain[-1]) in self._donated]
        reserved: list[tuple[int, list[tuple[_Moment, _Moment]]]] = [
            *((chain[0].bytes, [_span(chain)]) for chain in outputs),
            *((chain[0].bytes, [((0,), (argument.last, inf)), _span(chain)]) for chain, argument in donated),
        ]
        reserved.sort(key=lambda each: each[0])
        temporaries: list[tuple[list[BufferSlot], _Moment, _Moment]] = []
        visited: list[tuple[Scope, _Moment]] = [(self, ())]
        for scope, called in visited:
            own = (chain for chain in scope._chains() if chain[0].kind == "temporary")
            temporaries += [(chain, *_span(chain, called)) for chain in own]
            visited += [
                (callee, (*called, position, number))
                for position, instruction in enumerate(scope.instructions)
                for number, callee in enumerate(scope.inner.get(instruction.name, ()))
                if not callee.called_again
            ]
        largest = nsmallest(_MOST_LENT, temporaries, key=lambda each: (-each[0][0].bytes, each[1][0] - each[2][0]))
        for chain, first, last in largest:
            for _, spans in reserved[bisect_left(reserved, chain[0].bytes, key=lambda each: each[0]) :]:
                at = bisect_left(spans, (first, last))
                if (at == 0 or spans[at - 1][1] < first) and (at == len(spans) or last < spans[at][0]):
                    spans.insert(at, (first, last))
                    for slot in chain:
                        slot.kind = "given"
                    break
        for output in outputs:
            output[0].reserved = True
        for scope, _ in reversed(visited):
            scope.measure()

    def over_schedule(self, *kinds: str, needed: bool = False) -> list[int]:
        """Return the bytes of these kinds at each instruction, including the computations that it calls. `needed`:
        without what is reserved for later."""
        change = [0] * (len(self.instructions) + 1)
        for slot in self.slots:
            if slot.kind in kinds:
                change[slot.first if needed else slot.begin] += slot.bytes
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


_Moment: TypeAlias = tuple[float, ...]
"""Position in the entry; within a computation that is called there, its number there and the position in it follow."""
Held: TypeAlias = "BufferSlot | list[Held]"
"""The slots of a value: one for an array, a list for a tuple."""


def _span(chain: Sequence[BufferSlot], called: _Moment = ()) -> tuple[_Moment, _Moment]:
    """Return when the slots of a chain begin and end, in a computation that is `called` at a moment."""
    return (*called, chain[0].first), (*called, chain[-1].last, inf)


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
    needed: int
    """Bytes of temporaries and outputs that are needed by now; the rest is reserved."""
    temporary: int
    """Bytes of temporaries among `bytes`."""


@frozen
class Liveness:
    """Memory of a module over its schedule."""

    peak_bytes: int
    """Highest of `live_bytes`."""
    parts: Mapping[str, int]
    """Bytes of each kind at the peak, which add up to `peak_bytes`."""
    values: tuple[LiveValue, ...]
    """Values by size, largest first, at most `MOST_VALUES`."""
    points: tuple[SchedulePoint, ...]
    """Instructions of the entry in order; an output counts from the start. A schedule of more than `MOST_POINTS`
    keeps the highest point of each section."""
    length: int
    """Number of instructions of the entry."""

    @property
    def live_bytes(self) -> tuple[int, ...]:
        return tuple(point.bytes for point in self.points)

    def parts_at(self, number: int) -> Mapping[str, int]:
        """Return the bytes of each kind at a point; arguments and constants are the same at all."""
        point, always = self.points[number], self.parts["argument"] + self.parts["constant"]
        return {**self.parts, "output": point.bytes - point.temporary - always, "temporary": point.temporary}

    @property
    def peak_at(self) -> int:
        """Index of the highest point; of equals the first one at which most is needed."""
        return max(range(len(self.points)), key=lambda number: (self.points[number].bytes, self.points[number].needed))

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
    platform = platform_of(module)
    calls = Counter(edge.callee for edges in execution.edges.values() for edge in edges)
    callers = [edge.caller for edges in execution.edges.values() for edge in edges]
    bodies = {caller.called[0] for caller in callers if caller.opcode == "while"}
    done: dict[str, Scope] = {}
    for name in execution.post_order:
        computation = module.get(name)
        if computation is not None:
            known = (edge for edge in execution.edges[name] if edge.callee in done)
            inner = grouped((edge.caller.name, done[edge.callee]) for edge in known)
            done[name] = Scope(
                computation,
                inner,
                platform=platform,
                is_entry=computation is module.entry,
                is_body=name in bodies,
                calls=calls[name],
            )
    entry = done.get(module.entry.name)
    return _summary(entry, done) if entry is not None else None


def _summary(entry: Scope, scopes: Mapping[str, Scope]) -> Liveness:
    every = [slot for scope in scopes.values() for slot in scope.slots if slot.kind != "given" and slot.bytes]
    argument, constant = (sum(slot.bytes for slot in every if slot.kind == kind) for kind in ("argument", "constant"))
    both = entry.over_schedule("temporary", "output")
    needed = entry.over_schedule("temporary", "output", needed=True)
    highest = max(range(len(both)), key=lambda at: (both[at], needed[at]))
    temporary = entry.alive[highest]
    parts = {
        "argument": argument, "output": both[highest] - temporary, "temporary": temporary, "constant": constant
    }  # fmt: skip
    # The instructions of the entry over which each slot, by its id(), takes memory.
    spans = {id(slot): [(slot.begin, slot.end)] for slot in entry.slots}
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
        SchedulePoint(
            at, both[at] + argument + constant, instruction.name, *instruction.origin, needed[at], entry.alive[at]
        )
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
