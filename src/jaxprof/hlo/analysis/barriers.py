"""Why two kernels are not one: for each array that goes through memory between them, the reason and what it costs.

Where XLA's own reason is kept with the text (`hlo.fusion_reasons`: GPU modules that are compiled here, and dumps that
have it), it is the reason, in XLA's words. Otherwise HLO only shows what lies between the kernels: the reasons derived
from that are tried in a fixed order, those that no edit of the program removes first. Where none fits, the reason is
`not-told`, and this module does not guess.

Scalars are left out. The bytes of a barrier are those that one run of the program would not move if the two kernels
were one: what the consumer reads of the array, and what the producer writes of it if nothing else reads it and it is
not a result.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from operator import attrgetter
from typing import TYPE_CHECKING, Final

from jaxprof.hlo.analysis.cost.linear import is_spread_reduction
from jaxprof.hlo.analysis.dataflow import ELEMENTWISE, MOST_STEPS, Value, resolved, same_elements, upstream
from jaxprof.hlo.analysis.flow import Flow, Passage, array_key, flow_of
from jaxprof.hlo.analysis.kinds import fused, is_collective, reorders
from jaxprof.hlo.analysis.opcodes import FREE, SAME_PLACE
from jaxprof.hlo.analysis.platform import is_optimised, platform_of
from jaxprof.hlo.collecting import not_collecting
from jaxprof.hlo.fusion_reasons import stated

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from jaxprof.hlo.analysis.kernels import Kernel
    from jaxprof.hlo.model import Module
    from jaxprof.hlo.shape import Shape

MOST_OPERANDS: Final = 96
"""Parameters and results that XLA lets a GPU fusion have (`MaxOperandsAndOutputsPerFusion`)."""
MANY_INSTRUCTIONS: Final = 500
"""Number of instructions from which a fusion counts as large; XLA limits the size of generated code in several ways."""
_UNSPECIFIC: Final = re.compile(r"^the (?:producer|consumer) is not fusible")
"""What XLA says of kernels that it never fuses, whatever they are: the derived reason names what they are."""
_PRODUCT_KINDS: Final = frozenset({"GEMM", "convolution", "attention"})
_WHOLE_ARRAY_KINDS: Final = frozenset({"sort", "top-k", "FFT", "Cholesky", "triangular solve"})
_OF_LIBRARIES: Final = ("ynn", "onednn", "cudnn", "cublas", "cutlass", "miopen", "hipblas")
"""Parts of the names of fusion generators to which XLA hands a graph. `__triton_gemm` is XLA's own."""
_FUSED_ON_CPU: Final = ELEMENTWISE | {
    "bitcast", "broadcast", "concatenate", "dynamic-slice", "dynamic-update-slice", "gather", "iota", "pad", "reduce",
    "reshape", "reverse", "slice", "transpose", "tuple",
}  # fmt: skip
"""What XLA's CPU compiler computes element by element inside another kernel."""
_HOST_KINDS: Final = frozenset({"transfer", "infeed", "outfeed", "host callback"})
_MOVING_KINDS: Final = frozenset({"copy", "transpose", "transpose fusion"})


@dataclass(frozen=True, slots=True)
class Barrier:
    """Two kernels that one array connects, and why they are two."""

    producer: str
    consumer: str
    reason: str
    """A code: `several-users`, `library-call`..., the keys of `REASONS`."""
    bytes: int
    """Bytes that one run of the program would not move without it."""
    shape: Shape
    """The array."""
    computation: str
    """The computation that holds the consumer."""
    stated: str = ""
    """XLA's own words on the producer; empty where they are not kept."""

    @property
    def words(self) -> str:
        """The reason in words, with the names."""
        why = REASONS[self.reason] if not self.stated else f"XLA: {self.stated}"
        if self.stated and self.reason != "stated":
            why = f"{why}; {REASONS[self.reason]}"
        return f"{self.producer} and {self.consumer}: {why}"


