"""Which dimensions of a matrix product the dimensions of a later array are: followed back through reshapes, bitcasts,
transposes, reductions and elementwise operations. None wherever the text does not show it."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from jaxprof.hlo.analysis.cost.linear import is_spread_reduction, windows
from jaxprof.hlo.analysis.dataflow import ELEMENTWISE, MOST_STEPS, RENAMING, Value

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from jaxprof.hlo.model import Instruction
    from jaxprof.hlo.shape import Shape

_DEEPEST: Final = 128
"""Most operations between an array and the product: Python's stack holds ten times as many."""


class _Factor(NamedTuple):
    """A part of a dimension of the product: each `stride`-th of its indices, `size` of them."""

    axis: int
    stride: int
    size: int


class AxisPart(NamedTuple):
    """A part of a dimension of the product: the digits of its index from value `low` to below value `high`. Two
    dimensions that were joined before the product are two parts of one of its dimensions."""

    axis: int
    low: int
    high: int


AxisParts: TypeAlias = frozenset[AxisPart]
"""Parts that do not overlap or adjoin."""

_Labels: TypeAlias = tuple[tuple[_Factor, ...], ...]
"""For each dimension of an array the parts of the product's dimensions that it consists of, the outermost first."""


@dataclass(frozen=True, slots=True)
class ProductAxes:
    """The dimensions of a product's result, by number: those that both operands have, and those of one operand."""

    batch: frozenset[int]
    left: frozenset[int]
    right: frozenset[int]

    def side(self, parts: AxisParts) -> frozenset[int]:
        """The dimensions of the operand that these parts come from; empty where they do not come from one alone."""
        axes = {part.axis for part in parts}
        return next((side for side in (self.left, self.right) if axes and axes <= side), frozenset())


@dataclass(frozen=True, slots=True)
class OperandAxes:
    """Dimensions of one operand of a product."""

    contracting: tuple[int, ...]
    batch: tuple[int, ...]


def operand_axes(product: Instruction, number: int) -> OperandAxes | None:
    """The roles of the dimensions of a product's operand 0 or 1."""
    side = "rhs" if number else "lhs"
    if product.opcode == "custom-call":
        config = product.backend_config.get("gemm_backend_config", product.backend_config)
        numbers = config.get("dot_dimension_numbers") if isinstance(config, dict) else None
        if not isinstance(numbers, dict):
            return None
        contracting = _integers(numbers.get(f"{side}_contracting_dimensions"))
        return OperandAxes(contracting, _integers(numbers.get(f"{side}_batch_dimensions"))) if contracting else None
    if product.opcode == "convolution":
        labels = _convolution_labels(product)
        if labels is None:
            return None
        own = labels[number]
        return OperandAxes((own.index("i" if number else "f"),), tuple(at for at, c in enumerate(own) if c.isdecimal()))
    return OperandAxes(product.integers(f"{side}_contracting_dims"), product.integers(f"{side}_batch_dims"))


def product_axes(product: Value) -> ProductAxes | None:
    """Where the dimensions of the result come from."""
    instruction = product.instruction
    if instruction.opcode == "convolution":
        labels = _convolution_labels(instruction)
        if labels is None:
            return None
        result = labels[2]
        batch = frozenset(at for at, label in enumerate(result) if label.isdecimal())
        return ProductAxes(batch, frozenset({result.index("b")}), frozenset({result.index("f")}))
    left, right = operand_axes(instruction, 0), instruction.operand(0)
    if left is None or right is None:
        return None
    batch_count = len(left.batch)
    left_count = right.shape.rank - batch_count - len(left.contracting)
    rank = product.shape.rank
    if left_count < 0 or batch_count + left_count > rank:
        return None
    return ProductAxes(
        frozenset(range(batch_count)),
        frozenset(range(batch_count, batch_count + left_count)),
        frozenset(range(batch_count + left_count, rank)),
    )


