"""Findings about forms of an operation that XLA for CPUs computes one number at a time, though an equal form is
vectorised.

The ratios are of times on two cores with AVX2, of jax 0.10.2 and 0.12, on a machine that did nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from math import prod
from typing import NamedTuple

from jaxprof.base.units import counted, integer, percent
from jaxprof.events.finding import Finding
from jaxprof.findings.hlo.scene import WORTH, Scene, check, lines_beside, lines_of, module_finding
from jaxprof.hlo.kernels import SAME_PLACE
from jaxprof.hlo.kernels.cost import combiner_of, dimension_labels, is_product, windows
from jaxprof.hlo.kernels.cost.library import operand_axes, product_sizes
from jaxprof.hlo.kernels.dataflow import Value, origin_through, sources
from jaxprof.hlo.kernels.kernels import Kernel
from jaxprof.hlo.kernels.kinds import values_of

_BYTES_A_NUMBER = 32
"""Bytes that memory moves while two cores compute one number by itself: some 3 ns of 3 to 10 that were measured."""
_LONG = 8
"""Longest last axis whose sum is written out: 3 to 20 times as fast up to it, and twice for 12."""
_LONG_EXTREME = 4
"""The same of a maximum or minimum, 2 to 7 times as fast: from 6 on XLA's own is as fast."""
_NUMBERS_A_ROW = 1.5
"""What one sum over a short axis takes, in numbers computed one by one: 4.5 ns for 4 to 8, and 5 to 10 for 2."""
_COMPARED = 32
"""Fewest numbers in a row of which an argmax is slow, 3 to 6 ns for each; those of 16 are compared as fast as a maximum
takes them."""
_PAIRS = 32
"""Fewest rows on each side of which all pairs are taken; fewest matrices multiplied, and rows sorted."""
_SORTED = 25
"""Longest axis whose sort is written out: a whole sort is 6 to 20 times as fast up to 16, 3 to 6 times for 25, twice
for 32, which compiles for 8 s. A median is 35 to 100 times as fast: what it does not read is not computed."""
_SORTED_WITH = 16
"""The same where another array is put in that order, 2 to 9 times as fast: it compiles for 2 s."""
_NUMBERS_SORTED = 5
"""What one number of a short sort takes, in numbers computed one by one: 10 ns of an int32, 20 to 40 of a float32."""


_MOST_TAPS = 64
"""Longest window that is written out."""


class _Slow(NamedTuple):
    """A slow form of an operation."""

    what: str
    fix: str
    """The form in its place."""
    numbers: float
    """How many numbers are computed one by one."""


@check(
    "a form that XLA for CPUs does not vectorise",
    "It is computed one number at a time, or by a call of a library for each small matrix. An equal form is computed "
    "for many numbers at once, 2 to 200 times as fast.",
    "Write it in the other form, on CPUs.",
    saves="part",
)
def unvectorised(scene: Scene) -> Iterator[Finding]:
    if scene.platform != "cpu":
        return
    for opcodes, form in _FORMS.items():
        works: dict[Kernel, float] = {}
        found: list[tuple[float, Value, _Slow]] = []
        for kernel in scene.kernels:
            if scene.opcodes(kernel).isdisjoint(opcodes):
                continue
            for value in values_of(kernel.instruction):
                if value.opcode in opcodes and (slow := form(value)) is not None:
                    works[kernel] = max(scene.work(kernel), _BYTES_A_NUMBER * slow.numbers * (kernel.count or 1))
                    found.append((works[kernel], value, slow))
        share = scene.share(works, sum(works.values()))
        if not found or share < WORTH:
            continue
        _, value, slow = max(found, key=lambda each: each[0])
        names = tuple(kernel.name for kernel in sorted(works, key=lambda kernel: -works[kernel]))
        message = f"{slow.what}: about {percent(share)} of the program's work, in {counted(len(names), 'kernel')}"
        yield replace(
            module_finding(message, names), own_fix=slow.fix, places=lines_of([value]) or lines_beside(value.outermost)
        )