REASONS: Final[dict[str, str]] = {
    "stated": "XLA says why itself",
    "control-flow": "a loop, branch or call lies between them, and no fusion reaches across its border",
    "communication": "the array goes to other devices, or to the host",
    "library-call": "a library or a custom kernel computes one of them, from whole arrays in memory to whole arrays "
    "in memory",
    "split-k": "XLA split a matrix product over its contraction, and adds up the parts in a kernel of its own",
    "reduction": "the array is the result of a reduction, which must be complete before it is used over another shape",
    "matrix-product": "one of them is a matrix product or a convolution: a kernel of its own, which fuses with only "
    "some of its neighbours",
    "whole-array": "one of them sorts, transforms or factorises: it needs all of an array before its first result",
    "layout": "the array is rewritten in another order of its dimensions",
    "buffer-copy": "the array is copied, because one of the two buffers is written while the other is still needed",
    "scatter": "a scatter writes in place, in an order that depends on the data",
    "cpu-rule": "XLA's CPU compiler never fuses one of them: it leaves concatenations along the fastest dimension, and "
    "of more than eight arrays, and what is not computed element by element, as kernels of their own",
    "several-users": "more than one kernel reads the array, and each would compute it again",
    "program-output": "the array is a result of the program, and must be written in any case",
    "recomputation": "the consumer uses each element many times, and would compute it again each time",
    "size-limit": "together they would exceed the size that XLA lets a fusion have",
    "not-told": "the text does not show why",
}
"""Every reason, in the order in which they are tried."""


def barriers(module: Module) -> tuple[Barrier, ...]:
    """Why kernels that share an array are not one, those that cost most bytes first. None for a module that is not
    optimised yet."""
    return module.once(_sorted_barriers)


def _sorted_barriers(module: Module) -> tuple[Barrier, ...]:
    if not is_optimised(module):
        return ()
    with not_collecting():
        ordered = sorted(_barriers(flow_of(module), stated(module)), key=attrgetter("bytes"), reverse=True)
    return tuple(ordered)


def _barriers(flow: Flow, words: Mapping[str, str]) -> Iterator[Barrier]:
    answers: dict[tuple[str, int, object], bool] = {}
    reasons: dict[tuple[object, ...], str] = {}
    arrays: dict[tuple[int, tuple[int, ...]], Shape | None] = {}
    sizes: dict[int, int] = {}
    """One object for equal sizes: a large module has few different ones."""
    used: _Look | None = None
    seen: set[tuple[int, object]] = set()
    for passage in flow.passages:
        if used is None or used.kernel is not passage.consumer:
            used = _Look(passage.consumer, answers)
            seen = set()
        made = (passage.producer.likeness, passage.value.member)
        if made not in arrays:
            arrays[made] = _array(passage)
        array = arrays[made]
        if array is None or not array.rank or not passage.bytes_read:
            continue
        key = array_key(passage.value)
        if (id(passage.producer), key) in seen:
            continue
        seen.add((id(passage.producer), key))
        readers, is_output = flow.readers(passage.value), key in flow.outputs
        alone = readers == 1 and not is_output
        # An array from outside a loop is read there once, by the first iteration.
        saved = passage.bytes_read * (1 if passage.value.crossed else passage.consumer.count or 1)
        if alone:
            saved += min(array.bytes, passage.producer.bytes_written) * (passage.producer.count or 1)
        # Of a million barriers hardly any are between kernels that are unlike all others.
        form = (
            passage.producer.likeness, passage.value.member, passage.value.crossed, passage.consumer.likeness,
            passage.number, readers > 1, is_output,
        )  # fmt: skip
        said = "" if passage.value.crossed else words.get(passage.producer.name, "")
        if said and not _UNSPECIFIC.search(said):
            reason = "stated"
        else:
            reason = reasons.get(form) or _reason(passage, _Look(passage.producer, answers), used, flow)
            if not _many(passage):
                reasons[form] = reason
        saved = sizes.setdefault(saved, saved)
        yield Barrier(
            passage.producer.name, passage.consumer.name, reason, saved, array, passage.consumer.computation, said
        )


