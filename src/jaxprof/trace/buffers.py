"""Buffers that a compiled program holds in memory, from the assignment that XLA made for it.

An executable provides the assignment, and so does the HLO in a profile: an `HloProto` holds the module, then the
assignment. A dump has it as text (`NAME-buffer-assignment.txt`). The field numbers of `BufferAssignmentProto` and
`HloModuleProto` are those of `xla/service/hlo.proto`. The assignment refers to instructions by number, so the module's
own proto is needed for their names.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from jaxprof.base.errors import HloError, JaxprofError
from jaxprof.base.grouping import grouped, totals
from jaxprof.base.values import frozen
from jaxprof.events import BuffersReported, HeldBuffer
from jaxprof.hlo.shape import HOST_MEMORY
from jaxprof.hlo.text.model import Instruction, Module
from jaxprof.hlo.text.parse import module as read_module
from jaxprof.hlo.text.proto import OWN_ID
from jaxprof.hlo.text.wire import Message

MOST_BUFFERS = 256
"""Most buffers that are reported, largest first."""
LARGEST_MODULE_BYTES = 16 << 20
"""Largest module whose names are read; a larger one takes seconds, which the run would wait for."""
_MODULE, _ASSIGNMENT = 1, 3
"""Fields of an `HloProto` (xla/service/hlo.proto)."""
_BLOCK = re.compile(
    r"^allocation \d+: (?:0x[0-9a-f]+, )?size (?P<size>\d{1,18})(?P<description>.*):\n(?P<values>(?: value: .*\n)*)",
    re.MULTILINE,
)
_VALUE = re.compile(
    r"^ value: <\d+ ([^\s{]+)(?:\{([\d,]*)\})? @\d+> \(size=(\d{1,18}),offset=(\d{1,18})\)", re.MULTILINE
)
_KIND_FIELDS = ((5, "argument"), (12, "constant"), (7, "output"))
_KIND_WORDS = (("argument", ", parameter "), ("constant", ", constant"), ("output", ", maybe-live-out"))
"""Kinds in the order of the search, in the proto and in the text: an argument that is donated is also an output."""
_PASSING_ON = frozenset({"parameter", "tuple", "get-tuple-element", "while", "bitcast", "call", "conditional"})


def buffers_in(proto: bytes, hlo: str) -> BuffersReported | None:
    """Return the buffers of the program in an `HloProto`, whose text is `hlo`; None if the proto does not hold them."""
    try:
        message = Message(proto)
    except HloError:
        return None
    assignment, module = (b"".join(message.all_octets(number)) for number in (_ASSIGNMENT, _MODULE))
    return buffers_of(assignment, module, hlo)


def buffers_of(assignment: bytes, module: bytes, hlo: str) -> BuffersReported | None:
    """Return the buffers of a `BufferAssignmentProto` over a module, whose text is `hlo`; None if they cannot be
    derived."""
    if not assignment or not module or max(len(hlo), len(module)) > LARGEST_MODULE_BYTES:
        return None
    try:
        assigned = allocations(assignment, module)
        rows = _rows(assigned, read_module(hlo))
    except JaxprofError:  # a proto or a text in an unknown form: the estimate is used instead
        return None
    return _report(assigned, rows)


def buffers_in_dump(dump: str, module: Module) -> BuffersReported | None:
    """Return the buffers that the text of a `BufferAssignment` lists for a module; None if it lists none."""
    holder = {
        instruction.name: computation.name
        for computation in module.computations.values()
        for instruction in computation
    }
    assigned: list[Allocation] = []
    for block in _BLOCK.finditer(dump):
        description = block["description"]
        if ", thread-local" in description or f", color {HOST_MEMORY}" in description:
            continue
        kind = next((kind for kind, word in _KIND_WORDS if word in description), "temporary")
        values = (
            Assigned(
                holder.get(name, ""), name, tuple(map(int, filter(None, index.split(",")))), int(offset), int(size)
            )
            for name, index, size, offset in _VALUE.findall(block["values"])
        )
        assigned.append(Allocation(kind, int(block["size"]), tuple(values)))
    return _report(assigned, _rows(assigned, module)) if assigned else None


def _report(assigned: Iterable[Allocation], rows: list[HeldBuffer]) -> BuffersReported:
    parts = totals((allocation.kind, allocation.bytes) for allocation in assigned)
    return BuffersReported(
        source="buffer assignment", peak_bytes=sum(parts.values()), parts=parts, buffers=rows[:MOST_BUFFERS]
    )


def _rows(assigned: Iterable[Allocation], module: Module) -> list[HeldBuffer]:
    rows: list[HeldBuffer] = []
    for allocation in assigned:
        # Values at one offset are one buffer: the same array under several names, or successors.
        for values in grouped(((value.offset, value.bytes), value) for value in allocation.values).values():
            value = min(values, key=lambda candidate: _rank(candidate, allocation.kind, module))
            instruction = _instruction(value, module)
            op_name, file, line = instruction.origin if instruction is not None else ("", "", None)
            # Including those at the very same offset.
            overlapping = sum(
                neighbour.offset < value.offset + value.bytes and value.offset < neighbour.offset + neighbour.bytes
                for neighbour in allocation.values
            )
            rows.append(
                HeldBuffer(
                    bytes=value.bytes,
                    kind=allocation.kind,
                    instruction=value.instruction,
                    shape=str(instruction.shape.member(value.index)) if instruction is not None else "",
                    op_name=op_name,
                    file=file,
                    line=line,
                    shared_with=max(overlapping, len(values)) - 1,
                )
            )
    return sorted(rows, key=lambda row: -row.bytes)


def _rank(value: Assigned, kind: str, module: Module) -> tuple[bool, bool, int]:
    """Rank how well a value names its buffer: the parameter of an argument comes first, else what the first operation
    makes there."""
    instruction = _instruction(value, module)
    if instruction is None:
        return (True, True, 0)
    wrong = instruction.opcode != "parameter" if kind == "argument" else instruction.opcode in _PASSING_ON
    return (wrong, not instruction.computation.is_entry, instruction.position)


def _instruction(value: Assigned, module: Module) -> Instruction | None:
    computation = module.get(value.computation)
    return computation.get(value.instruction) if computation is not None else None


@frozen
class Assigned:
    """A value in an allocation."""

    computation: str
    instruction: str
    index: tuple[int, ...]
    """Indices of the element within the instruction's value, if that is a tuple."""
    offset: int
    bytes: int