def _convolution_labels(convolution: Instruction) -> tuple[str, str, str] | None:
    """The dimension labels of a product that is written as a convolution, its window a batch; None for any other."""
    operands, arrow, result = convolution.attributes.get("dim_labels", "").partition("->")
    left, underscore, right = operands.partition("_")
    shapes = [convolution.operand(0), convolution.operand(1)]
    if not arrow or not underscore or None in shapes:
        return None
    if sorted(left) != sorted(right.replace("i", "f").replace("o", "b")) or sorted(left) != sorted(result):
        return None
    for label in filter(str.isdecimal, left):
        sizes = {
            shape.dimensions[labels.index(label)]
            for labels, shape in (
                (left, shapes[0].shape if shapes[0] else convolution.shape),
                (right, shapes[1].shape if shapes[1] else convolution.shape),
                (result, convolution.shape),
            )
        }
        if len(sizes) > 1:
            return None
    return left, right, result


def _integers(written: object) -> tuple[int, ...]:
    return tuple(int(number) for number in written) if isinstance(written, list) else ()


class AxisTracker:
    """Follows arrays back to one product."""

    def __init__(self, product: Value) -> None:
        self._product = product
        self._known: dict[tuple[int, tuple[int, ...], int], _Labels | None] = {}

    def reduced(self, reduction: Value) -> AxisParts | None:
        """What a reduction, or a row's reduction broadcast over the row, combines."""
        if is_spread_reduction(reduction.instruction):
            labels = self._operand(reduction, 0, 0)
            sliding = windows(reduction.instruction)
            return _joined(labels, [at for at, window in enumerate(sliding) if window.size > 1])
        labels = self._labels(reduction, 0)
        left = _joined(labels, range(len(labels or ())))
        return None if left is None else self._others(left)

    def within(self, value: Value, dimensions: Sequence[int]) -> AxisParts | None:
        """The product's dimensions that these dimensions of an array are."""
        return _joined(self._labels(value, 0), dimensions)

    def _others(self, parts: AxisParts) -> AxisParts:
        """All of the product's dimensions except these."""
        others = []
        for axis, size in enumerate(self._product.shape.dimensions):
            low = 1
            for part in sorted(other for other in parts if other.axis == axis):
                if part.low > low:
                    others.append(AxisPart(axis, low, part.low))
                low = part.high
            if low < size:
                others.append(AxisPart(axis, low, size))
        return frozenset(others)

    def _labels(self, value: Value, depth: int) -> _Labels | None:
        if value.instruction is self._product.instruction:
            return tuple(
                (_Factor(axis, 1, size),) if size > 1 else ()
                for axis, size in enumerate(self._product.shape.dimensions)
            )
        if depth > _DEEPEST or len(self._known) > MOST_STEPS:
            return None
        if value.key not in self._known:
            self._known[value.key] = None  # a cycle, in a broken text, leads nowhere
            self._known[value.key] = self._follow(value, depth + 1)
        return self._known[value.key]

    def _operand(self, value: Value, number: int, depth: int) -> _Labels | None:
        operand = value.instruction.operand(number)
        return self._labels(Value(operand, (), value.fusions), depth) if operand is not None else None

    def _follow(self, value: Value, depth: int) -> _Labels | None:
        instruction, member, fusions = value.instruction, value.member, value.fusions
        opcode = instruction.opcode
        if opcode == "get-tuple-element":
            tuple_made = instruction.operand(0)
            index = instruction.integers("index")[:1]
            return self._labels(Value(tuple_made, (*index, *member), fusions), depth) if tuple_made else None
        if opcode == "tuple" and member:
            made = instruction.operand(member[0])
            return self._labels(Value(made, member[1:], fusions), depth) if made else None
        if opcode == "fusion":
            called = instruction.called_computations()
            root = called[0].root if called else None
            return self._labels(Value(root, member, (*fusions, instruction)), depth) if root else None
        if opcode == "parameter" and fusions and instruction.parameter_number is not None:
            given = fusions[-1].operand(instruction.parameter_number)
            return self._labels(Value(given, member, fusions[:-1]), depth) if given else None
        if opcode in ("bitcast", "reshape", "transpose", "reduce", "reduce-window"):
            operand = instruction.operand(0)
            labels = self._operand(value, 0, depth)
            if operand is None or labels is None or len(labels) != operand.shape.rank or member:
                return None
            return _moved(instruction, operand.shape, labels)
        if opcode in RENAMING:
            operand = instruction.operand(0)
            return self._labels(Value(operand, member, fusions), depth) if operand is not None else None
        if opcode in ELEMENTWISE and opcode != "bitcast-convert":
            for number in range(len(instruction.operands)):
                operand = instruction.operand(number)
                if operand is not None and operand.shape.elements == value.elements:
                    labels = self._operand(value, number, depth)
                    if labels is not None:
                        return labels
        return None


