"""Findings about results that another function of JAX computes with much less work."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from math import inf, log2, prod

from jaxprof.base.units import bytes_, counted, integer, percent, scaled
from jaxprof.base.values import frozen
from jaxprof.events.finding import Finding
from jaxprof.findings.hlo.scene import (
    LARGE_BYTES,
    WORTH,
    Scene,
    check,
    flops_of,
    lines_beside,
    lines_of,
    module_finding,
    total,
)
from jaxprof.hlo.kernels import ELEMENTWISE, SAME_PLACE
from jaxprof.hlo.kernels.cost import dimension_labels, windows
from jaxprof.hlo.kernels.cost.library import is_any_product, product_sizes
from jaxprof.hlo.kernels.dataflow import Value, downstream, origin_through, sources
from jaxprof.hlo.kernels.kernels import Kernel
from jaxprof.hlo.kernels.kinds import instructions_in, reorders, values_of
from jaxprof.hlo.text.model import Instruction

# -- sorts -------------------------------------------------------------------------------------------------------------


_GPU_LEAST, _GPU_MOST = 1024, 16
"""Fewest elements, and most results, for which XLA has a kernel of top_k on GPUs, for float32 alone; it sorts the
others. Seen in programs compiled for an H100 (jax 0.12): 1 000 and 1 024 elements, 16 and 17 results, five dtypes."""
_CPU_MOST = 1 / 8
"""Largest part that top_k finds on a CPU in much less time: 0.03 of the sort's for 100 of 20 000 (two cores, jax 0.12),
0.36 for 2 500, and 0.62 for 5 000."""
_OF_RANDOM_ORDER = (
    "k different random indices are jax.lax.top_k(jax.random.uniform(key, (n,)), k)[1]: in place of a choice without "
    "replacement, or of the first of a permutation. They are other random numbers."
)
_EXTENT = re.compile(r"\[(\d+):(\d+)(?::(\d+))?\]")


@check(
    "a sort that is read only at its ends",
    "All elements are brought in order, and then a few of the largest or smallest are taken.",
    "Find these alone: jax.lax.top_k(x, k) has values and indices, of -x those of the smallest; one of them is "
    "jnp.max, jnp.min, jnp.argmax or jnp.argmin.",
    saves="part",
)
def whole_sort(scene: Scene) -> Iterator[Finding]:
    if scene.platform not in ("cpu", "gpu"):
        return
    found: dict[Kernel, tuple[int, int]] = {}
    for kernel in scene.kernels:
        # XLA makes a sort of a top_k, too, where it has nothing better.
        if "sort" not in scene.opcodes(kernel) or kernel.path.primitive == "top_k":
            continue
        sort = next(value for value in values_of(kernel.instruction) if value.opcode == "sort")
        sizes, axes = sort.instruction.shape.leaves()[:1], sort.instruction.integers("dimensions")
        if not sizes or not axes or axes[0] >= len(sizes[0].dimensions):
            continue
        length = sizes[0].dimensions[axes[0]]
        has_kernel = length >= _GPU_LEAST and sizes[0].dtype == "f32"
        most = _CPU_MOST * length if scene.platform == "cpu" else _GPU_MOST * has_kernel
        read = _ends_read(scene, kernel, sort, axes[0], length)
        if 0 < read <= most:
            found[kernel] = read, length
    if not found or (share := scene.share(found)) < WORTH:
        return
    largest = max(found, key=scene.work)
    read, length = found[largest]
    of_sort = module_finding(
        f"{integer(length)} elements are sorted, and {integer(read)} of them read: {percent(share)} of the program's "
        "work",
        tuple(kernel.name for kernel in found),
    )
    yield replace(of_sort, own_fix=_OF_RANDOM_ORDER if "_shuffle" in largest.op_name else None)


def _ends_read(scene: Scene, kernel: Kernel, sort: Value, axis: int, length: int) -> int:
    """Return how many elements at the ends of the sorted axis are read; 0 if others are, or if it is not known."""
    if kernel in scene.escaping:
        return 0
    first = last = 0
    for member in range(len(sort.instruction.shape.leaves())):
        index = (member,) if sort.instruction.shape.is_tuple else ()
        for reader in downstream(sort._replace(member=index)):
            extents = _EXTENT.findall(reader.instruction.attributes.get("slice", ""))
            if reader.opcode != "slice" or len(extents) <= axis:
                return 0
            start, end, stride = extents[axis]
            if stride not in ("", "1"):
                return 0
            if int(end) <= length - int(start):
                first = max(first, int(end))
            else:
                last = max(last, length - int(start))
    return first + last


_SEARCHED = 30_000
"""Fewest values whose search is reported."""


@check(
    "a binary search for each of many values",
    "jnp.searchsorted, and with it jnp.digitize, jnp.histogram and jnp.interp, halves the interval of every value in "
    "each turn of a loop, and reads the sorted array at another index for each of them.",
    "Where the edges are evenly spaced, compute the index: ((x - low) / step).astype(int), clipped; on a CPU 10 to 60 "
    "times as fast. Of up to a few hundred edges: jnp.searchsorted(edges, x, method='scan_unrolled'), 2 to 8 times.",
    saves="part",
)
def binary_search(scene: Scene) -> Iterator[Finding]:
    if scene.platform != "cpu" or "searchsorted" not in scene.module.text:
        return
    searching = [
        kernel for kernel in scene.kernels if "searchsorted" in kernel.path.functions and "/while" in kernel.op_name
    ]
    leaves = [leaf for kernel in searching for leaf in kernel.instruction.shape.leaves()]
    values = max((leaf.elements for leaf in leaves if leaf.dtype in ("s32", "u32", "s64", "u64")), default=0)
    if values < _SEARCHED or (share := scene.share(searching)) < WORTH:
        return
    searching.sort(key=scene.work, reverse=True)
    yield module_finding(
        f"{integer(values)} values are searched for in a sorted array: about {percent(share)} of the program's work",
        tuple(kernel.name for kernel in searching),
    )


# -- inverses ----------------------------------------------------------------------------------------------------------


_INVERTING = re.compile(r"[/(]jit\(inv\)\)*/jit\(solve\)")
"""`jnp.linalg.inv` within a function of the user's, perhaps under a `vmap`: it solves for the identity."""