@frozen
class Allocation:
    """A block of memory that the program holds while it runs."""

    kind: str
    """`argument`, `output`, `temporary` or `constant`."""
    bytes: int
    values: tuple[Assigned, ...]
    """Values in the allocation, one after the other or side by side."""


def allocations(assignment: bytes, module: bytes) -> tuple[Allocation, ...]:
    """Return the allocations of the program on its device, except those inside a fusion or a reduction, which take no
    memory, and those in the host's memory.

    `assignment` is a `BufferAssignmentProto`; `module` is the `HloModuleProto` (or `HloProto`) that it belongs to.
    Raises HloError if either is malformed, or the two do not belong together.
    """
    proto = Message(assignment)
    # Computation and instruction by the instruction's number, as older and newer XLA counts them.
    whole = Message(module)
    hlo = whole if 3 in whole else whole.message(1)
    names: dict[int, tuple[str, str]] = {}
    for each in hlo.messages(3):
        label, base = each.text(1), each.number(5)
        for octets in each.all_octets(2):
            inner = Message(octets)
            own = inner.number(35)
            names[own] = pair = (label, inner.text(1))
            names[base << 32 | own & OWN_ID] = pair
    values: dict[int, tuple[str, str, tuple[int, ...]]] = {}
    for buffer in proto.messages(1):
        maker = buffer.message(3)
        computation, instruction = names.get(maker.number(4), ("", maker.text(2)))
        values[buffer.number(1)] = (computation, instruction, tuple(maker.numbers(3)))
    if values and not any(instruction for _, instruction, _ in values.values()):
        raise HloError("the buffer assignment belongs to another module")
    found: list[Allocation] = []
    for block in proto.messages(3):
        if block.number(3) or block.number(8) == HOST_MEMORY:
            continue
        assigned = (
            Assigned(*values.get(entry.number(1), ("", "", ())), entry.number(2), entry.number(3))
            for entry in block.messages(9)
        )
        kind = next((kind for number, kind in _KIND_FIELDS if block.number(number)), "temporary")
        found.append(Allocation(kind, block.number(2), tuple(assigned)))
    return tuple(found)
