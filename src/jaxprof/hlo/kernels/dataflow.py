"""Follow a value to its inputs, and to the values computed from it: through fusions, tuples and mere names.

A value is an instruction (a member of it, if that gives a tuple) within the fusions that hold it. Bitcasts, tuples and
their elements, and the second halves of asynchronous pairs are passed through; a fusion is entered at its root and left
at its parameters. Loops, branches and calls end the search: what crosses their border is another value in each
iteration.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Set
from typing import NamedTuple

from jaxprof.hlo.kernels import ELEMENTWISE, FINISHING, NAMING
from jaxprof.hlo.shape import Shape
from jaxprof.hlo.text.model import Instruction

RENAMING = FINISHING | NAMING
"""Operations whose result is their first operand under another name."""
FUSION = frozenset({"fusion"})
_DEEPEST = 64  # names of one value, or a damaged text would be followed in a circle
MOST_STEPS = 512
"""Most values that one search visits: a chain of fusions is shorter, and a search must not read a whole module."""


class Value(NamedTuple):
    """One array that an instruction gives."""

    instruction: Instruction
    member: tuple[int, ...] = ()
    """Indices into the tuple that the instruction gives, outermost first; empty for an array."""
    fusions: tuple[Instruction, ...] = ()
    """The fusions that hold the instruction, outermost first."""

    @property
    def key(self) -> tuple[int, tuple[int, ...], int]:
        """Identity of the value during one search."""
        return id(self.instruction), self.member, id(self.fusions[-1]) if self.fusions else 0

    @property
    def shape(self) -> Shape:
        """Shape of the value; for a tuple member the member's shape."""
        return self.instruction.shape.member(self.member)

    @property
    def elements(self) -> int:
        return self.shape.elements

    @property
    def opcode(self) -> str:
        return self.instruction.opcode

    @property
    def outermost(self) -> Instruction:
        """The fusion that holds the instruction, or the instruction itself."""
        return self.fusions[0] if self.fusions else self.instruction


def other_name(instruction: Instruction, member: tuple[int, ...]) -> tuple[Instruction | None, tuple[int, ...]] | None:
    """Return the instruction and member that a value is another name of; None if the instruction computes the value.
    The instruction is None if the text lacks it."""
    opcode = instruction.opcode
    if opcode == "get-tuple-element":
        return instruction.operand(0), (*instruction.integers("index")[:1], *member)
    if opcode == "tuple" and member:
        return instruction.operand(member[0]), member[1:]
    return (instruction.operand(0), member) if opcode in RENAMING else None


def resolve(value: Value, entered: Set[str] = FUSION) -> Value | None:
    """Return the operation that makes a value, under whatever names; None if the text does not lead there. `entered`:
    opcodes whose computation is entered at its root and left at its parameters."""
    instruction, member, fusions = value.instruction, value.member, value.fusions
    for _ in range(_DEEPEST):
        following: Instruction | None
        if former := other_name(instruction, member):
            following, member = former
        elif instruction.opcode in entered:
            following = instruction.called_root
            fusions = (*fusions, instruction)
        elif instruction.opcode == "parameter" and fusions:
            number = instruction.parameter_number
            following = fusions[-1].operand(number) if number is not None else None
            fusions = fusions[:-1]
        else:
            return Value(instruction, member, fusions)
        if following is None:
            return None
        instruction = following
    return None


def sources(value: Value, entered: Set[str] = FUSION) -> list[Value]:
    """Return the operations that make the operands of a resolved value, in order; those that cannot be found are left
    out."""
    instructions = value.instruction.operand_instructions()
    operands = (resolve(Value(operand, (), value.fusions), entered) for operand in instructions)
    return [source for source in operands if source is not None]


def upstream(start: Value, through: Callable[[Value, Value], bool]) -> Iterator[Value]:
    """Yield `start` and its inputs, each once. The search goes on from a value to its operand if `through(value,
    operand)`."""
    seen = {start.key}
    waiting = [start]
    while waiting and len(seen) <= MOST_STEPS:
        value = waiting.pop()
        yield value
        for operand in sources(value):
            if operand.key not in seen and through(value, operand):
                seen.add(operand.key)
                waiting.append(operand)


def origin_through(value: Value | None, opcodes: Set[str], entered: Set[str] = FUSION) -> Value | None:
    """Return the value from which operations of one operand with these opcodes made `value`, or itself; None if
    the text does not lead there."""
    for _ in range(16):
        if value is None or value.opcode not in opcodes:
            break
        made_of = sources(value, entered)
        value = made_of[0] if made_of else None
    return value


def same_elements(value: Value, operand: Value) -> bool:
    """Return whether each element of the value comes from the element of the operand at the same index."""
    return value.opcode in ELEMENTWISE and value.elements == operand.elements


def downstream(value: Value) -> Iterator[Value]:
    """Yield the operations that take a resolved value: in its own computation, in fusions there, and after fusions."""
    waiting = [value]
    seen: set[tuple[int, tuple[int, ...], int]] = set()
    while waiting and len(seen) < MOST_STEPS:
        current = waiting.pop()
        if current.key in seen:
            continue
        seen.add(current.key)
        instruction, fusions = current.instruction, current.fusions
        if instruction.is_root and fusions:
            waiting.append(Value(fusions[-1], current.member, fusions[:-1]))
        for user in instruction.users:
            opcode = user.opcode
            if opcode == "get-tuple-element":
                if current.member and user.integers("index")[:1] == current.member[:1]:
                    waiting.append(Value(user, current.member[1:], fusions))
            elif opcode == "tuple":
                at = [number for number, name in enumerate(user.operands) if name == instruction.name]
                waiting += [Value(user, (number, *current.member), fusions) for number in at]
            elif opcode in RENAMING:
                waiting.append(Value(user, current.member, fusions))
            elif opcode == "fusion":
                called = user.callees()
                for parameter in called[0].parameters if called else ():
                    number = parameter.parameter_number
                    if number is not None and user.operands[number : number + 1] == (instruction.name,):
                        waiting.append(Value(parameter, current.member, (*fusions, user)))
            else:
                yield Value(user, (), fusions)