@check(
    "an inverse that is only multiplied",
    "jnp.linalg.inv solves for every column of the identity, which takes three times the operations of the "
    "factorisation before it, and its products have larger rounding errors than a solution.",
    "Solve in place of inverting: jnp.linalg.solve(a, b) for inv(a) @ b, jnp.linalg.solve(a.T, b.T).T for b @ inv(a), "
    "jax.scipy.linalg.cho_solve if a is symmetric and positive definite. For several b, lu_factor once, and lu_solve.",
    saves="part",
)
def inverse_product(scene: Scene) -> Iterator[Finding]:
    if "jit(inv)" not in scene.module.text:
        return
    inverting = {kernel for kernel in scene.kernels if _INVERTING.search(kernel.op_name)}
    if not inverting or (share := scene.share(inverting)) < WORTH:
        return
    solving = {kernel for kernel in inverting if kernel.path.primitive == "triangular_solve"}
    used = [each for each in scene.flow if each.producer in solving and each.consumer not in inverting]
    if not used or solving & scene.escaping:
        return
    for passage in used:
        # With as many columns as the matrix has, solving still takes half the time. A product with more of them costs
        # the same either way, so that it saves less and less.
        others = sum(size for _, size in passage.consumer.operand_bytes) - passage.bytes_read
        is_product = passage.consumer.path.primitive == "dot_general"
        if not is_product or others > passage.bytes_read:
            return
    inverse = used[0].shape.without_layout()
    yield module_finding(
        f"the inverse {inverse} is only multiplied, by no more columns than it has: inverting is {percent(share)} of "
        "the program's work",
        tuple(kernel.name for kernel in sorted(inverting, key=scene.work, reverse=True)),
    )


# -- products ----------------------------------------------------------------------------------------------------------


_CHEAPER = 2
"""How many times cheaper the other form is at least, by its operations."""
_MOST_MOVES = 16
"""Most operations between two products that only move numbers; in a damaged text they can be a circle."""


@frozen
class _Chain:
    """A product of a product, which nothing else reads: three arrays, two of them multiplied first."""

    first: Kernel
    second: Kernel
    other_flops: float
    """FLOPs of one execution if the other two are multiplied first."""


