"""Find attention, two matrix products with a softmax between them, by following the data.

The search goes back from an operand of the second product: over elementwise operations to an exponential; from there
over elementwise operations to the first product and, over a broadcast, to a maximum over a dimension of the same
scores; and to a sum over the exponential that divides it, or divides the second product. Names, scopes and the number
of operations are ignored.

Routing in a mixture of experts has the same operations. The axes show the difference: in attention the softmax is over
the keys, the second product sums over exactly these, and each query has the keys of its own batch. Scores that are also
normalised over their queries, for another product, belong to a soft mixture (dispatch and combine). If the text does
not show the axes, the operations decide. The dimensions of a later array are traced back to those of the product
through reshapes, bitcasts, transposes, reductions and elementwise operations.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from jaxprof.hlo.analysis.cost import library
from jaxprof.hlo.analysis.cost.linear import is_product, is_spread_reduction, windows
from jaxprof.hlo.analysis.dataflow import (
    ELEMENTWISE,
    MOST_STEPS,
    RENAMING,
    Value,
    downstream,
    resolved,
    same_elements,
    sources,
    upstream,
)
from jaxprof.hlo.analysis.opcodes import SAME_PLACE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from jaxprof.hlo.model import Instruction
    from jaxprof.hlo.shape import Shape


_NAMES: Final = RENAMING - {"bitcast"}
"""Operations that give an array another name; a bitcast may also give it other dimensions."""
_DEEPEST: Final = 128
"""Most operations between an array and the product; Python's stack holds ten times as many."""


class _Factor(NamedTuple):
    """Part of a dimension of the product: `size` of its indices, one every `stride`."""

    axis: int
    stride: int
    size: int


class AxisPart(NamedTuple):
    """Part of a dimension of the product: the digits of its index from value `low` to below value `high`. Two
    dimensions that were joined before the product are two parts of one of its dimensions."""

    axis: int
    low: int
    high: int


AxisParts: TypeAlias = frozenset[AxisPart]
"""Parts that neither overlap nor adjoin."""

_Labels: TypeAlias = tuple[tuple[_Factor, ...], ...]
"""For each dimension of an array, outermost first, the parts of the product's dimensions that it consists of."""


@dataclass(frozen=True, slots=True)
class ProductAxes:
    """Dimension numbers of a product's result: those shared by both operands (batch), and those of one operand."""

    batch: frozenset[int]
    left: frozenset[int]
    right: frozenset[int]

    def side(self, parts: AxisParts) -> frozenset[int]:
        """Return the result dimensions of the operand that these parts come from; empty if they come from neither or
        both."""
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
    """Return which operand each dimension of the result comes from; None if the text does not show it."""
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
    """Return the dimension labels of a product written as a convolution whose window is a batch; None for any other."""
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
    """Tracer of arrays back to one product."""

    def __init__(self, product: Value) -> None:
        self._product = product
        self._known: dict[tuple[int, tuple[int, ...], int], _Labels | None] = {}

    def reduced(self, reduction: Value) -> AxisParts | None:
        """Return the dimensions that a reduction, or a row's reduction broadcast over the row, combines."""
        if is_spread_reduction(reduction.instruction):
            labels = self._operand(reduction, 0, 0)
            sliding = windows(reduction.instruction)
            return _merged_parts(labels, [at for at, window in enumerate(sliding) if window.size > 1])
        labels = self._labels(reduction, 0)
        left = _merged_parts(labels, range(len(labels or ())))
        return None if left is None else self._others(left)

    def within(self, value: Value, dimensions: Sequence[int]) -> AxisParts | None:
        """Return the product's dimensions that these dimensions of an array correspond to."""
        return _merged_parts(self._labels(value, 0), dimensions)

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

    def _labels(self, given: Value, depth: int) -> _Labels | None:
        value = resolved(given, _NAMES)
        if value is None:
            return None
        if value.instruction is self._product.instruction:
            return tuple(
                (_Factor(axis, 1, size),) if size > 1 else ()
                for axis, size in enumerate(self._product.shape.dimensions)
            )
        if depth > _DEEPEST or len(self._known) > MOST_STEPS:
            return None
        if value.key not in self._known:
            self._known[value.key] = None  # a cycle in malformed text leads nowhere
            self._known[value.key] = self._follow(value, depth + 1)
        return self._known[value.key]

    def _operand(self, value: Value, number: int, depth: int) -> _Labels | None:
        operand = value.instruction.operand(number)
        return self._labels(Value(operand, (), value.fusions), depth) if operand is not None else None

    def _follow(self, value: Value, depth: int) -> _Labels | None:
        instruction, opcode = value.instruction, value.opcode
        if opcode in ("bitcast", "reshape", "transpose", "reduce", "reduce-window"):
            operand, labels = instruction.operand(0), self._operand(value, 0, depth)
            if operand is None or labels is None or len(labels) != operand.shape.rank or value.member:
                return None
            return _labels_after(instruction, operand.shape, labels)
        if opcode in ELEMENTWISE and opcode != "bitcast-convert":
            for number in range(len(instruction.operands)):
                operand = instruction.operand(number)
                if operand is not None and operand.shape.elements == value.elements:
                    labels = self._operand(value, number, depth)
                    if labels is not None:
                        return labels
        return None


