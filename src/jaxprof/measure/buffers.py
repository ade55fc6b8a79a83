"""What a compiled program holds in memory, buffer by buffer: the assignment that its executable tells.

`memory_analysis()` carries it as a proto, and `runtime_executable()` the module that it speaks of. Where a version or
a backend has neither, nothing is said here, and whoever shows the run derives an estimate from the schedule.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from jaxprof.errors import JaxprofError
from jaxprof.events import BuffersReported
from jaxprof.hlo.buffer_assignment import Allocation, Assigned, allocations
from jaxprof.hlo.model import Instruction, Module
from jaxprof.hlo.parse import module as read_module

MOST_BUFFERS = 256
"""Buffers that are told, the largest first."""
LARGEST_MODULE_BYTES = 16 << 20
"""Of a larger one the names cost seconds to read, which the run would wait for."""
_PASSING_ON = frozenset({"parameter", "tuple", "get-tuple-element", "while", "bitcast", "call", "conditional"})


def report_buffers(compiled: Any, hlo: str) -> BuffersReported | None:
    """The buffers of `compiled`, whose text is `hlo`; None where the executable does not tell them."""
    assignment = _assignment(compiled)
    proto = _module_proto(compiled) if assignment and len(hlo) <= LARGEST_MODULE_BYTES else b""
    if not assignment or not proto:
        return None
    try:
        found = allocations(assignment, proto)
        rows = _rows(found, hlo)
    except JaxprofError:  # a proto or a text of another form than the known ones: then the estimate serves
        return None
    parts: dict[str, int] = {}
    for one in found:
        parts[one.kind] = parts.get(one.kind, 0) + one.bytes
    return BuffersReported(
        source="buffer assignment", peak_bytes=sum(parts.values()), parts=parts, buffers=rows[:MOST_BUFFERS]
    )


def _assignment(compiled: Any) -> bytes:
    try:
        data = getattr(compiled.memory_analysis(), "serialized_buffer_assignment_proto", b"")
    except (NotImplementedError, RuntimeError):
        return b""
    return data if isinstance(data, bytes) else b""


def _module_proto(compiled: Any) -> bytes:
    """The first module of the executable; empty where there is no way to it."""
    try:
        modules = compiled.runtime_executable().hlo_modules()
        data = modules[0].as_serialized_hlo_module_proto() if len(modules) == 1 else b""
    except (AttributeError, NotImplementedError, RuntimeError):
        return b""
    return data if isinstance(data, bytes) and len(data) <= LARGEST_MODULE_BYTES else b""


def _rows(found: Iterable[Allocation], hlo: str) -> list[dict[str, Any]]:
    module = read_module(hlo)
    rows: list[dict[str, Any]] = []
    for allocation in found:
        for values in _by_place(allocation):
            value = min(values, key=lambda one: _rank(one, allocation.kind, module))
            row = {"bytes": value.bytes, "kind": allocation.kind, "shared_with": _others(value, values, allocation)}
            rows.append(row | _described(value, module))
    return sorted(rows, key=lambda row: -int(row["bytes"]))


def _by_place(allocation: Allocation) -> list[list[Assigned]]:
    """Values of one place are one buffer: they are the same array under several names, or follow each other."""
    places: dict[tuple[int, int], list[Assigned]] = {}
    for value in allocation.values:
        places.setdefault((value.offset, value.bytes), []).append(value)
    return list(places.values())


def _others(value: Assigned, same: list[Assigned], allocation: Allocation) -> int:
    """Values elsewhere in the allocation that take some of the same octets, and those of the very same place."""
    overlapping = sum(
        one.offset < value.offset + value.bytes and value.offset < one.offset + one.bytes for one in allocation.values
    )
    return max(overlapping, len(same)) - 1


def _rank(value: Assigned, kind: str, module: Module) -> tuple[bool, bool, int]:
    """The value that names a buffer best: of an argument its parameter, else what the first operation makes there."""
    instruction = _instruction(value, module)
    if instruction is None:
        return (True, True, 0)
    wrong = instruction.opcode != "parameter" if kind == "argument" else instruction.opcode in _PASSING_ON
    return (wrong, not instruction.computation.is_entry, instruction.position)


def _instruction(value: Assigned, module: Module) -> Instruction | None:
    computation = module.get(value.computation)
    return computation.get(value.instruction) if computation is not None else None


def _described(value: Assigned, module: Module) -> dict[str, Any]:
    instruction = _instruction(value, module)
    if instruction is None:
        return {"instruction": value.instruction, "shape": "", "op_name": "", "file": "", "line": None}
    shape = instruction.shape
    for number in value.index:
        shape = shape.tuple_shapes[number] if number < len(shape.tuple_shapes) else shape
    stack = instruction.stack
    known = stack[0] if stack and stack[0].file else None
    return {
        "instruction": value.instruction,
        "shape": str(shape),
        "op_name": instruction.metadata.op_name.partition(";")[0],
        "file": known.file if known is not None else "",
        "line": known.line if known is not None else None,
    }