@check(
    "a product of three arrays in the costlier order",
    "a @ b @ v is (a @ b) @ v: Python multiplies from the left. If v is the smallest, a @ (b @ v) has the same result, "
    "up to rounding, for a fraction of the operations.",
    "Put the parentheses around the small product, a @ (b @ v). jnp.linalg.multi_dot([a, b, v]), and one jnp.einsum "
    "over all of them, choose the order themselves.",
    saves="part",
)
def product_order(scene: Scene) -> Iterator[Finding]:
    chains = [chain for kernel in scene.kernels if (chain := _chain_from(scene, kernel))]
    if chains:
        chains = [chain for chain in chains if chain.first not in scene.escaping]
    kernels = {kernel for chain in chains for kernel in (chain.first, chain.second)}
    if not kernels or (share := scene.share(kernels)) < WORTH:
        return
    chains.sort(key=lambda chain: -scene.work(chain.first))
    other = sum(chain.other_flops * (chain.first.count or 1) for chain in chains)
    yield module_finding(
        f"{counted(len(chains), 'product')} of three arrays: {scaled(flops_of(kernels), 'FLOP')} a call, "
        f"{percent(share)} of the program's work, and {scaled(other, 'FLOP')} in the other order",
        tuple(dict.fromkeys(kernel.name for chain in chains for kernel in (chain.first, chain.second))),
    )


