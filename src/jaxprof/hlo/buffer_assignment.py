"""XLA's buffer assignment, from its proto: which value of a compiled module lies in which allocation.

Field numbers are those of `BufferAssignmentProto` and `HloModuleProto` in `xla/service/hlo.proto`. The assignment
names instructions by number, so the module's own proto is needed beside it for their names.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from jaxprof.hlo.errors import HloError
from jaxprof.hlo.wire import Message

_LOCAL: Final = (1 << 32) - 1


@dataclass(frozen=True, slots=True)
class Assigned:
    """A value in an allocation."""

    computation: str
    instruction: str
    index: tuple[int, ...]
    """Which element of the instruction's value, where it is a tuple."""
    offset: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Allocation:
    """A stretch of memory that the program holds while it runs."""

    kind: str
    """`argument`, `output`, `temporary` or `constant`."""
    bytes: int
    values: tuple[Assigned, ...]
    """What is in it, one after the other or side by side."""


def allocations(assignment: bytes, module: bytes) -> tuple[Allocation, ...]:
    """The allocations of the program; those inside a fusion or a reduction, which take no memory, are left out.

    `assignment`: a `BufferAssignmentProto`; `module`: the `HloModuleProto` (or `HloProto`) that it belongs to. Raises
    HloError where either is broken, or the two do not belong together.
    """
    proto = Message(assignment)
    names = _names(module)
    values: dict[int, tuple[str, str, tuple[int, ...]]] = {}
    for buffer in proto.messages(1):
        place = buffer.message(3)
        computation, instruction = names.get(place.number(4), ("", place.text(2)))
        values[buffer.number(1)] = (computation, instruction, tuple(place.numbers(3)))
    if values and not any(instruction for _, instruction, _ in values.values()):
        raise HloError("the buffer assignment belongs to another module")
    return tuple(_allocation(one, values) for one in proto.messages(3) if not one.number(3))


def _allocation(proto: Message, values: Mapping[int, tuple[str, str, tuple[int, ...]]]) -> Allocation:
    assigned = []
    for one in proto.messages(9):
        computation, instruction, index = values.get(one.number(1), ("", "", ()))
        assigned.append(Assigned(computation, instruction, index, one.number(2), one.number(3)))
    kind = "temporary"
    if proto.number(5):
        kind = "argument"
    elif proto.number(12):
        kind = "constant"
    elif proto.number(7):
        kind = "output"
    return Allocation(kind, proto.number(2), tuple(assigned))


def _names(data: bytes) -> dict[int, tuple[str, str]]:
    """Computation and instruction by the instruction's number, as older and as newer XLA counts them."""
    outer = Message(data)
    proto = outer if 3 in outer else outer.message(1)
    found: dict[int, tuple[str, str]] = {}
    for computation in proto.messages(3):
        name, number = computation.text(1), computation.number(5)
        for octets in computation.all_octets(2):
            instruction = Message(octets)
            own = instruction.number(35)
            found[own] = names = (name, instruction.text(1))
            found[number << 32 | own & _LOCAL] = names
    return found
