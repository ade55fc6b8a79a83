"""Explain why two kernels are not one: for each array that goes through memory between them, the reason and its cost.

If XLA's own reason is kept with the text (`hlo.dumped`: GPU modules compiled here, and dumps that have it),
that is the reason, in XLA's words. Otherwise HLO only shows what lies between the kernels; the reasons derived from it
are tried in a fixed order, beginning with those that no edit of the program removes. If none applies, the reason is
`not-told`; this module does not guess.

Scalars are left out. The bytes of a barrier are those that one run of the program would save if the two kernels were
one: what the consumer reads of the array, and what the producer writes of it if nothing else reads it and it is not a
result.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from operator import attrgetter
from typing import Literal, TypeVar, cast

from jaxprof.frozen import frozen
from jaxprof.hlo import not_collecting
from jaxprof.hlo.analysis.cost.linear import is_spread_reduction
from jaxprof.hlo.analysis.dataflow import MOST_STEPS, Value, resolved, same_elements, upstream
from jaxprof.hlo.analysis.flow import Flow, Passage, array_key, flow_of
from jaxprof.hlo.analysis.kernels import MATRIX_KINDS, Kernel
from jaxprof.hlo.analysis.kinds import HOST_KINDS, fused, is_collective, platform_of, reorders
from jaxprof.hlo.analysis.opcodes import ELEMENTWISE, FREE, SAME_PLACE
from jaxprof.hlo.dumped import stated
from jaxprof.hlo.model import Module, once_per_module
from jaxprof.hlo.shape import Shape

Answer = TypeVar("Answer")

_UNSPECIFIC = re.compile(r"^the (?:producer|consumer) is not fusible")
"""XLA's message for kernels that it never fuses; the derived reason says what kind of kernel they are."""
_WHOLE_ARRAY_KINDS = frozenset({"sort", "top-k", "FFT", "Cholesky", "triangular solve"})
_LIBRARY_GENERATORS = ("ynn", "onednn", "cudnn", "cublas", "cutlass", "miopen", "hipblas")
"""Parts of the names of fusion generators to which XLA hands a graph. `__triton_gemm` is XLA's own generator."""
_FUSED_ON_CPU = ELEMENTWISE | {
    "bitcast", "broadcast", "concatenate", "dynamic-slice", "dynamic-update-slice", "gather", "iota", "pad", "reduce",
    "reshape", "reverse", "slice", "transpose", "tuple",
}  # fmt: skip
"""Opcodes that XLA's CPU compiler computes element by element inside another kernel."""
_MOVING_KINDS = frozenset({"copy", "transpose", "transpose fusion"})


@frozen
class Barrier:
    """Two kernels connected by one array, and the reason why they are not fused."""

    producer: str
    consumer: str
    reason: str
    """One of the keys of `REASONS`: `several-users`, `library-call`..."""
    bytes: int
    """Bytes that one run of the program would save without the barrier."""
    shape: Shape
    """Shape of the array."""
    computation: str
    """Name of the computation that holds the consumer."""
    stated: str = ""
    """XLA's own words on the producer; empty if they are not kept."""

    @property
    def words(self) -> str:
        """The reason in words, with the names of both kernels."""
        return f"{self.producer} and {self.consumer}: {self.why}"

    @property
    def why(self) -> str:
        """The reason in words, without the names of the kernels."""
        why = REASONS[self.reason] if not self.stated else f"XLA: {self.stated}"
        if self.stated and self.reason != "stated":
            why = f"{why}; {REASONS[self.reason]}"
        return why


REASONS: dict[str, str] = {
    "stated": "XLA says why itself",
    "control-flow": "a loop, branch or call lies between them, and fusions do not cross its boundary",
    "communication": "the array goes to other devices, or to the host",
    "library-call": "a library or custom kernel computes one of them; it reads and writes whole arrays in memory",
    "split-k": "XLA split a matrix product along its contraction (split-K) and sums the parts in another kernel",
    "reduction": "the array results from a reduction, which must finish before a kernel of another shape can use it",
    "matrix-product": "one of them is a matrix product or convolution, which fuses with only some of its neighbours",
    "whole-array": "one of them sorts, transforms or factorises: it needs all of an array before its first result",
    "layout": "the array is rewritten in another order of its dimensions",
    "buffer-copy": "the array is copied, because one of the two buffers is written while the other is still needed",
    "scatter": "a scatter writes in place, in an order that depends on the data",
    "cpu-rule": "XLA's CPU compiler never fuses one of them: a concatenation along the fastest dimension or of more "
    "than eight arrays, or an operation that is not computed element by element",
    "several-users": "more than one kernel reads the array, and each would compute it again",
    "program-output": "the array is a result of the program, and must be written in any case",
    "recomputation": "the consumer uses each element many times, and would compute it again each time",
    "not-told": "the HLO text does not show why",
}
"""Every reason and its words, in the order in which the reasons are tried."""