def _reduction(value: Value) -> _Slow | None:
    """Find an argmax, and a sum, product, maximum or minimum over a short last axis."""
    operands = [each for each in sources(value) if each.shape.rank]
    axes = value.instruction.integers("dimensions")
    if not operands or not axes:
        return None
    reduced = operands[0].shape
    length = prod(reduced.dimensions[axis] for axis in axes if axis < reduced.rank)
    if len(operands) == 2:
        if operands[1].opcode != "iota" or length < _COMPARED:
            return None
        return _Slow(
            f"an argmax or argmin over {integer(length)} numbers compares them one by one",
            "Where no number is NaN: jnp.where(x == x.max(-1, keepdims=True), jnp.arange(n), n).min(-1) is "
            "jnp.argmax(x, -1); 2 to 8 times as fast.",
            reduced.elements,
        )
    if len(operands) != 1 or axes != reduced.minor_to_major[:1] or length < 2:
        return None
    rows, combiner = reduced.elements // length, combiner_of(value.instruction)
    if combiner == "add" and (pairs := _pairs(operands[0])) is not None:
        first, second = pairs
        written = "sum((x[:, None, k] - y[:, k]) ** 2 for k in range(d)) is the same up to rounding"
        product = (
            "(x * x).sum(1)[:, None] + (y * y).sum(1) - 2 * x @ y.T is one product. Distances that are small beside "
            "the coordinates lose digits in it"
        )
        return _Slow(
            f"differences of {integer(first)} x {integer(second)} pairs are summed over {length} coordinates",
            f"Write the coordinates out: {written}." if length <= _LONG else f"Multiply: {product}.",
            _NUMBERS_A_ROW * rows,
        )
    longest = {"add": _LONG, "multiply": _LONG, "maximum": _LONG_EXTREME, "minimum": _LONG_EXTREME}
    if length > longest.get(combiner, 0):
        return None
    return _Slow(
        f"a last axis of {length} is reduced one number after the other",
        "Write the few numbers out: sum(x[..., k] for k in range(n)) for x.sum(-1), functools.reduce(jnp.maximum, "
        "[x[..., k] for k in range(n)]) for x.max(-1); 2 to 20 times as fast.",
        _NUMBERS_A_ROW * rows,
    )


