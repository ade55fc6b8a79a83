"""Find the ops of a profile that communicate with other devices, by the opcode in the module that the profile holds.

JAX names an instruction after its primitive (`psum.14`, `ppermute`), and XLA's fusions and asynchronous pairs have
names of their own, so a name proves nothing. Only if the module is missing does a name count, and only a complete one:
an opcode, one of JAX's primitives, or NCCL's kernel.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

import numpy as np
from numpy.typing import NDArray

from jaxprof.errors import HloError
from jaxprof.hlo.analysis.opcodes import COLLECTIVES, PRODUCTS
from jaxprof.hlo.read.proto import module_message
from jaxprof.hlo.read.wire import Message
from jaxprof.trace.model import ProgramProto, Trace, program_proto

_BETWEEN_DEVICES: Final = COLLECTIVES | {"send", "recv"}
_HALF: Final = re.compile(r"-(start|update|done)$")
_HOST_TRANSFER: Final = 47
_DEEPEST: Final = 9
_ANY: Final = re.compile("|".join(sorted(_BETWEEN_DEVICES)).encode())
_BY_NAME: Final = re.compile(
    r"(all[-_]reduce|all[-_]gather|reduce[-_]scatter|(ragged[-_])?all[-_]to[-_]all|collective[-_](permute|broadcast)|send|recv|"
    r"psum|psum_scatter|psum_invariant|pmax|pmin|ppermute|pbroadcast|all_gather_invariant)([-_](start|done))?(\.\d+)*(\.remat\d*|\.clone)*$"
)
KERNEL_OF_COLLECTIVE: Final = re.compile(r"(void )?(nccl|rccl)", re.IGNORECASE)
"""Names of the kernels of NCCL and RCCL, which may belong to no op."""


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
        computations = {
            computation.number(5): computation.messages(2) for computation in module_message(held.proto).messages(3)
        }
    except HloError:
        return None
    found: set[str] = set()
    for instructions in computations.values():
        names = {instruction.number(35): instruction.text(1) for instruction in instructions}
        for instruction in instructions:
            base = _base(instruction)
            exchanging = base in _BETWEEN_DEVICES and not instruction.number(_HOST_TRANSFER)
            if base in ("async", "fusion"):
                inside = _opcodes_in(computations, instruction)
                exchanging = bool(inside & _BETWEEN_DEVICES) and not (base == "fusion" and inside & PRODUCTS)
            if base == "async":
                exchanging = exchanging or any(names.get(operand) in found for operand in instruction.numbers(36))
            if exchanging:
                found.add(instruction.text(1))
    return frozenset(found)


def _base(instruction: Message) -> str:
    return _HALF.sub("", instruction.text(2))


def _opcodes_in(computations: Mapping[int, list[Message]], caller: Message, depth: int = 0) -> set[str]:
    """Return the opcodes in what an instruction calls."""
    opcodes: set[str] = set()
    for number in caller.numbers(38) if depth < _DEEPEST else ():
        for instruction in computations.get(number, ()):
            opcodes |= {_base(instruction), *_opcodes_in(computations, instruction, depth + 1)}
    return opcodes
