"""What a kernel costs, counted from its shapes: FLOPs, bytes, and the least time that a device needs for them.

Here: the value, and the FLOPs of the operations that multiply and add, dots and convolutions, from shapes and dimension
numbers. A multiplication and an addition are two FLOPs; eight for complex numbers. Nothing is counted for the padding
and the holes of a convolution's window: these positions are known to be zero, and no library visits them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from math import gcd, isqrt, prod

from jaxprof.base.values import frozen
from jaxprof.hlo.kernels import PRODUCTS
from jaxprof.hlo.shape import Shape
from jaxprof.hlo.text.model import Instruction


@frozen
class Cost:
    """Cost of an instruction, a computation, or one call of a module. Bytes are those of whole kernels
    (`jaxprof.hlo.kernels.cost.model`): an instruction inside one has none."""

    flops: float = 0.0
    transcendentals: float = 0.0
    """exp, tanh, sqrt and similar: one per element, not included in `flops`."""
    bytes: int = 0
    """Bytes read and written."""
    estimated: bool = False
    """Whether a part of the cost depends on the library's algorithm (sort, FFT, factorisations) or on the data."""
    opaque: bool = False
    """Whether FLOPs are missing, and those given are a lower bound: a call is opaque, a computation is not in the text,
    or a loop's trip count is unknown (its body is counted once)."""
    unsized: bool = False
    """Whether bytes are missing for the same reasons, except opaque calls, whose operands and results are known."""
    written: int = 0
    """The part of `bytes` that is written."""

    def __add__(self, other: Cost) -> Cost:
        return Cost(
            self.flops + other.flops,
            self.transcendentals + other.transcendentals,
            self.bytes + other.bytes,
            self.estimated or other.estimated,
            self.opaque or other.opaque,
            self.unsized or other.unsized,
            self.written + other.written,
        )

    def times(self, count: int | None) -> Cost:
        """Return the cost of `count` executions; if their number is unknown, that of one, marked as incomplete."""
        if count is None:
            return replace(self, opaque=True, unsized=True)
        flops, transcendentals = self.flops * count, self.transcendentals * count
        moved, written = self.bytes * count, self.written * count
        return replace(self, flops=flops, transcendentals=transcendentals, bytes=moved, written=written)


class NotShownError(Exception):
    """Raised by a formula if the text does not show what it needs."""


NOTHING = Cost()
OPAQUE = Cost(opaque=True)


_COMPLEX = frozenset({"c64", "c128"})


def multiply_add_flops(dtype: str) -> int:
    """Return the FLOPs of one multiplication and one addition: 2, or 8 for complex numbers."""
    return 8 if dtype in _COMPLEX else 2


def dot_flops(lhs: Shape, result: Shape, contracting: Sequence[int]) -> float:
    """Return 2 x elements of the result x the sizes that are summed over; `contracting` are dimension numbers of
    `lhs`."""
    depth = prod(lhs.dimensions[number] for number in contracting if 0 <= number < lhs.rank)
    return float(multiply_add_flops(lhs.dtype) * result.elements * depth)