def _joined(labels: _Labels | None, dimensions: Iterable[int]) -> AxisParts | None:
    """The parts that lie in these dimensions, those that touch as one; None where one was reduced by half."""
    if labels is None:
        return None
    joined: list[AxisPart] = []
    for axis, stride, size in sorted(part for at in dimensions if at < len(labels) for part in labels[at]):
        if not stride:
            return None
        touching = bool(joined) and joined[-1].axis == axis and joined[-1].high == stride
        joined.append(AxisPart(axis, joined.pop().low if touching else stride, stride * size))
    return frozenset(joined)


def _moved(instruction: Instruction, before: Shape, labels: _Labels) -> _Labels | None:
    """The labels behind an operation that gives the elements, or their reductions, other indices."""
    if instruction.opcode == "reduce":
        gone = instruction.integers("dimensions")
        return tuple(parts for at, parts in enumerate(labels) if at not in gone)
    after = instruction.shape
    if instruction.opcode == "reduce-window":
        return _in_windows(instruction, labels)
    if instruction.opcode == "transpose":
        order = instruction.integers("dimensions")
        return tuple(labels[at] for at in order) if sorted(order) == list(range(len(labels))) else None
    # A bitcast keeps every element's place in memory, a reshape its place in the order of the indices.
    kept = instruction.opcode == "bitcast"
    from_order = _order(before) if kept else range(before.rank)
    to_order = list(_order(after) if kept else range(after.rank))
    flat = [part for at in from_order for part in labels[at]]
    parts = _regrouped(flat, [after.dimensions[at] for at in to_order])
    if parts is None:
        return None
    placed: Mapping[int, tuple[_Factor, ...]] = dict(zip(to_order, parts, strict=True))
    return tuple(placed[at] for at in range(after.rank))


def _in_windows(window: Instruction, labels: _Labels) -> _Labels | None:
    """A reduction in steps, as XLA for CPUs writes it: what is left of a dimension is a part without a stride."""
    sliding, after = windows(window), window.shape.dimensions
    if len(sliding) != len(labels) or len(after) != len(labels):
        return None
    windowed: list[tuple[_Factor, ...]] = []
    for along, parts, size in zip(sliding, labels, after, strict=True):
        if along.size == 1:
            windowed.append(parts)
        elif along.stride != along.size or len(parts) > 1:
            return None
        else:
            windowed.append(tuple(_Factor(part.axis, 0, size) for part in parts if size > 1))
    return tuple(windowed)


def _order(shape: Shape) -> Sequence[int]:
    """The dimensions from the slowest varying to the fastest."""
    layout = shape.layout
    if layout is None or len(layout.minor_to_major) != shape.rank:
        return range(shape.rank)
    return tuple(reversed(layout.minor_to_major))


def _regrouped(flat: list[_Factor], sizes: Sequence[int]) -> list[tuple[_Factor, ...]] | None:
    """The same parts, in the same order, in dimensions of other sizes; None where a size cuts one unevenly."""
    if prod(part.size for part in flat) != prod(sizes):
        return None
    waiting = flat[::-1]
    groups: list[tuple[_Factor, ...]] = []
    for size in sizes:
        taken: list[_Factor] = []
        while size > 1:
            axis, stride, whole = waiting.pop()
            if whole <= size:
                if size % whole:
                    return None
                taken.append(_Factor(axis, stride, whole))
                size //= whole
            else:
                if whole % size:
                    return None
                inner = whole // size
                taken.append(_Factor(axis, stride * inner, size))
                waiting.append(_Factor(axis, stride, inner))
                size = 1
        groups.append(tuple(taken))
    return groups
