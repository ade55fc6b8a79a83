"""Explain why two kernels are not one: for each array that goes through memory between them, the reason and its cost.

If XLA's own reason is kept with the text (`hlo.files`: GPU modules compiled here, and dumps that have it),
that is the reason, in XLA's words. Otherwise HLO only shows what lies between the kernels; the reasons derived from it
are tried in a fixed order, beginning with those that no edit of the program removes. If none applies, the reason is
`not-told`; this module does not guess.

Scalars are left out. The bytes of a barrier are those that one call of the program would save if the two kernels were
one: what the consumer reads of the array, and what the producer writes of it if nothing else reads it and it is not a
result.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterator, Mapping
from itertools import groupby
from operator import attrgetter

from jaxprof.base.values import frozen, not_collecting
from jaxprof.hlo.files import reasons_in
from jaxprof.hlo.kernels import COLLECTIVES, ELEMENTWISE, FREE, SAME_PLACE
from jaxprof.hlo.kernels.cost import is_spread_reduction
from jaxprof.hlo.kernels.dataflow import MOST_STEPS, Value, origin_through, resolve, same_elements, sources, upstream
from jaxprof.hlo.kernels.flow import Array, Flow, Passage
from jaxprof.hlo.kernels.kernels import MATRIX_KINDS, Kernel
from jaxprof.hlo.kernels.kinds import HOST_KINDS, instructions_in, platform_of, reorders, values_of
from jaxprof.hlo.kernels.origin import op_path
from jaxprof.hlo.shape import Shape
from jaxprof.hlo.text.model import Instruction, Module, once_per_module

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
_REPEATING = ("broadcast", "gather", "reduce-window")


@frozen
class Barrier:
    """Two kernels connected by one array, and the reason why they are not fused."""

    producer: str
    consumer: str
    reason: str
    """One of the keys of `REASONS`: `several-users`, `library-call`..."""
    bytes: int
    """Bytes that one call of the program would save without the barrier."""
    shape: Shape
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
        ordered = sorted(_barriers(module.once(Flow), reasons_in(module)), key=attrgetter("bytes"), reverse=True)
    return tuple(ordered)


def _barriers(flow: Flow, words: Mapping[str, str]) -> Iterator[Barrier]:
    reasons: dict[Hashable, str] = {}
    sizes: dict[int, int] = {}
    """One object for equal sizes, because a large module has few different ones."""
    for consumer, passages in groupby(flow, attrgetter("consumer")):
        seen: set[Array] = set()
        for passage in passages:
            producer, shape = passage.producer, passage.shape
            if not shape.rank or not passage.bytes_read or passage.array in seen:
                continue
            seen.add(passage.array)
            readers, is_output = flow.readers[passage.array], passage.array in flow.outputs
            # An array from outside a loop is read there once, by the first iteration.
            saved = passage.bytes_read * (1 if passage.crossed else consumer.count or 1)
            if readers == 1 and not is_output:
                saved += min(shape.bytes, producer.bytes_written) * (producer.count or 1)
            quote = "" if passage.crossed else words.get(producer.name, "")
            if quote and not _UNSPECIFIC.search(quote):
                reason = "stated"
            else:
                # Hardly any of a million barriers is between kernels that resemble no other.
                form = (
                    producer.likeness, passage.member, passage.crossed, consumer.likeness, passage.number, readers > 1,
                    is_output,
                )  # fmt: skip
                if form not in reasons:
                    reasons[form] = next((code for code, applies in _reasons(passage, flow) if applies), "not-told")
                reason = reasons[form]
            saved = sizes.setdefault(saved, saved)
            yield Barrier(producer.name, consumer.name, reason, saved, shape, consumer.computation, quote)


def _reasons(passage: Passage, flow: Flow) -> Iterator[tuple[str, bool]]:
    """Yield each reason and whether it applies. Nothing is computed for the reasons after the first that does."""
    both = passage.producer, passage.consumer
    kinds = {kernel.kind for kernel in both}
    yield "control-flow", passage.crossed
    yield "communication", not kinds.isdisjoint(COLLECTIVES | HOST_KINDS)
    yield (
        "library-call",
        any(
            kernel.opcode == "custom-call" or (kernel.kind in MATRIX_KINDS and _is_generated(kernel)) for kernel in both
        ),
    )
    yield "split-k", any(map(_adds_parts, both))
    yield "reduction", _is_reduced(passage)
    yield "matrix-product", not kinds.isdisjoint(MATRIX_KINDS)
    yield "whole-array", not kinds.isdisjoint(_WHOLE_ARRAY_KINDS)
    yield "layout", any(kernel.kind in _MOVING_KINDS and reorders(kernel.instruction) for kernel in both)
    yield "buffer-copy", any(kernel.instruction.opcode == "copy" for kernel in both)
    yield "scatter", "scatter" in kinds
    yield "cpu-rule", _is_apart_on_cpu(passage)
    yield "several-users", flow.readers[passage.array] > 1
    yield "program-output", passage.array in flow.outputs
    yield "recomputation", _repeats(passage)
    yield "library-call", any(map(_is_generated, both))


def _is_generated(kernel: Kernel) -> bool:
    """Return whether a library (YNNPACK, oneDNN) generates the kernel's code from a graph of operations that XLA hands
    over."""
    return any(name in kernel.target for name in _LIBRARY_GENERATORS)


def _adds_parts(kernel: Kernel) -> bool:
    """Return whether the kernel has the sum that XLA puts after a product that it split: a reduction of the product's
    own primitive, over what a batch of products makes. (A product with a vector may become a multiplication and a sum
    of that primitive, without any product.)"""
    for value in values_of(kernel.instruction) if kernel.kind not in MATRIX_KINDS else ():
        primitive = op_path(value.instruction.metadata.first_name).primitive
        if value.opcode != "reduce" or primitive not in ("dot_general", "dot"):
            continue
        product = origin_through(next(iter(sources(value)), None), SAME_PLACE)
        if product is not None and product.instruction.attributes.get("lhs_batch_dims", "{}") != "{}":
            return True
    return False


def _is_reduced(passage: Passage) -> bool:
    """Return whether the array is a reduction's result that is used over another shape, found by going back from the
    producer's root through what keeps the shape."""
    start = resolve(Value(passage.producer.instruction, passage.member))
    if start is None or not _is_inside(start, passage.producer):
        return False
    alike = upstream(start, lambda user, other: same_elements(user, other) and _is_inside(other, passage.producer))
    for value in alike:
        if value.opcode == "reduce":  # one element for each group of elements
            return not _keeps_shape(passage)
    # Every element of the group gets the result at once, as XLA for TPUs writes it.
    spread = upstream(start, lambda user, other: user.opcode in SAME_PLACE and _is_inside(other, passage.producer))
    return any(is_spread_reduction(value.instruction) for value in spread)


