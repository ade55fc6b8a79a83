"""Attention as two matrix products with a softmax between them, found by following the data.

From an operand of the second product back: elementwise operations to an exponential; from there elementwise operations
to the first product and, over a broadcast, to a maximum over a dimension of the same scores; and a sum over the
exponential that divides it, or divides the second product. Names, scopes and the number of operations are ignored.

Routing in a mixture of experts has all of that, too. The axes show the difference: in attention the softmax is over the
keys, the second product sums over just these, and each query has the keys of its own batch. Scores that are normalised
over their queries as well, for another product, are a soft mixture's (dispatch and combine). Where the text does not
show the axes, the operations decide.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from jaxprof.hlo.analysis.cost import library
from jaxprof.hlo.analysis.cost.linear import is_product, is_spread_reduction
from jaxprof.hlo.analysis.dataflow import ELEMENTWISE, Value, downstream, resolved, same_elements, sources, upstream
from jaxprof.hlo.analysis.opcodes import SAME_PLACE
from jaxprof.hlo.analysis.product_axes import AxisTracker, operand_axes, product_axes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jaxprof.hlo.analysis.product_axes import AxisParts
    from jaxprof.hlo.model import Instruction


MOST_USERS: Final = 64
_WEIGHING: Final = SAME_PLACE | {"divide", "multiply", "select", "reduce-precision"}


@dataclass(frozen=True, slots=True)
class Attention:
    """The operations by which it was recognised."""

    scores: Value
    """The first product."""
    exponential: Value
    second: Value


def is_any_product(instruction: Instruction) -> bool:
    """Whether it is a matrix product, including one that a library computes."""
    if instruction.opcode == "custom-call":
        return library.kind_of(instruction.string("custom_call_target")) == "GEMM"
    return is_product(instruction)


def attention_before(second: Value) -> Attention | None:
    """The attention that ends in this matrix product; None where it is any other product."""
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
    """Whether the second product sums over the keys, which the softmax is over, and routes nothing. True where the text
    does not show the axes."""
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
    """A softmax of the same scores over other axes."""
    for value in _elementwise_users(scores.product):
        other = _scores(value) if value.opcode == "exponential" else None
        if other is not None and other.product.instruction is scores.product.instruction:
            axes = tracker.reduced(other.maximum)
            if axes is not None and axes != keys:
                return True
    return False


def _elementwise_users(start: Value) -> Iterator[Value]:
    """What is computed from a value element by element, at any distance."""
    seen: set[tuple[int, tuple[int, ...], int]] = set()
    waiting = [start]
    while waiting and len(seen) < MOST_USERS:
        for user in downstream(waiting.pop()):
            if user.key not in seen and user.opcode in ELEMENTWISE and user.elements == start.elements:
                seen.add(user.key)
                yield user
                waiting.append(user)


def _weighs(value: Value, operand: Value) -> bool:
    """What may be done with probabilities before they are used: masked, scaled, cast. A difference (the gradient of a
    classifier's loss) makes something else of them."""
    return value.opcode in _WEIGHING and value.elements == operand.elements


@dataclass(frozen=True, slots=True)
class _Scores:
    """A product from whose rows the maximum is subtracted."""

    product: Value
    maximum: Value
    """The reduction that gives the maximum."""


def _scores(exponential: Value) -> _Scores | None:
    """The product whose exponential is taken, minus its maximum in each row."""
    product = maximum = None
    for value in upstream(exponential, same_elements):
        if is_any_product(value.instruction):
            product = product or value
        elif value.opcode == "subtract":
            for operand in sources(value)[1:]:
                maximum = maximum or _reduces_to(operand, "maximum")
    return _Scores(product, maximum) if product is not None and maximum is not None else None


def _divided(probabilities: Value, exponential: Value, second: Value, scores: Value) -> bool:
    """Whether the exponential, or the product with it, is divided by its sum over a dimension."""
    for value in upstream(probabilities, lambda taker, other: taker is not exponential and _weighs(taker, other)):
        if _divides_by_sum(value, scores):
            return True
    return any(_divides_by_sum(user, scores) for user in _elementwise_users(second))


def _divides_by_sum(value: Value, scores: Value) -> bool:
    """Whether it is divided by the sum of an exponential of these scores: the same one, or one that another kernel
    recomputes."""
    if value.opcode not in ("divide", "multiply") or (value.opcode == "multiply" and not _has_reciprocal(value)):
        return False
    for operand in sources(value):
        total = _reduces_to(operand, "add")
        if total is None:
            continue
        for summand in upstream(total, _into_the_sum):
            if summand.opcode == "exponential":
                same = _scores(summand)
                if same is not None and same.product.instruction is scores.instruction:
                    return True
    return False


def _into_the_sum(value: Value, operand: Value) -> bool:
    """Through the sum, also where it is taken in steps, and what was done with the exponential before."""
    return value.opcode in ("reduce", "reduce-window") or same_elements(value, operand)


def _has_reciprocal(multiply: Value) -> bool:
    """One factor is spread from a quotient: `e * broadcast(1 / sum)`."""
    for operand in sources(multiply):
        spread = _spread(operand)
        if spread is not None and any(factor.opcode in ("divide", "power") for factor in upstream(spread, _down)):
            return True
    return False


def _down(value: Value, operand: Value) -> bool:
    """From a broadcast value back to its source."""
    return value.opcode == "broadcast" or same_elements(value, operand)


def _spread(value: Value) -> Value | None:
    """The broadcast that an array is, also under another dtype; None where it is not a broadcast."""
    for _ in range(8):
        if value.opcode == "broadcast" or is_spread_reduction(value.instruction):
            return value
        made_of = sources(value) if value.opcode in SAME_PLACE else []
        if len(made_of) != 1:
            return None
        value = made_of[0]
    return None


def _reduces_to(operand: Value, combiner: str) -> Value | None:
    """The reduction with that combiner from which an array was broadcast."""
    spread = _spread(operand)
    if spread is not None:
        for value in upstream(spread, _down):
            if value.opcode == "reduce" or is_spread_reduction(value.instruction):
                return value if combiner_of(value.instruction) == combiner else None
    return None


def combiner_of(reduce: Instruction) -> str:
    """What a reduction applies: `add`, `maximum`; empty where it is not a single operation."""
    called = reduce.called_computations()
    root = called[0].root if called else None
    return root.opcode if root is not None else ""