class _Reduced(Enum):
    """How a result relates to a reduction."""

    NOT = "not"
    TO_LESS = "to less"
    """One element for each group of elements."""
    AND_SPREAD = "and spread"
    """Every element of the group gets the result at once, as XLA for TPUs writes it."""


class _Look:
    """A kernel with what the reasons need to know of it. What depends only on its form is computed once for all kernels
    that are alike."""

    __slots__ = ("_known", "instruction", "kernel")

    def __init__(self, kernel: Kernel, answers: dict[tuple[str, int, object], bool]) -> None:
        self.kernel = kernel
        self.instruction = kernel.instruction
        self._known = answers

    def once(self, question: str, about: object, answer: Callable[[], bool]) -> bool:
        """The answer to a question about a part of it, computed once for kernels that are alike."""
        key = (question, self.kernel.likeness, about)
        earlier = self._known.get(key)
        if earlier is None:
            earlier = self._known[key] = answer()
        return earlier

    def places(self, operand: str) -> tuple[int, ...]:
        """The numbers of the operands that a name stands for."""
        return tuple(number for number, name in enumerate(self.instruction.operands) if name == operand)

    def reduces_to(self, member: tuple[int, ...]) -> _Reduced:
        """Whether that result is the result of a reduction: followed from its root through what keeps the shape."""
        start = resolved(Value(self.instruction, member))
        if start is None or not self._holds(start):
            return _Reduced.NOT
        for value in upstream(start, lambda user, other: same_elements(user, other) and self._holds(other)):
            if value.opcode == "reduce":
                return _Reduced.TO_LESS
        for value in upstream(start, lambda user, other: user.opcode in SAME_PLACE and self._holds(other)):
            if is_spread_reduction(value.instruction):
                return _Reduced.AND_SPREAD
        return _Reduced.NOT

    def _holds(self, value: Value) -> bool:
        return value.fusions[:1] == (self.instruction,) if value.fusions else value.instruction is self.instruction

    def keeps_shape(self, operand: str) -> bool:
        """Whether all that it does with that operand is elementwise, up to its own result."""
        if self.instruction.opcode != "fusion":
            return self.instruction.opcode in ELEMENTWISE
        called = self.instruction.called_computations()
        parameters = called[0].parameters if called else ()
        numbers = {number for number, name in enumerate(self.instruction.operands) if name == operand}
        waiting = [parameter for parameter in parameters if parameter.parameter_number in numbers]
        seen: set[str] = set()
        while waiting and len(seen) < MOST_STEPS:
            value = waiting.pop()
            for user in value.users:
                if user.opcode == "tuple" or user.name in seen:
                    continue
                if user.opcode not in ELEMENTWISE:
                    return False
                seen.add(user.name)
                waiting.append(user)
        return bool(parameters)

    def repeats(self, operand: str) -> bool:
        """Whether it uses the elements of that operand several times: a broadcast, gather, or window of it."""
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
    """Whether it is a library call, or a product whose code a library makes."""
    kernel = look.kernel
    return kernel.opcode == "custom-call" or (kernel.kind in _PRODUCT_KINDS and _is_generated(look))


def _is_generated(look: _Look) -> bool:
    """Whether a library makes its code from a graph that XLA hands over (YNNPACK, oneDNN), of operations that it
    knows."""
    return any(name in look.kernel.target for name in _OF_LIBRARIES)


def _adds_parts(look: _Look) -> bool:
    """Whether it is the sum that XLA put behind a product that it split: a reduction of the product's own primitive."""
    kernel = look.kernel
    return (
        kernel.kind not in _PRODUCT_KINDS
        and kernel.path.primitive in ("dot_general", "dot")
        and any(inner.opcode == "reduce" for inner in fused(look.instruction))
    )


def _is_reduced(passage: Passage, made: _Look, used: _Look) -> bool:
    member = passage.value.member
    if made.once("to less", member, lambda: made.reduces_to(member) is _Reduced.TO_LESS):
        places = used.places(passage.operand)
        return not used.once("keeps shape", places, lambda: used.keeps_shape(passage.operand))
    return made.once("spread", member, lambda: made.reduces_to(member) is _Reduced.AND_SPREAD)