def _is_inside(value: Value, kernel: Kernel) -> bool:
    return (*value.fusions, value.instruction)[0] is kernel.instruction


def _parameters(passage: Passage) -> list[Instruction]:
    """Return the parameters of the consumer, a fusion, through which the array comes."""
    names = passage.consumer.instruction.operands
    called = passage.consumer.instruction.callees()
    numbers = {number for number, name in enumerate(names) if name == names[passage.number]}
    return [parameter for parameter in called[0].parameters if parameter.parameter_number in numbers] if called else []


def _keeps_shape(passage: Passage) -> bool:
    """Return whether everything that the consumer does with the array is elementwise, up to its own result."""
    if passage.consumer.instruction.opcode != "fusion":
        return passage.consumer.instruction.opcode in ELEMENTWISE
    parameters = waiting = _parameters(passage)
    seen: set[str] = set()
    while waiting and len(seen) < MOST_STEPS:
        users = {user.name: user for value in waiting for user in value.users if user.opcode != "tuple"}
        waiting = [user for name, user in users.items() if name not in seen]
        if any(user.opcode not in ELEMENTWISE for user in waiting):
            return False
        seen |= users.keys()
    return bool(parameters)


def _repeats(passage: Passage) -> bool:
    """Return whether the consumer uses the elements of the array several times, by a broadcast, gather or window."""
    if passage.consumer.instruction.opcode != "fusion":
        return passage.consumer.instruction.opcode in (*_REPEATING, "concatenate")
    parameters = _parameters(passage)
    value = parameters[0] if parameters else None
    # Through the names that the operand has before its first use.
    for _ in range(8):
        users = value.users if value is not None else ()
        if any(user.opcode in _REPEATING for user in users):
            return True
        value = users[0] if len(users) == 1 and users[0].opcode in ("bitcast", "reshape", "convert") else None
    return False


def _is_apart_on_cpu(passage: Passage) -> bool:
    """Return whether a rule of XLA's CPU compiler keeps the two apart (`CpuInstructionFusion::ShouldFuse`)."""
    made = passage.producer.instruction
    if platform_of(made.computation.module) != "cpu":
        return False
    root = (made.called_root if made.opcode == "fusion" else None) or made
    if root.opcode not in _FUSED_ON_CPU:
        return True
    for instruction in (made, passage.consumer.instruction):
        inside = [inner for inner in instructions_in(instruction) if inner.opcode not in FREE]
        only = inside[0] if len(inside) == 1 else instruction
        if only.opcode == "concatenate" and only.shape.layout is not None:
            is_along_fastest = only.integers("dimensions") == only.shape.minor_to_major[:1]
            if len(only.operands) > 8 or (only.shape.rank > 1 and is_along_fastest):
                return True
    return False