def _merged_parts(labels: _Labels | None, dimensions: Iterable[int]) -> AxisParts | None:
    """Return the parts in these dimensions, adjoining ones merged; None if one of them was partly reduced."""
    if labels is None:
        return None
    joined: list[AxisPart] = []
    for axis, stride, size in sorted(part for at in dimensions if at < len(labels) for part in labels[at]):
        if not stride:
            return None
        touching = bool(joined) and joined[-1].axis == axis and joined[-1].high == stride
        joined.append(AxisPart(axis, joined.pop().low if touching else stride, stride * size))
    return frozenset(joined)


def _labels_after(instruction: Instruction, before: Shape, labels: _Labels) -> _Labels | None:
    """Return the labels after an operation that gives the elements, or their reductions, other indices."""
    if instruction.opcode == "reduce":
        gone = instruction.integers("dimensions")
        return tuple(parts for at, parts in enumerate(labels) if at not in gone)
    after = instruction.shape
    if instruction.opcode == "reduce-window":
        return _labels_after_windows(instruction, labels)
    if instruction.opcode == "transpose":
        order = instruction.integers("dimensions")
        return tuple(labels[at] for at in order) if sorted(order) == list(range(len(labels))) else None
    # A bitcast keeps the position of each element in memory; a reshape keeps its position in index order.
    kept = instruction.opcode == "bitcast"
    from_order = _order(before) if kept else range(before.rank)
    to_order = list(_order(after) if kept else range(after.rank))
    flat = [part for at in from_order for part in labels[at]]
    parts = _regrouped(flat, [after.dimensions[at] for at in to_order])
    if parts is None:
        return None
    placed: Mapping[int, tuple[_Factor, ...]] = dict(zip(to_order, parts, strict=True))
    return tuple(placed[at] for at in range(after.rank))


def _labels_after_windows(window: Instruction, labels: _Labels) -> _Labels | None:
    """Return the labels after a stepwise reduction, as XLA for CPUs writes it: a partly reduced dimension has stride
    0."""
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
    """Return the dimensions from the slowest varying to the fastest."""
    layout = shape.layout
    if layout is None or len(layout.minor_to_major) != shape.rank:
        return range(shape.rank)
    return tuple(reversed(layout.minor_to_major))


def _regrouped(flat: list[_Factor], sizes: Sequence[int]) -> list[tuple[_Factor, ...]] | None:
    """Return the same parts, in the same order, in dimensions of other sizes; None if a size splits one unevenly."""
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


MOST_USERS: Final = 64
_WEIGHING: Final = SAME_PLACE | {"divide", "multiply", "select", "reduce-precision"}


@dataclass(frozen=True, slots=True)
class Attention:
    """The operations by which attention was recognised."""

    scores: Value
    """The first product."""
    exponential: Value
    second: Value


def is_any_product(instruction: Instruction) -> bool:
    """Return whether the instruction is a matrix product, including one that a library computes."""
    if instruction.opcode == "custom-call":
        return library.kind_of(instruction.string("custom_call_target")) == "GEMM"
    return is_product(instruction)


def attention_before(second: Value) -> Attention | None:
    """Return the attention that ends in this matrix product; None if the product belongs to no attention."""
    for number in (0, 1):
        given = second.instruction.operand(number)
        operand = resolved(Value(given, (), second.fusions)) if given is not None else None
        if operand is None:
            continue
        for value in upstream(operand, _weighs):
            scores = _scores(value) if value.opcode == "exponential" else None
            if scores is None or scores.product.instruction is second.instruction:
                continue
            if _divided(operand, value, second, scores.product) and _is_over_keys(scores, second, number):
                return Attention(scores.product, value, second)
    return None


def _is_over_keys(scores: _Scores, second: Value, number: int) -> bool:
    """Return whether the second product sums over the keys, which the softmax is over, and routes nothing. True if the
    text does not show the axes."""
    axes, taken = product_axes(scores.product), operand_axes(second.instruction, number)
    tracker = AxisTracker(scores.product)
    keys = tracker.reduced(scores.maximum)
    given = second.instruction.operand(number)
    if axes is None or taken is None or not keys or given is None:
        return True
    probabilities = Value(given, (), second.fusions)
    summed, batch = (tracker.within(probabilities, dimensions) for dimensions in (taken.contracting, taken.batch))
    if summed is None or batch is None:
        return True
    side = axes.side(keys)
    own_batch = all(part.axis in axes.batch | side for part in batch)
    return bool(side) and summed == keys and own_batch and not _is_routing(scores, keys, tracker)


