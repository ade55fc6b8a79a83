"""Why two kernels are not one: for each array that goes through memory between them, the reason and what it costs.

HLO does not say why XLA did not fuse; it shows what stands between. The reasons are looked for in a fixed order, the
ones that no edit of the program removes first. Where none is found the reason is `not-told`: then XLA's cost model
decided, and this module does not guess.

Scalars are left out. The bytes of a barrier are those that one run of the program would not move if the two kernels
were one: what the consumer reads of the array, and what the producer writes of it when nobody else reads it and it is
no result.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from jaxprof.hlo.analysis.flow import Flow, Passage, array_key
from jaxprof.hlo.analysis.kinds import fused, is_collective
from jaxprof.hlo.analysis.layout import reorders
from jaxprof.hlo.analysis.opcodes import FREE
from jaxprof.hlo.analysis.platform import is_optimised

if TYPE_CHECKING:
    from collections.abc import Callable

    from jaxprof.hlo.analysis.kernels import Kernel, KernelTable
    from jaxprof.hlo.model import Instruction, Shape

MOST_OPERANDS: Final = 96
"""Parameters and results that XLA lets a GPU fusion have (`MaxOperandsAndOutputsPerFusion`)."""
MANY_INSTRUCTIONS: Final = 500
"""Instructions from which on a fusion is called large; XLA limits the size of the generated code in several ways."""
_LIBRARY_KINDS: Final = frozenset(
    {
        "GEMM", "convolution", "attention", "sort", "FFT", "top-k", "Cholesky", "LU", "QR", "SVD", "eigenvalues",
        "triangular solve", "library call", "Pallas kernel", "Triton kernel", "CUTLASS kernel",
        "normalisation", "random numbers",
    }
)  # fmt: skip
_HOST_KINDS: Final = frozenset({"transfer", "infeed", "outfeed", "host callback"})
_REDUCING: Final = frozenset({"reduce", "reduce-window", "select-and-scatter"})
_MOVING_KINDS: Final = frozenset({"copy", "transpose", "transpose fusion"})


@dataclass(frozen=True, slots=True)
class Barrier:
    """Two kernels that one array connects, and why they are two."""

    producer: str
    consumer: str
    reason: str
    """A code: `several-users`, `library-call`..., the keys of `REASONS`."""
    words: str
    """The same in words, with the names."""
    bytes: int
    """What one run of the program would not move without it."""
    shape: Shape
    """The array."""
    computation: str
    """Where the consumer stands."""


REASONS: Final[dict[str, str]] = {
    "control-flow": "a loop, branch or call lies between them, and no fusion reaches across its border",
    "communication": "the array goes to other devices, or to the host",
    "library-call": "a library computes one of them, and takes whole arrays from memory and leaves whole arrays there",
    "layout": "the array is rewritten in another order of its dimensions",
    "buffer-copy": "the array is copied, because one of the two buffers is written while the other is still needed",
    "scatter": "a scatter writes in place, in an order that depends on the data",
    "reduction": "a reduction must be complete before what follows it over another shape can begin",
    "several-users": "more than one kernel reads the array, and computing it again in each was not worth it",
    "program-output": "the array is a result of the program, and is written in any case",
    "recomputation": "the consumer uses each element many times, and would compute it again each time",
    "size-limit": "together they would exceed the size that XLA lets a fusion have",
    "not-told": "the text does not tell: XLA's cost model kept them apart",
}
"""Every reason, from the first that is looked for to the last."""


def barriers(table: KernelTable, flow: Flow) -> tuple[Barrier, ...]:
    """The barriers of a module, those that cost most first; none for a module that was not optimised yet."""
    if not is_optimised(table.module):
        return ()
    found: dict[tuple[str, str, str, tuple[str, str, tuple[int, ...]]], Barrier] = {}
    looks = {
        (launch.instruction.computation.name, launch.instruction.name): launch.instruction for launch in table.launches
    }
    views: dict[tuple[str, str], _Look] = {}

    def look(kernel: Kernel) -> _Look:
        key = (kernel.computation, kernel.name)
        if key not in views:
            views[key] = _Look(kernel, looks[key])
        return views[key]

    for passage in flow.passages:
        made, used = look(passage.producer), look(passage.consumer)
        array = _array(passage)
        if array is None or not array.rank or not passage.bytes_read:
            continue
        reason = _reason(passage, made, used, flow)
        key = array_key(passage.value)
        alone = len(flow.readers[key]) == 1 and key not in flow.outputs
        # What comes into a loop from outside is read there once, by the first turn.
        saved = passage.bytes_read * (1 if passage.value.crossed else passage.consumer.count or 1)
        if alone:
            saved += min(array.bytes, passage.producer.bytes_written) * (passage.producer.count or 1)
        identity = (passage.consumer.computation, passage.producer.name, passage.consumer.name, key)
        if identity in found:
            continue
        found[identity] = Barrier(
            passage.producer.name, passage.consumer.name, reason,
            f"{passage.producer.name} and {passage.consumer.name}: {REASONS[reason]}",
            saved, array, passage.consumer.computation,
        )  # fmt: skip
    return tuple(sorted(found.values(), key=lambda barrier: -barrier.bytes))


class _Look:
    """A kernel with what the reasons ask of it, looked up once."""

    def __init__(self, kernel: Kernel, instruction: Instruction) -> None:
        self.kernel = kernel
        self.instruction = instruction
        held = fused(instruction) if instruction.opcode == "fusion" else [instruction]
        self.working = [inner for inner in held if inner.opcode not in FREE]
        self.opcodes = {inner.opcode for inner in self.working}

    @property
    def reduces(self) -> bool:
        return bool(self.opcodes & _REDUCING)

    def repeats(self, operand: str) -> bool:
        """It uses the elements of that operand several times: a broadcast, gather, or window of it."""
        names = self.instruction.operands
        if self.instruction.opcode != "fusion" or operand not in names:
            return self.instruction.opcode in ("broadcast", "gather", "reduce-window", "concatenate")
        called = self.instruction.called_computations()
        if not called:
            return False
        number = names.index(operand)
        parameter = next((p for p in called[0].parameters if p.parameter_number == number), None)
        seen = 0
        while parameter is not None and seen < 8:
            users = parameter.users
            if any(user.opcode in ("broadcast", "gather", "reduce-window") for user in users):
                return True
            parameter = users[0] if len(users) == 1 and users[0].opcode in ("bitcast", "reshape", "convert") else None
            seen += 1
        return False


def _array(passage: Passage) -> Shape | None:
    shape = passage.value.instruction.shape
    for index in passage.value.member:
        if index >= len(shape.tuple_shapes):
            return shape if shape.is_array else None
        shape = shape.tuple_shapes[index]
    return shape


def _reason(passage: Passage, made: _Look, used: _Look, flow: Flow) -> str:
    for code, test in _TESTS:
        if test(passage, made, used, flow):
            return code
    return "not-told"


def _communicates(look: _Look) -> bool:
    return is_collective(look.kernel.kind) or look.kernel.kind in _HOST_KINDS


def _is_library(look: _Look) -> bool:
    kernel = look.kernel
    return kernel.opcode == "custom-call" or kernel.kind in _LIBRARY_KINDS


def _moves(look: _Look) -> bool:
    return look.kernel.kind in _MOVING_KINDS and reorders(look.instruction)


def _is_generated(look: _Look) -> bool:
    """A library makes its code from a graph that XLA hands over (YNNPACK, oneDNN), and takes only what it knows."""
    return bool(look.kernel.target) and not look.kernel.target.startswith("__triton")


def _too_large(passage: Passage, made: _Look, used: _Look, _flow: Flow) -> bool:
    operands = {*made.instruction.operands, *used.instruction.operands}
    results = len(made.instruction.shape.leaves()) + len(used.instruction.shape.leaves())
    inside = passage.producer.instructions + passage.consumer.instructions
    return len(operands) + results > MOST_OPERANDS or inside > MANY_INSTRUCTIONS


_TESTS: Final[tuple[tuple[str, Callable[[Passage, _Look, _Look, Flow], bool]], ...]] = (
    ("control-flow", lambda passage, made, used, flow: passage.value.crossed),
    (
        "communication",
        lambda passage, made, used, flow: _communicates(made) or _communicates(used),
    ),
    ("library-call", lambda passage, made, used, flow: _is_library(made) or _is_library(used)),
    ("layout", lambda passage, made, used, flow: _moves(made) or _moves(used)),
    ("buffer-copy", lambda passage, made, used, flow: "copy" in (made.instruction.opcode, used.instruction.opcode)),
    ("scatter", lambda passage, made, used, flow: "scatter" in (made.kernel.kind, used.kernel.kind)),
    ("reduction", lambda passage, made, used, flow: made.reduces),
    ("several-users", lambda passage, made, used, flow: len(flow.readers[array_key(passage.value)]) > 1),
    ("program-output", lambda passage, made, used, flow: array_key(passage.value) in flow.outputs),
    ("recomputation", lambda passage, made, used, flow: used.repeats(passage.operand)),
    ("size-limit", _too_large),
    ("library-call", lambda passage, made, used, flow: _is_generated(made) or _is_generated(used)),
)