def matmul_flops(lhs: Shape, rhs: Shape, result: Shape) -> float:
    """Return the FLOPs of (b, m, k) x (b, k, n) -> (b, m, n) from the sizes alone, without dimension numbers.

    The elements of the three arrays give k: `lhs x rhs = k^2 x result x b`. Leading dimensions that all three share are
    taken as the batch.
    """
    batch = 1
    if lhs.rank == rhs.rank == result.rank:
        for a, b, c in zip(lhs.dimensions[:-2], rhs.dimensions[:-2], result.dimensions[:-2], strict=False):
            if not a == b == c:
                break
            batch *= a
    if not result.elements:
        return 0.0
    depth = isqrt(lhs.elements * rhs.elements // (result.elements * batch))
    return float(multiply_add_flops(lhs.dtype) * result.elements * depth)


def is_matmul(convolution: Instruction) -> bool:
    """Return whether this is a dot as XLA for TPUs writes it: a convolution without a window, or whose window stands
    for the batch."""
    if "size=" not in convolution.attributes.get("window", ""):
        return True
    return convolution.metadata.first_name.endswith("/dot_general")


def is_product(instruction: Instruction) -> bool:
    """Return whether the instruction is a matrix product, including one that XLA for TPUs writes as a convolution."""
    return instruction.opcode in PRODUCTS and (instruction.opcode != "convolution" or is_matmul(instruction))


@frozen
class ConvolutionWindow:
    """A window over one spatial dimension, as `window={size=3 stride=2 pad=1_1 lhs_dilate=1 rhs_dilate=1}` says."""

    size: int = 1
    stride: int = 1
    pad_low: int = 0
    base_dilation: int = 1
    """Dilation of the input: `n - 1` holes between its elements."""
    window_dilation: int = 1

    def sees_all(self, input_size: int) -> bool:
        """Return whether every position of the window, from the first that padding allows, takes in the whole input."""
        plain = self.stride == self.base_dilation == self.window_dilation == 1
        return plain and self.pad_low >= input_size - 1 and self.size >= 2 * input_size - 1


_FIELD = re.compile(r"(\w+)=([-\dx_]+)")


def windows(instruction: Instruction) -> tuple[ConvolutionWindow, ...]:
    """Return the windows of a convolution or a reduce-window, one per dimension; empty if there are none."""
    fields = dict(_FIELD.findall(instruction.attributes.get("window", "")))
    sizes = _numbers(fields.get("size", ""))
    count = len(sizes)

    def values(name: str, default: int) -> list[int]:
        numbers = _numbers(fields.get(name, ""))
        return numbers if len(numbers) == count else [default] * count

    return tuple(
        ConvolutionWindow(size, max(1, stride), low, max(1, base), max(1, dilation))
        for size, stride, low, base, dilation in zip(
            sizes, values("stride", 1), values("pad", 0), values("lhs_dilate", 1), values("rhs_dilate", 1), strict=True
        )
    )


def is_spread_reduction(window: Instruction) -> bool:
    """Return whether the window covers each of its dimensions completely from every position: how XLA for TPUs writes a
    reduction whose result goes to every element of the row."""
    operand = window.operand(0)
    sliding = windows(window)
    if window.opcode != "reduce-window" or operand is None or len(sliding) != operand.shape.rank:
        return False
    sizes = operand.shape.dimensions
    return all(position.size == 1 or position.sees_all(size) for position, size in zip(sliding, sizes, strict=True))


def _numbers(written: str) -> list[int]:
    """Return [1, 3] for `1x3`; for `1_2x0_1` (padding low and high) the low ones."""
    parts = (part.split("_")[0] for part in written.split("x")) if written else ()
    return [int(part) for part in parts if part.lstrip("-").isdecimal() and len(part) < 19]  # in 64 bits


def positions(window: ConvolutionWindow, input_size: int, output_size: int) -> int:
    """Count the pairs (output position, window position) that meet an element of the input rather than padding or a
    hole."""
    # Positions are counted one by one; in a longer window as if nothing lay outside.
    if window.size > (1 << 17):
        return window.size * output_size
    span = (input_size - 1) * window.base_dilation + 1
    return sum(
        _meeting(at * window.window_dilation - window.pad_low, window, span, output_size) for at in range(window.size)
    )


def _meeting(offset: int, window: ConvolutionWindow, span: int, output_size: int) -> int:
    """Count the outputs o with 0 <= o * stride + offset < span at a multiple of the base dilation."""
    stride, dilation = window.stride, window.base_dilation
    first = max(0, -(offset // stride))
    last = min(output_size - 1, (span - 1 - offset) // stride)
    if last < first:
        return 0
    if dilation == 1:
        return last - first + 1
    divisor = gcd(stride, dilation)
    if offset % divisor:
        return 0
    period = dilation // divisor
    meeting = -(offset // divisor) * pow(stride // divisor, -1, period) % period  # first output that meets an element
    start = first + (meeting - first) % period
    return (last - start) // period + 1 if start <= last else 0


def dimension_labels(convolution: Instruction) -> tuple[str, str, str] | None:
    """Return the labels of the dimensions of both operands and of the result: `b01f`, `01io`, `b01f`."""
    labels = re.fullmatch(r"([^_]+)_([^-]+)->(.+)", convolution.attributes.get("dim_labels", ""))
    return (labels[1], labels[2], labels[3]) if labels is not None else None


def convolution_flops(instruction: Instruction, source: Shape, kernel: Shape, result: Shape) -> float:
    """Return 2 x multiplications of the convolution that takes `source` and `kernel` to `result`.

    The shapes are passed separately from the instruction, because a library's backward call states the window of the
    forward convolution and has its arrays in other places. Raises NotShownError if the dimension labels cannot be
    read.
    """
    labels = dimension_labels(instruction)
    if labels is None:
        raise NotShownError
    in_labels, kernel_labels, out_labels = labels
    if (len(in_labels), len(kernel_labels), len(out_labels)) != (source.rank, kernel.rank, result.rank):
        raise NotShownError
    if not {"b", "f"} <= set(in_labels) or not {"i", "o"} <= set(kernel_labels):
        raise NotShownError
    visited = 1
    for number, window in enumerate(windows(instruction)):
        label = str(number)
        if label not in in_labels or label not in out_labels:
            raise NotShownError
        visited *= positions(
            window, source.dimensions[in_labels.index(label)], result.dimensions[out_labels.index(label)]
        )
    batch = source.dimensions[in_labels.index("b")]
    in_features = kernel.dimensions[kernel_labels.index("i")]
    out_features = kernel.dimensions[kernel_labels.index("o")]
    batch_groups = (instruction.integers("batch_group_count") or (1,))[0] or 1
    return float(multiply_add_flops(source.dtype) * batch * in_features * out_features * visited // batch_groups)


def combiner_of(reduce: Instruction) -> str:
    """Return the operation that a reduction applies: `add`, `maximum`; empty if it is not a single operation."""
    root = reduce.called_root
    return root.opcode if root is not None else ""