def _repeats(passage: Passage, used: _Look) -> bool:
    return used.once("repeats", used.places(passage.operand), lambda: used.repeats(passage.operand))


def _moves(look: _Look) -> bool:
    return look.kernel.kind in _MOVING_KINDS and reorders(look.instruction)


def _is_apart_on_cpu(made: _Look, used: _Look) -> bool:
    """Whether a rule of XLA's CPU compiler keeps the two apart (`CpuInstructionFusion::ShouldFuse`)."""
    module = used.instruction.computation.module
    if module.once(platform_of) != "cpu":
        return False
    called = made.instruction.called_computations() if made.instruction.opcode == "fusion" else ()
    root = called[0].root if called else made.instruction
    return (root is not None and root.opcode not in _FUSED_ON_CPU) or any(map(_is_long_concatenation, (made, used)))


def _is_long_concatenation(look: _Look) -> bool:
    instruction = look.instruction
    if instruction.opcode == "fusion":
        held = [inner for inner in fused(instruction) if inner.opcode not in FREE]
        instruction = held[0] if len(held) == 1 else instruction
    shape = instruction.shape
    if instruction.opcode != "concatenate" or shape.layout is None:
        return False
    along = instruction.integers("dimensions")
    return len(instruction.operands) > 8 or (shape.rank > 1 and along == shape.layout.minor_to_major[:1])


def _many(passage: Passage) -> bool:
    """Whether the two together may have more operands and results than a fusion can: this depends on which are the
    same."""
    producer, consumer = passage.producer, passage.consumer
    return producer.operands + consumer.operands + producer.results + consumer.results > MOST_OPERANDS


def _too_large(passage: Passage, made: _Look, used: _Look, _flow: Flow) -> bool:
    inside = passage.producer.instructions + passage.consumer.instructions
    if inside > MANY_INSTRUCTIONS or not _many(passage):  # as decides it, or as nearly all are
        return inside > MANY_INSTRUCTIONS
    operands = {*made.instruction.operands, *used.instruction.operands}
    results = len(made.instruction.shape.leaves()) + len(used.instruction.shape.leaves())
    return len(operands) + results > MOST_OPERANDS


_TESTS: Final[tuple[tuple[str, Callable[[Passage, _Look, _Look, Flow], bool]], ...]] = (
    ("control-flow", lambda passage, made, used, flow: passage.value.crossed),
    (
        "communication",
        lambda passage, made, used, flow: _communicates(made) or _communicates(used),
    ),
    ("library-call", lambda passage, made, used, flow: _is_library(made) or _is_library(used)),
    ("split-k", lambda passage, made, used, flow: _adds_parts(used) or _adds_parts(made)),
    ("reduction", lambda passage, made, used, flow: _is_reduced(passage, made, used)),
    (
        "matrix-product",
        lambda passage, made, used, flow: made.kernel.kind in _PRODUCT_KINDS or used.kernel.kind in _PRODUCT_KINDS,
    ),
    (
        "whole-array",
        lambda passage, made, used, flow: not {made.kernel.kind, used.kernel.kind}.isdisjoint(_WHOLE_ARRAY_KINDS),
    ),
    ("layout", lambda passage, made, used, flow: _moves(made) or _moves(used)),
    ("buffer-copy", lambda passage, made, used, flow: "copy" in (made.instruction.opcode, used.instruction.opcode)),
    ("scatter", lambda passage, made, used, flow: "scatter" in (made.kernel.kind, used.kernel.kind)),
    ("cpu-rule", lambda passage, made, used, flow: _is_apart_on_cpu(made, used)),
    ("several-users", lambda passage, made, used, flow: flow.readers(passage.value) > 1),
    ("program-output", lambda passage, made, used, flow: array_key(passage.value) in flow.outputs),
    ("recomputation", lambda passage, made, used, flow: _repeats(passage, used)),
    ("size-limit", _too_large),
    ("library-call", lambda passage, made, used, flow: _is_generated(made) or _is_generated(used)),
)