def _pairs(squared: Value) -> tuple[int, int] | None:
    """Return the numbers of rows on both sides, if the value is the squared differences of all pairs of rows."""
    factors = sources(squared)
    if squared.opcode != "multiply" or len(factors) != 2 or factors[0].key != factors[1].key:
        return None
    difference = factors[0]
    sides = [origin_through(side, SAME_PLACE | {"broadcast"}) for side in sources(difference)]
    depth = difference.shape.dimensions[-1] if difference.shape.rank else 0
    if difference.opcode != "subtract" or len(sides) != 2 or not depth:
        return None
    rows, columns = (side.elements // depth if side is not None else 0 for side in sides)
    is_all_pairs = rows * columns * depth == difference.elements and min(rows, columns) >= _PAIRS
    return (rows, columns) if is_all_pairs else None


def _sort(value: Value) -> _Slow | None:
    """Find sorts along a short axis: each row is one call of a library, which compares numbers one by one."""
    operands, axes = sources(value), value.instruction.integers("dimensions")
    if not operands or not axes or axes[0] >= (keys := operands[0].shape).rank:
        return None
    length = keys.dimensions[axes[0]]
    longest = _SORTED if len(operands) == 1 else _SORTED_WITH if len(operands) == 2 else 0
    if not 2 <= length <= longest or keys.elements < _PAIRS * length:
        return None
    swapped = (
        "c[i], c[i + 1] = jnp.minimum(c[i], c[i + 1]), jnp.maximum(c[i], c[i + 1])"
        if len(operands) == 1
        else "swap both by jnp.where(c[i] > c[i + 1], ...), and the columns of the other array by that condition"
    )
    return _Slow(
        f"an axis of {length} is sorted in {integer(keys.elements // length)} calls of a library",
        "Where no number is NaN, in 32 bits, swap columns c = [x[..., k] for k in range(n)]: for r in range(n): for "
        f"i in range(r % 2, n - 1, 2): {swapped}. Then c[n // 2] is the median, jnp.stack(c, -1) the whole; 3 to 100 "
        "times as fast, less for few rows.",
        _NUMBERS_SORTED * keys.elements,
    )


def _power(value: Value) -> _Slow | None:
    """Find powers; XLA itself multiplies for whole exponents, and takes a root for a half."""
    exponent = origin_through(next(iter(sources(value)[1:]), None), SAME_PLACE | {"broadcast"})
    try:
        power = float(exponent.instruction.literal) if exponent is not None and exponent.opcode == "constant" else None
    except ValueError:
        power = None
    if power is not None and power % 1 == 0.5 and abs(power) < 5:
        fix = "Take a root and multiply: x * jnp.sqrt(x) for x ** 1.5, 1 / (x * jnp.sqrt(x)) for x ** -1.5; 6 to 17"
    else:
        fix = "Of positive numbers: jnp.exp(p * jnp.log(x)) for x ** p; 3"
    shown = "x ** p" if power is None else f"x ** {power:g}"
    return _Slow(f"{shown} is computed one number after the other", f"{fix} times as fast.", value.elements)


def _product(value: Value) -> _Slow | None:
    """Find products of narrow integers, and of many matrices that are too small for a library."""
    sizes, axes = product_sizes(value.instruction), operand_axes(value.instruction, 0)
    left = value.instruction.operand(0)
    if not is_product(value.instruction) or sizes is None or axes is None or left is None:
        return None
    batch, rows, columns = sizes
    depth = left.shape.elements // max(1, batch * rows)
    dtype = value.shape.dtype
    if dtype in ("s8", "u8", "s16", "u16"):
        return _Slow(
            f"a product of integers in {8 if dtype.endswith('8') else 16} bits is computed one number after the other",
            "Sum up in 32 bits, jnp.matmul(a, b, preferred_element_type=jnp.int32), where it cannot overflow either: "
            "3 to 200 times as fast. Convert to float32 if all sums are below 2 ** 24.",
            batch * rows * columns * depth / 8,
        )
    # 2 x 2 and 3 x 3 are written out by XLA itself, and from 8 x 8 on a call is worth it.
    is_small = max(rows, columns, depth) < _LONG and depth >= 4 and max(rows, columns) >= 4 and min(rows, columns) > 1
    if batch < _PAIRS or not is_small:
        return None
    return _Slow(
        f"{integer(batch)} products of {rows} x {depth} by {depth} x {columns} matrices are as many calls of a library",
        "Write the short sum out: sum(a[..., :, k, None] * b[..., k, None, :] for k in range(n)) for a @ b; 15 to 120 "
        "times as fast. One matrix for the whole batch needs none of it.",
        250 * batch,
    )


def _convolution(value: Value) -> _Slow | None:
    """Find convolutions in an order that XLA's library does not take, and those of each channel by itself. XLA brings
    all but those in loops and branches into that order."""
    labels, window = dimension_labels(value.instruction), windows(value.instruction)
    image, kernel = value.instruction.operand(0), value.instruction.operand(1)
    if labels is None or image is None or kernel is None or len(labels[1]) != kernel.shape.rank:
        return None
    spatial = "".join(map(str, range(len(window))))
    taps = prod(each.size for each in window)
    channels = kernel.shape.dimensions[labels[1].index("i")] if "i" in labels[1] else 0
    if labels != (f"b{spatial}f", f"{spatial}io", f"b{spatial}f"):
        shown = f"{labels[0]}_{labels[1]}->{labels[2]}"
        return _Slow(
            f"a convolution in a loop or a branch, in the order {shown}, is computed one number after the other",
            "Outside loops and branches XLA reorders it for its library: call the compiled step from a Python loop. If "
            "nothing is differentiated, it is enough that images are NHWC and filters HWIO. 8 to 120 times as fast.",
            value.elements * taps * channels / 2,
        )
    features = image.shape.dimensions[-1:]
    if channels != 1 or features != kernel.shape.dimensions[-1:] or not 1 < taps <= _MOST_TAPS:
        return None
    return _Slow(
        f"a convolution of each channel by itself, with windows of {taps} numbers",
        "Sum up the shifted array, padded before: sum(xp[:, i:i+h, j:j+w] * k[i, j, 0] for i in range(3) for j in "
        "range(3)) for images NHWC and filters 3 x 3; 10 to 80 times as fast, and its gradient 1.5 to 25 times.",
        value.elements * (4 + taps / 8),
    )


_FORMS: Mapping[frozenset[str], Callable[[Value], _Slow | None]] = {
    frozenset({"reduce"}): _reduction,
    frozenset({"sort"}): _sort,
    frozenset({"power"}): _power,
    frozenset({"dot"}): _product,
    frozenset({"convolution"}): _convolution,
}
"""What looks for slow forms among operations of these opcodes."""
