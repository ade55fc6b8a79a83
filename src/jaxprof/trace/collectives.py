"""Find the ops of a profile that communicate with other devices, by the opcode in the module that the profile holds.

JAX names an instruction after its primitive (`psum.14`, `ppermute`), and XLA's fusions and asynchronous pairs have
names of their own, so a name proves nothing. Only if the module is missing does a name count, and only a complete one:
an opcode, one of JAX's primitives, or NCCL's kernel.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from jaxprof.errors import HloError
from jaxprof.grouping import grouped
from jaxprof.hlo.analysis.opcodes import COLLECTIVES
from jaxprof.hlo.read.proto import module_message
from jaxprof.trace.model import ProgramProto, Trace, program_proto

_BETWEEN_DEVICES: Final = COLLECTIVES | {"send", "recv"}
_PRODUCTS: Final = frozenset({"dot", "convolution", "ragged-dot", "scaled-dot"})
_HALF: Final = re.compile(r"-(start|update|done)$")
_HOST_TRANSFER: Final = 47
_ANY: Final = re.compile("|".join(sorted(_BETWEEN_DEVICES)).encode())
_BY_NAME: Final = re.compile(
    r"(all[-_]reduce|all[-_]gather|reduce[-_]scatter|(ragged[-_])?all[-_]to[-_]all|collective[-_](permute|broadcast)|send|recv|"
    r"psum|psum_scatter|psum_invariant|pmax|pmin|ppermute|pbroadcast|all_gather_invariant)([-_](start|done))?(\.\d+)*(\.remat\d*|\.clone)*$"
)
KERNEL_OF_COLLECTIVE: Final = re.compile(r"(void )?(nccl|rccl)", re.IGNORECASE)
"""Names of the kernels of NCCL and RCCL, which may belong to no op."""


@dataclass(frozen=True, slots=True)
class _Instruction:
    name: str
    opcode: str
    computation: str
    called: tuple[str, ...]
    operands: tuple[str, ...]
    to_host: bool


def collective_ops(trace: Trace) -> NDArray[np.bool_]:
    """Return which of the trace's ops are collectives or wait for one, and a last False for `NO_OP`."""
    programs, of_op = trace.programs_of_ops()
    held = [program_proto(trace, *program) for program in programs]
    named = [None if proto is None else collective_names(proto) for proto in held]
    is_collective = np.zeros(len(trace.ops) + 1, np.bool_)
    for index, (op, program) in enumerate(zip(trace.ops, of_op.tolist(), strict=True)):
        names = named[program]
        is_collective[index] = op.name in names if names is not None else bool(_BY_NAME.match(op.name))
    return is_collective


def collective_names(held: ProgramProto) -> frozenset[str] | None:
    """Return the names of the module's instructions that are collectives; None if the module cannot be read."""
    if not _ANY.search(held.proto):
        return frozenset()  # the usual case, without reading the module
    try:
        instructions = list(_instructions(held.proto))
    except HloError:
        return None
    within = grouped((instruction.computation, instruction) for instruction in instructions)
    found: set[str] = set()
    for instruction in instructions:
        base = _HALF.sub("", instruction.opcode)
        if base in _BETWEEN_DEVICES:
            exchanging = not instruction.to_host
        elif base in ("async", "fusion"):
            held_opcodes = {inner.opcode for name in instruction.called for inner in _inside(within, name)}
            exchanging = bool({_HALF.sub("", opcode) for opcode in held_opcodes} & _BETWEEN_DEVICES) and not (
                base == "fusion" and held_opcodes & _PRODUCTS
            )
            exchanging = exchanging or (base == "async" and any(name in found for name in instruction.operands))
        else:
            exchanging = False
        if exchanging:
            found.add(instruction.name)
    return frozenset(found)


def _inside(within: dict[str, list[_Instruction]], computation: str, depth: int = 0) -> Iterator[_Instruction]:
    for instruction in within.get(computation, ()):
        yield instruction
        for name in instruction.called if depth < 8 else ():
            yield from _inside(within, name, depth + 1)


def _instructions(data: bytes) -> Iterator[_Instruction]:
    for computation in module_message(data).messages(3):
        number = str(computation.number(5))
        messages = computation.messages(2)
        names = {message.number(35): message.text(1) for message in messages}
        for message in messages:
            yield _Instruction(
                message.text(1),
                message.text(2),
                number,
                tuple(map(str, message.numbers(38))),
                tuple(names.get(operand, "") for operand in message.numbers(36)),
                bool(message.number(_HOST_TRANSFER)),
            )