@once_per_module
def barriers(module: Module) -> tuple[Barrier, ...]:
    """Return why kernels that share an array are not one, largest cost in bytes first; empty for a module that is not
    optimised yet."""
    if not module.is_optimised:
        return ()
    with not_collecting():
        ordered = sorted(_barriers(flow_of(module), stated(module)), key=attrgetter("bytes"), reverse=True)
    return tuple(ordered)


def _barriers(flow: Flow, words: Mapping[str, str]) -> Iterator[Barrier]:
    answers: dict[tuple[object, ...], object] = {}
    reasons: dict[tuple[object, ...], str] = {}
    arrays: dict[tuple[object, ...], Shape] = {}
    sizes: dict[int, int] = {}
    """One object for equal sizes, because a large module has few different ones."""
    used: _KernelView | None = None
    seen: set[tuple[int, object]] = set()
    for passage in flow.passages:
        if used is None or used.kernel is not passage.consumer:
            used = _KernelView(passage.consumer, answers)
            seen = set()
        made = (passage.producer.likeness, passage.value.member)
        if made not in arrays:
            arrays[made] = passage.value.instruction.shape.member(passage.value.member)
        array = arrays[made]
        if not array.rank or not passage.bytes_read:
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
        # Of a million barriers hardly any are between kernels that resemble no other.
        form = (
            passage.producer.likeness, passage.value.member, passage.value.crossed, passage.consumer.likeness,
            passage.number, readers > 1, is_output,
        )  # fmt: skip
        quote = "" if passage.value.crossed else words.get(passage.producer.name, "")
        if quote and not _UNSPECIFIC.search(quote):
            reason = "stated"
        else:
            if form not in reasons:
                tried = _tried(passage, _KernelView(passage.producer, answers), used, flow)
                reasons[form] = next((code for code, applies in tried if applies), "not-told")
            reason = reasons[form]
        saved = sizes.setdefault(saved, saved)
        yield Barrier(
            passage.producer.name, passage.consumer.name, reason, saved, array, passage.consumer.computation, quote
        )


class _KernelView:
    """A kernel and what the reasons need to know about it. Answers that depend only on its form are computed once for
    all kernels that are alike."""

    __slots__ = ("_known", "instruction", "kernel")

    def __init__(self, kernel: Kernel, answers: dict[tuple[object, ...], object]) -> None:
        self.kernel = kernel
        self.instruction = kernel.instruction
        self._known = answers

    def once(self, question: str, about: object, answer: Callable[[], Answer]) -> Answer:
        """Return the answer to a question about a part of the kernel, computed once for kernels that are alike."""
        key = (question, self.kernel.likeness, about)
        if key not in self._known:
            self._known[key] = answer()
        return cast("Answer", self._known[key])

    def places(self, operand: str) -> tuple[int, ...]:
        """Return the positions at which this name occurs among the operands."""
        return tuple(number for number, name in enumerate(self.instruction.operands) if name == operand)

    def reduces_to(self, member: tuple[int, ...]) -> Literal["", "less", "all"]:
        """Return whether this result is that of a reduction, found by going back from the root through what keeps the
        shape: `less` if it has one element for each group of elements, `all` if every element of the group gets the
        result at once, as XLA for TPUs writes it."""
        start = resolved(Value(self.instruction, member))
        if start is None or not self._holds(start):
            return ""
        for value in upstream(start, lambda user, other: same_elements(user, other) and self._holds(other)):
            if value.opcode == "reduce":
                return "less"
        for value in upstream(start, lambda user, other: user.opcode in SAME_PLACE and self._holds(other)):
            if is_spread_reduction(value.instruction):
                return "all"
        return ""

    def _holds(self, value: Value) -> bool:
        return value.fusions[:1] == (self.instruction,) if value.fusions else value.instruction is self.instruction

    def keeps_shape(self, operand: str) -> bool:
        """Return whether everything that the kernel does with this operand is elementwise, up to its own result."""
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
        """Return whether the kernel uses the elements of this operand several times, by a broadcast, gather or
        window."""
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


