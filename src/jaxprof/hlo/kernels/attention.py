"""Find attention, two matrix products with a softmax between them, by following the data.

The search goes back from an operand of the second product: over elementwise operations to an exponential; from there
over elementwise operations to the first product and, over a broadcast, to a maximum over a dimension of the same
scores; and to a sum over the exponential that divides it, or divides the second product. Names, scopes and the number
of operations are ignored.

Routing in a mixture of experts has the same operations. The axes show the difference: in attention the softmax is over
the keys, the second product sums over exactly these, and each query has the keys of its own batch. Scores that are also
normalised over their queries, for another product, belong to a soft mixture (dispatch and combine). Axes are known by
their sizes, because reshapes and transposes join and move them between the products. If the text does not show the
axes, the operations decide.
"""

from __future__ import annotations

from collections.abc import Iterator

from jaxprof.base.values import frozen
from jaxprof.hlo.kernels import ELEMENTWISE, SAME_PLACE
from jaxprof.hlo.kernels.cost import combiner_of, is_spread_reduction, windows
from jaxprof.hlo.kernels.cost.library import axes_size, is_any_product, operand_axes, product_sizes
from jaxprof.hlo.kernels.dataflow import Value, downstream, origin_through, resolve, same_elements, sources, upstream

_SUMMING = ("reduce", "reduce-window")
_WEIGHING = SAME_PLACE | {"divide", "multiply", "select", "reduce-precision"}


def scores_before(second: Value) -> Value | None:
    """Return the first product of the attention that ends in this one, which gives the scores; None if the product
    belongs to no attention."""
    for number in (0, 1):
        given = second.instruction.operand(number)
        operand = resolve(Value(given, (), second.fusions)) if given is not None else None
        if operand is None:
            continue
        for value in upstream(operand, _weighs):
            scores = _scores(value) if value.opcode == "exponential" else None
            if scores is None or scores.product.instruction is second.instruction:
                continue
            if _is_normalised(operand, value, second, scores.product) and _is_over_keys(scores, second, number):
                return scores.product
    return None


def _is_over_keys(scores: _Scores, second: Value, number: int) -> bool:
    """Return whether the second product sums over the keys, which the softmax is over, and routes nothing. True if the
    text does not show the axes."""
    taken, probabilities = operand_axes(second.instruction, number), second.instruction.operand(number)
    sizes = product_sizes(scores.product.instruction)
    if taken is None or probabilities is None or sizes is None:
        return True
    keys, dimensions, (batch, *sides) = scores.keys, probabilities.shape.dimensions, sizes
    batches = {batch * other for side in sides if side % keys == 0 for other in (1, side // keys)}
    sums_over_keys = axes_size(dimensions, taken.contracting) == keys
    return sums_over_keys and axes_size(dimensions, taken.batch) in batches and not _is_routing(scores)


def _is_routing(scores: _Scores) -> bool:
    """Return whether the same scores also have a softmax over other axes."""
    others = (_scores(value) for value in _elementwise_users(scores.product) if value.opcode == "exponential")
    return any(
        other is not None
        and other.product.instruction is scores.product.instruction
        and (scores.keys != other.keys or (scores.dimensions == other.dimensions and scores.over != other.over))
        for other in others
    )


def _elementwise_users(start: Value) -> Iterator[Value]:
    """Yield everything computed element by element from a value, at any distance."""
    seen: set[tuple[int, tuple[int, ...], int]] = set()
    waiting = [start]
    # A search must not read a whole module.
    while waiting and len(seen) < 64:
        for user in downstream(waiting.pop()):
            if user.key not in seen and user.opcode in ELEMENTWISE and user.elements == start.elements:
                seen.add(user.key)
                yield user
                waiting.append(user)


def _weighs(value: Value, operand: Value) -> bool:
    """Return whether probabilities may go through this operation before use: masks, scaling and casts. A difference
    (the gradient of a classifier's loss) ends the search, because its result is no longer a probability."""
    return value.opcode in _WEIGHING and value.elements == operand.elements


@frozen
class _Scores:
    """Product from whose rows the maximum is subtracted."""

    product: Value
    maximum: Value
    """Reduction that computes the maximum."""

    @property
    def over(self) -> tuple[int, ...]:
        """Dimensions that the maximum is taken over."""
        reduction = self.maximum.instruction
        if is_spread_reduction(reduction):
            return tuple(axis for axis, window in enumerate(windows(reduction)) if window.size > 1)
        return reduction.integers("dimensions")

    @property
    def dimensions(self) -> tuple[int, ...]:
        """Sizes of the array whose maximum is taken."""
        reduced = self.maximum.instruction.operand(0)
        return reduced.shape.dimensions if reduced is not None else ()

    @property
    def keys(self) -> int:
        """Number of scores in a row, which one softmax is over."""
        if is_spread_reduction(self.maximum.instruction):
            return max(1, axes_size(self.dimensions, self.over))
        return max(1, self.product.elements // max(1, self.maximum.elements))


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


def _is_normalised(probabilities: Value, exponential: Value, second: Value, scores: Value) -> bool:
    """Return whether the exponential, or the product with it, is divided by its sum over a dimension."""
    for value in upstream(probabilities, lambda taker, other: taker is not exponential and _weighs(taker, other)):
        if _divides_by_sum(value, scores):
            return True
    return any(_divides_by_sum(user, scores) for user in _elementwise_users(second))


def _divides_by_sum(value: Value, scores: Value) -> bool:
    """Return whether the value is divided by the sum of an exponential of these scores: the same exponential, or one
    that another kernel recomputes."""
    if value.opcode == "multiply":
        # By a reciprocal, `e * broadcast(1 / sum)`: one factor is broadcast from a quotient.
        spreads = filter(None, map(_spread, sources(value)))
        factors = (factor for spread in spreads for factor in upstream(spread, _leads_to_source))
        if not any(factor.opcode in ("divide", "power") for factor in factors):
            return False
    elif value.opcode != "divide":
        return False
    for operand in sources(value):
        total = _reduces_to(operand, "add")
        if total is None:
            continue
        # Through the steps of a sum that XLA takes in several.
        for summand in upstream(total, lambda taker, given: taker.opcode in _SUMMING or same_elements(taker, given)):
            if summand.opcode == "exponential":
                same = _scores(summand)
                if same is not None and same.product.instruction is scores.instruction:
                    return True
    return False


def _leads_to_source(value: Value, operand: Value) -> bool:
    return value.opcode == "broadcast" or same_elements(value, operand)


def _spread(value: Value) -> Value | None:
    """Return the broadcast that an array is, possibly under another dtype; None if it is not a broadcast."""
    source = origin_through(value, SAME_PLACE)
    spreads = source is not None and (source.opcode == "broadcast" or is_spread_reduction(source.instruction))
    return source if spreads else None


def _reduces_to(operand: Value, combiner: str) -> Value | None:
    """Return the reduction with that combiner from which an array was broadcast."""
    spread = _spread(operand)
    if spread is not None:
        for value in upstream(spread, _leads_to_source):
            if value.opcode == "reduce" or is_spread_reduction(value.instruction):
                return value if combiner_of(value.instruction) == combiner else None
    return None