def _is_routing(scores: _Scores, keys: AxisParts, tracker: AxisTracker) -> bool:
    """Return whether the same scores also have a softmax over other axes."""
    for value in _elementwise_users(scores.product):
        other = _scores(value) if value.opcode == "exponential" else None
        if other is not None and other.product.instruction is scores.product.instruction:
            axes = tracker.reduced(other.maximum)
            if axes is not None and axes != keys:
                return True
    return False


def _elementwise_users(start: Value) -> Iterator[Value]:
    """Yield everything computed element by element from a value, at any distance."""
    seen: set[tuple[int, tuple[int, ...], int]] = set()
    waiting = [start]
    while waiting and len(seen) < MOST_USERS:
        for user in downstream(waiting.pop()):
            if user.key not in seen and user.opcode in ELEMENTWISE and user.elements == start.elements:
                seen.add(user.key)
                yield user
                waiting.append(user)


def _weighs(value: Value, operand: Value) -> bool:
    """Return whether probabilities may go through this operation before use: masks, scaling and casts. A difference
    (the gradient of a classifier's loss) ends the search, because its result is no longer a probability."""
    return value.opcode in _WEIGHING and value.elements == operand.elements


@dataclass(frozen=True, slots=True)
class _Scores:
    """Product from whose rows the maximum is subtracted."""

    product: Value
    maximum: Value
    """Reduction that computes the maximum."""


def _scores(exponential: Value) -> _Scores | None:
    """Return the product whose exponential is taken after its maximum in each row is subtracted."""
    product = maximum = None
    for value in upstream(exponential, same_elements):
        if is_any_product(value.instruction):
            product = product or value
        elif value.opcode == "subtract":
            for operand in sources(value)[1:]:
                maximum = maximum or _reduces_to(operand, "maximum")
        if product is not None and maximum is not None:
            return _Scores(product, maximum)
    return None


def _divided(probabilities: Value, exponential: Value, second: Value, scores: Value) -> bool:
    """Return whether the exponential, or the product with it, is divided by its sum over a dimension."""
    for value in upstream(probabilities, lambda taker, other: taker is not exponential and _weighs(taker, other)):
        if _divides_by_sum(value, scores):
            return True
    return any(_divides_by_sum(user, scores) for user in _elementwise_users(second))


def _divides_by_sum(value: Value, scores: Value) -> bool:
    """Return whether the value is divided by the sum of an exponential of these scores: the same exponential, or one
    that another kernel recomputes."""
    if value.opcode not in ("divide", "multiply") or (value.opcode == "multiply" and not _has_reciprocal(value)):
        return False
    for operand in sources(value):
        total = _reduces_to(operand, "add")
        if total is None:
            continue
        for summand in upstream(total, _leads_to_sum):
            if summand.opcode == "exponential":
                same = _scores(summand)
                if same is not None and same.product.instruction is scores.instruction:
                    return True
    return False


def _leads_to_sum(value: Value, operand: Value) -> bool:
    """Return whether to pass through the sum, its steps if it is taken in steps, and the operations before it."""
    return value.opcode in ("reduce", "reduce-window") or same_elements(value, operand)


def _has_reciprocal(multiply: Value) -> bool:
    """Return whether one factor is broadcast from a quotient: `e * broadcast(1 / sum)`."""
    spreads = filter(None, map(_spread, sources(multiply)))
    return any(
        factor.opcode in ("divide", "power") for spread in spreads for factor in upstream(spread, _leads_to_source)
    )


def _leads_to_source(value: Value, operand: Value) -> bool:
    """Return whether to go on from a broadcast value to its source."""
    return value.opcode == "broadcast" or same_elements(value, operand)


def _spread(value: Value) -> Value | None:
    """Return the broadcast that an array is, possibly under another dtype; None if it is not a broadcast."""
    for _ in range(8):
        if value.opcode == "broadcast" or is_spread_reduction(value.instruction):
            return value
        made_of = sources(value) if value.opcode in SAME_PLACE else []
        if len(made_of) != 1:
            return None
        value = made_of[0]
    return None


def _reduces_to(operand: Value, combiner: str) -> Value | None:
    """Return the reduction with that combiner from which an array was broadcast."""
    spread = _spread(operand)
    if spread is not None:
        for value in upstream(spread, _leads_to_source):
            if value.opcode == "reduce" or is_spread_reduction(value.instruction):
                return value if combiner_of(value.instruction) == combiner else None
    return None


def combiner_of(reduce: Instruction) -> str:
    """Return the operation that a reduction applies: `add`, `maximum`; empty if it is not a single operation."""
    root = reduce.called_root
    return root.opcode if root is not None else ""