def _tried(passage: Passage, made: _KernelView, used: _KernelView, flow: Flow) -> Iterator[tuple[str, bool]]:
    """Yield each reason and whether it applies. Nothing is computed for the reasons after the first that does."""
    both = made, used
    kinds = {made.kernel.kind, used.kernel.kind}
    opcodes = {made.instruction.opcode, used.instruction.opcode}
    yield "control-flow", passage.value.crossed
    yield "communication", any(is_collective(kind) or kind in HOST_KINDS for kind in kinds)
    yield "library-call", any(map(_is_library, both))
    yield "split-k", any(map(_adds_parts, both))
    yield "reduction", _is_reduced(passage, made, used)
    yield "matrix-product", not kinds.isdisjoint(MATRIX_KINDS)
    yield "whole-array", not kinds.isdisjoint(_WHOLE_ARRAY_KINDS)
    yield "layout", any(map(_moves, both))
    yield "buffer-copy", "copy" in opcodes
    yield "scatter", "scatter" in kinds
    yield "cpu-rule", _is_apart_on_cpu(made, used)
    yield "several-users", flow.readers(passage.value) > 1
    yield "program-output", array_key(passage.value) in flow.outputs
    yield (
        "recomputation",
        used.once("repeats", used.places(passage.operand), lambda: used.repeats(passage.operand)),
    )
    yield "library-call", any(map(_is_generated, both))


def _is_library(look: _KernelView) -> bool:
    """Return whether the kernel is a library call, or a product whose code a library generates."""
    kernel = look.kernel
    return kernel.opcode == "custom-call" or (kernel.kind in MATRIX_KINDS and _is_generated(look))


def _is_generated(look: _KernelView) -> bool:
    """Return whether a library (YNNPACK, oneDNN) generates the kernel's code from a graph of operations that XLA hands
    over."""
    return any(name in look.kernel.target for name in _LIBRARY_GENERATORS)


def _adds_parts(look: _KernelView) -> bool:
    """Return whether the kernel is the sum that XLA puts after a product that it split: a reduction of the product's
    own primitive."""
    kernel = look.kernel
    return (
        kernel.kind not in MATRIX_KINDS
        and kernel.path.primitive in ("dot_general", "dot")
        and any(inner.opcode == "reduce" for inner in fused(look.instruction))
    )


def _is_reduced(passage: Passage, made: _KernelView, used: _KernelView) -> bool:
    member = passage.value.member
    reduced = made.once("reduces to", member, lambda: made.reduces_to(member))
    if reduced == "less":
        places = used.places(passage.operand)
        return not used.once("keeps shape", places, lambda: used.keeps_shape(passage.operand))
    return reduced == "all"


def _moves(look: _KernelView) -> bool:
    return look.kernel.kind in _MOVING_KINDS and reorders(look.instruction)


def _is_apart_on_cpu(made: _KernelView, used: _KernelView) -> bool:
    """Return whether a rule of XLA's CPU compiler keeps the two apart (`CpuInstructionFusion::ShouldFuse`)."""
    module = used.instruction.computation.module
    if platform_of(module) != "cpu":
        return False
    called = made.instruction.called_computations() if made.instruction.opcode == "fusion" else ()
    root = called[0].root if called else made.instruction
    return (root is not None and root.opcode not in _FUSED_ON_CPU) or any(map(_is_long_concatenation, (made, used)))


def _is_long_concatenation(look: _KernelView) -> bool:
    instruction = look.instruction
    if instruction.opcode == "fusion":
        held = [inner for inner in fused(instruction) if inner.opcode not in FREE]
        instruction = held[0] if len(held) == 1 else instruction
    shape = instruction.shape
    if instruction.opcode != "concatenate" or shape.layout is None:
        return False
    along = instruction.integers("dimensions")
    return len(instruction.operands) > 8 or (shape.rank > 1 and along == shape.layout.minor_to_major[:1])