def _chain_from(scene: Scene, kernel: Kernel) -> _Chain | None:
    """Return the chain that begins with a kernel's product, if it is much cheaper in the other order."""
    if not kernel.uses_matrix_units or not kernel.flops or kernel.path.direction:
        return None
    first = next((value for value in values_of(kernel.instruction) if is_any_product(value.instruction)), None)
    if first is None:
        return None
    array, parts = first, 1
    for _ in range(_MOST_MOVES):
        readers = list(downstream(array))
        if len(readers) != 1:
            return None
        (last,) = readers
        if is_any_product(last.instruction):
            break
        if last.opcode == "reduce" and parts == 1:
            # XLA for GPUs splits a long sum in parts, which are a batch of products, and adds these up.
            parts = max(1, array.elements // max(1, last.elements))
        elif last.opcode not in SAME_PLACE | {"pad"}:
            return None
        array = last
    else:
        return None
    second = scene.kernel_of.get(id(last.outermost))
    sides = [source.key == array.key for source in sources(last)[:2]]
    inner, outer = product_sizes(first.instruction), product_sizes(last.instruction)
    if second is None or second.computation != kernel.computation or not second.flops or sorted(sides) != [False, True]:
        return None
    if inner is None or outer is None or not inner[1] * inner[2]:
        return None
    batch, rows, columns = inner[0] // parts, inner[1], inner[2]
    kept, new = (outer[1], outer[2]) if sides[0] else (outer[2], outer[1])
    # The sizes tell which side of the first product the second one sums over. If it has a batch of its own it is a
    # product of pieces, as of the heads of attention, unless these are the parts of one sum.
    if kept not in (rows, columns) or (outer[0] != batch and not _are_parts(last, outer[0] // max(1, batch))):
        return None
    other = kernel.flops * new * (rows + columns) / (rows * columns)
    return _Chain(kernel, second, other) if _CHEAPER * other <= kernel.flops + second.flops else None


def _are_parts(product: Value, parts: int) -> bool:
    """Return whether the products of a batch are parts of one sum."""
    readers = list(downstream(product))
    return len(readers) == 1 and readers[0].opcode == "reduce" and readers[0].elements * parts == product.elements


_OF_IDENTITY = (
    "The product is the other array itself. jax.jacfwd multiplies an identity by the first matrix of a function: the "
    "Jacobian of x -> a @ x is a."
)
_LEAST_DIAGONAL = 32
"""Fewest numbers of a diagonal whose product is reported."""


@check(
    "a product with a diagonal, or of which only the diagonal is read",
    "All other numbers of a diagonal matrix are zeros, and the product multiplies and adds them. Of a product whose "
    "diagonal or trace alone is read, all other numbers are computed in vain.",
    "Multiply by the numbers of the diagonal: d[:, None] * a for jnp.diag(d) @ a, a * d for a @ jnp.diag(d). "
    "(a * b.T).sum(1) is jnp.diag(a @ b), and (a * b.T).sum() its trace.",
    saves="part",
)
def diagonal_product(scene: Scene) -> Iterator[Finding]:
    if " iota(" not in scene.module.text:
        return
    given: list[Kernel] = []
    read: list[Kernel] = []
    sizes: dict[Kernel, int] = {}
    identities: set[Kernel] = set()
    for kernel in scene.kernels:
        if not kernel.uses_matrix_units:
            continue
        for product in values_of(kernel.instruction):
            if not is_any_product(product.instruction):
                continue
            diagonals = [side for side in sources(product)[:2] if _is_diagonal(side)]
            is_identity = bool(diagonals) and _is_identity(diagonals[0])
            if kernel.path.direction and not is_identity:
                continue
            matrix = diagonals[0].shape.dimensions if diagonals else product.shape.dimensions
            if min(matrix[-2:], default=0) < _LEAST_DIAGONAL:
                continue
            if diagonals:
                given.append(kernel)
                identities.update([kernel] if is_identity else ())
            elif _is_diagonal_read(product) and kernel not in scene.escaping:
                read.append(kernel)
            sizes[kernel] = min(matrix[-2:])
    kernels = sorted([*given, *read], key=scene.work, reverse=True)
    if not kernels or (share := scene.share(kernels)) < WORTH:
        return
    size = sizes[kernels[0]]
    kind = "an identity" if kernels[0] in identities else "a diagonal"
    what = (
        f"with {kind} matrix: all but 1 in {integer(size)} of its numbers are zeros"
        if kernels[0] in given
        else f"of which only the diagonal is read: 1 in {integer(size)} of its numbers"
    )
    found = module_finding(
        f"{counted(len(kernels), 'product')} {what}; {scaled(flops_of(kernels), 'FLOP')} a call, {percent(share)} of "
        "the program's work",
        tuple(kernel.name for kernel in kernels),
    )
    yield replace(found, own_fix=_OF_IDENTITY if kernels[0] in identities else None)


def _is_identity(value: Value | None) -> bool:
    """Return whether the value tells, for each place of a matrix, whether it lies on the diagonal."""
    value = origin_through(value, SAME_PLACE)
    if value is None or value.opcode != "compare" or value.instruction.string("direction") != "EQ":
        return False
    counters = [origin_through(side, SAME_PLACE | {"broadcast"}) for side in sources(value)]
    axes = {side.instruction.integers("iota_dimension") for side in counters if side and side.opcode == "iota"}
    return len(axes) == 2


def _is_zero(value: Value | None) -> bool:
    value = origin_through(value, SAME_PLACE | {"broadcast"})
    return value is not None and value.opcode == "constant" and value.instruction.literal in ("0", "0.0", "-0")


def _is_diagonal(value: Value) -> bool:
    made = origin_through(value, SAME_PLACE)
    if made is None:
        return False
    operands = sources(made)
    if made.opcode == "select" and len(operands) == 3:
        return _is_identity(operands[0]) and _is_zero(operands[2])
    return _is_identity(made) or (made.opcode == "multiply" and any(map(_is_identity, operands)))


def _is_diagonal_read(product: Value) -> bool:
    """Return whether all that is read of a product, after operations on each number by itself, is its diagonal."""
    waiting, seen = [product], 0
    while waiting and seen < 16:
        seen += 1
        readers = list(downstream(waiting.pop()))
        for reader in readers:
            operands = sources(reader)
            is_masked = reader.opcode == "select" and _is_diagonal(reader)
            if is_masked or (reader.opcode == "gather" and _takes_diagonal(operands)):
                continue
            if reader.opcode not in ELEMENTWISE or reader.opcode in ("transpose", "reshape", "reverse"):
                return False
            waiting.append(reader)
        if not readers:
            return False  # it is returned, or carried by a loop
    return not waiting


def _takes_diagonal(operands: list[Value]) -> bool:
    """Return whether the indices of a gather are (0, 0), (1, 1), ..., of the whole array."""
    indices = origin_through(operands[1], SAME_PLACE) if len(operands) == 2 else None
    if indices is None or indices.opcode != "concatenate":
        return False
    counters = [origin_through(part, SAME_PLACE | {"broadcast"}) for part in sources(indices)]
    return len(counters) == 2 and all(part is not None and part.opcode == "iota" for part in counters)


# -- sums --------------------------------------------------------------------------------------------------------------


_FFT_FLOPS = 2.5
"""FLOPs of the FFT of n real numbers, over n log2(n): half of the 5 of complex ones (Cooley and Tukey's radix 2)."""
_FFT_GAIN = 4
"""How many times cheaper an FFT is at least. On a CPU (two cores, jax 0.12) the ratio of times is about that of FLOPs:
3 for 129 taps of 200 000 numbers, and 24 for 2 049."""


@check(
    "a long convolution, term by term",
    "Each number of the result is a sum over the whole window. By way of the Fourier transform the cost grows with the "
    "logarithm of the length.",
    "On a CPU: jax.scipy.signal.fftconvolve(x, w, mode). Its error is relative to the largest numbers of the result: "
    "small ones beside them lose digits.",
    saves="part",
)
def direct_convolution(scene: Scene) -> Iterator[Finding]:
    if scene.platform != "cpu":
        return  # matrix units take a convolution far faster than an FFT, at least up to some length
    by_fft: dict[Kernel, float] = {}
    for kernel in scene.kernels:
        # The window of a gradient is a whole image, and no call of the program's is slow for it.
        if kernel.kind == "convolution" and not kernel.path.direction and kernel.flops:
            flops = min((_flops_by_fft(value) for value in values_of(kernel.instruction)), default=inf)
            if _FFT_GAIN * flops <= kernel.flops:
                by_fft[kernel] = flops * (kernel.count or 1)
    if not by_fft or (share := scene.share(by_fft)) < WORTH:
        return
    kernels = sorted(by_fft, key=scene.work, reverse=True)
    found = module_finding(
        f"{counted(len(kernels), 'convolution')} of a long window: {scaled(flops_of(kernels), 'FLOP')} a call, "
        f"{percent(share)} of the program's work; by FFT about {scaled(sum(by_fft.values()), 'FLOP')}",
        tuple(kernel.name for kernel in kernels),
    )
    yield replace(found, places=lines_beside(kernels[0].instruction))


def _flops_by_fft(value: Value) -> float:
    """Estimate the FLOPs of a convolution by FFT; infinite for one with strides or holes, or that is not shown."""
    sliding, labels = windows(value.instruction), dimension_labels(value.instruction)
    operands, result = value.instruction.operand_instructions(), (value.shape.leaves() or (value.shape,))[0]
    if not sliding or labels is None or len(operands) < 2:
        return inf
    if any((window.stride, window.base_dilation, window.window_dilation) != (1, 1, 1) for window in sliding):
        return inf
    if len(labels[1]) != operands[1].shape.rank or len(labels[2]) != result.rank or "b" not in labels[2]:
        return inf
    lengths = [size for size, label in zip(result.dimensions, labels[2], strict=True) if label.isdecimal()]
    if len(lengths) != len(sliding):
        return inf
    length = max(1, prod(size + window.size for size, window in zip(lengths, sliding, strict=True)))
    kernels = prod(size for size, label in zip(operands[1].shape.dimensions, labels[1], strict=True) if label in "io")
    planes = operands[0].shape.elements / length + result.elements / length + kernels
    batch = result.dimensions[labels[2].index("b")]
    # A complex multiplication and addition take 8 FLOPs, and half the frequencies of real numbers suffice.
    return length * (planes * _FFT_FLOPS * log2(max(2, length)) + 4 * batch * kernels)


@check(
    "a complex Fourier transform of real numbers",
    "The transform of real numbers mirrors itself: half of what a complex transform computes and writes is the "
    "conjugate of the other half.",
    "jnp.fft.rfft (rfft2, rfftn) in place of fft computes the half that differs, on CPUs 2 to 5 times as fast, and "
    "irfft takes it back. Where all frequencies are needed, those above n / 2 are its conjugates, in reverse.",
    saves="part",
)
def complex_transform(scene: Scene) -> Iterator[Finding]:
    if " fft(" not in scene.module.text:
        return
    kernels: list[Kernel] = []
    widened: list[Value] = []
    for kernel in scene.kernels:
        value = Value(kernel.instruction)
        large = value.opcode == "fft" and value.shape.bytes >= LARGE_BYTES
        if large and value.instruction.attributes.get("fft_type") == "FFT":
            made = origin_through(next(iter(sources(value)), None), _REARRANGING)
            if made is not None and made.opcode == "convert" and not sources(made)[0].shape.dtype.startswith("c"):
                kernels.append(kernel)
                widened.append(made)
    if not kernels or (share := scene.share(kernels)) < WORTH:
        return
    kernels.sort(key=scene.work, reverse=True)
    names = dict.fromkeys([*(kernel.name for kernel in kernels), *(made.outermost.name for made in widened)])
    scene.explained |= set(names)
    several = counted(len(kernels), "complex transform takes", "complex transforms take")
    found = module_finding(
        f"{several} real numbers: {percent(share)} of the program's work, of which half is redundant", tuple(names)
    )
    yield replace(found, places=lines_of(Value(kernel.instruction) for kernel in kernels))


_REARRANGING = SAME_PLACE - {"convert", "bitcast-convert"}


@check(
    "a cumulative sum along an axis that is not the last",
    "XLA for CPUs moves the axis to the end, pads it, and adds up windows of 16 one by one, in several passes.",
    "Go along the axis with lax.scan: jax.lax.scan(lambda s, x: (s + x, s + x), jnp.zeros_like(a[0]), a)[1] is "
    "jnp.cumsum(a, axis=0), 4 to 16 times as fast. Keep jnp.cumsum on accelerators.",
    saves="part",
)
def cumulative_sum(scene: Scene) -> Iterator[Finding]:
    if scene.platform != "cpu" or " reduce-window(" not in scene.module.text:
        return
    summing = [kernel for kernel in scene.kernels if _is_cumulative(kernel)]
    # Before the windows the array is padded, and after them put together again.
    before = _beside(scene, summing, Instruction.operand_instructions)
    after = _beside(scene, summing, lambda instruction: instruction.users)
    kernels = list(dict.fromkeys([*summing, *before, *after]))
    # Padding is XLA's own here; another order may be the program's, unless it is a part of this finding.
    scene.explained |= {kernel.name for kernel in kernels if not reorders(kernel.instruction)}
    if not any(map(_moves_an_axis_last, before)) or (share := scene.share(kernels)) < WORTH:
        return
    scene.explained |= {kernel.name for kernel in kernels}
    kernels.sort(key=scene.work, reverse=True)
    found = module_finding(
        f"a cumulative sum takes {counted(len(kernels), 'kernel')}, some of which only move its axis to the end: "
        f"{bytes_(sum(map(total, kernels)))} a call, {percent(share)} of the program's work",
        tuple(kernel.name for kernel in kernels),
    )
    yield replace(found, places=lines_of(Value(kernel.instruction) for kernel in kernels))


def _beside(
    scene: Scene, kernels: Sequence[Kernel], neighbours: Callable[[Instruction], Iterable[Instruction]]
) -> list[Kernel]:
    """Return the other kernels on one side of these."""
    near = (scene.kernel_of.get(id(each)) for kernel in kernels for each in neighbours(kernel.instruction))
    return [each for each in dict.fromkeys(near) if each is not None and each not in kernels]


def _moves_an_axis_last(kernel: Kernel) -> bool:
    """Return whether a kernel transposes an array so that another axis lies together; the axis of the sum may lie so
    already, under whatever number."""
    orders = (
        inner.integers("dimensions") for inner in instructions_in(kernel.instruction) if inner.opcode == "transpose"
    )
    return any(order and order[-1] != len(order) - 1 for order in orders)


def _is_cumulative(kernel: Kernel) -> bool:
    """Return whether each window of a kernel ends at its own place, so that it sums up what lies before."""
    if kernel.kind != "window reduction":
        return False
    sliding = [window for value in values_of(kernel.instruction) for window in windows(value.instruction)]
    return any(window.size > 1 and window.pad_low == window.size - 1 and window.stride == 1 for window in sliding)
