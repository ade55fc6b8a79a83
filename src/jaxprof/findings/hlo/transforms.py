"""Findings about what jax.vmap and jax.grad made. Operations whose batched form is slow: convolutions with kernels of
their own, small matrices that a library takes one by one, columns that are gathered or scattered, and products with
one-hot arrays. And backward passes that cost many times their forward pass.

Each function yields one finding at most, about the form that does the most work. Whether it costs enough is a share of
the module's own work.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import prod

from jaxprof.base.units import bytes_, counted, integer, percent, ratio, scaled
from jaxprof.base.values import frozen
from jaxprof.events import SourceLocation
from jaxprof.events.finding import Finding
from jaxprof.findings.hlo.scene import LARGE_BYTES, WORTH, Scene, check, flops_of, lines_of, module_finding, total
from jaxprof.hlo.kernels import SAME_PLACE
from jaxprof.hlo.kernels.cost.library import is_any_product
from jaxprof.hlo.kernels.dataflow import Value, origin_through, sources
from jaxprof.hlo.kernels.kernels import Kernel
from jaxprof.hlo.kernels.kinds import values_of
from jaxprof.hlo.source import own_frame
from jaxprof.hlo.text.model import Instruction

# -- convolutions ------------------------------------------------------------------------------------------------------


@check(
    "vmap made a grouped convolution",
    "A convolution whose filters differ along the batch of vmap becomes one convolution with a group for each of them. "
    "Libraries run many small groups at a fraction of the rate of one ordinary convolution.",
    "Take the networks or images one after another at this line, jax.lax.map(f, (filters, inputs)) in place of "
    "jax.vmap(f)(filters, inputs): each is then an ordinary convolution. If all filters see the same input, vmap over "
    "the filters alone (in_axes=(0, None)) makes one ordinary convolution with more outputs.",
    saves="part",
)
def grouped_convolution(scene: Scene) -> Iterator[Finding]:
    """Find convolutions that are not differentiated: the gradient of a filter in `lax.map` is a convolution with the
    whole image for its window, which is slower than the groups."""
    convolutions = [kernel for kernel in scene.kernels if kernel.kind == "convolution"]
    if any(kernel.path.direction for kernel in convolutions):
        return
    kernels = [
        kernel for kernel in convolutions if (groups := _groups(kernel)) > 1 and _has_own_filters(kernel, groups)
    ]
    if not kernels or (share := scene.share(kernels)) < WORTH:
        return
    groups = _groups(kernels[0])
    yield module_finding(
        f"vmap over the filters made {counted(len(kernels), 'convolution')} of {groups} groups: "
        f"{scaled(flops_of(kernels), 'FLOP')} a call, {percent(share)} of the program's work, in small groups and with "
        "filters and images rearranged before",
        tuple(kernel.name for kernel in kernels),
    )  # fmt: skip


def _groups(kernel: Kernel) -> int:
    counts = [value.instruction.integers("feature_group_count") for value in values_of(kernel.instruction)]
    return max((number for count in counts for number in count), default=1)


_MOST_STEPS = 64
"""Most operations between a convolution and what put its filters together."""


def _has_own_filters(kernel: Kernel, groups: int) -> bool:
    """Return whether the convolution's filter is an array with a dimension more, one entry for each group: vmap put it
    together. The groups of a network's own grouped or depthwise convolution are no dimension of its weights."""
    for value in values_of(kernel.instruction):
        if "feature_group_count" not in value.instruction.attributes:
            continue
        weights = sources(value)[1:2]
        for _ in range(_MOST_STEPS):  # a damaged text may lead in a circle
            if not weights:
                break
            sizes = weights[0].shape.dimensions
            if len(sizes) > (value.shape.leaves() or (value.shape,))[0].rank and groups in sizes:
                return True
            weights = sources(weights[0])[:1] if weights[0].opcode in SAME_PLACE else []
    return False


# -- small matrices ----------------------------------------------------------------------------------------------------


_SMALL = 4
"""Largest size of matrices whose factors are short formulas."""
_FACTORS = frozenset({"Cholesky", "LU", "QR", "SVD", "eigenvalues", "triangular solve"})
_MANY = 64
_CALL_BYTES = {"cpu": 1 << 10, "gpu": 16 << 20}
"""Traffic in the time of one call of a library: 0.1 µs for LAPACK, and some launches of 5 µs on a GPU."""
_ONE_BY_ONE = {"cpu": _FACTORS, "gpu": frozenset({"QR"})}
"""Kinds for which a library is called once for each matrix: all of LAPACK, and of NVIDIA's solvers those for which it
has no batched form (jax 0.10: the product of Householder reflections)."""


@check(
    "small matrices, one library call each",
    "A factorisation under vmap calls the library once for each matrix. For one of 2 x 2 or 3 x 3 the call takes "
    "longer than the formula, and nothing is vectorised over the batch.",
    "Write the formula of such a small matrix out over the whole batch, where each element is an array (a = m[..., 0, "
    "0]): determinant and adjugate for inv, solve and det, the quadratic formula for eigenvalues of 2 x 2, elimination "
    "without pivots for positive definite matrices. It becomes one vectorised loop.",
    saves="part",
)
def small_decompositions(scene: Scene) -> Iterator[Finding]:
    kinds = _ONE_BY_ONE.get(scene.platform, frozenset())
    calls: list[tuple[Kernel, tuple[int, ...]]] = []
    for kernel in scene.kernels:
        if kernel.kind in kinds and (matrix := kernel.instruction.operand(0)) is not None:
            sizes = matrix.shape.dimensions
            if len(sizes) > 2 and max(sizes[-2:]) <= _SMALL and prod(sizes[:-2]) >= _MANY:
                calls.append((kernel, sizes))
    if not calls:
        return
    number = sum(prod(sizes[:-2]) * (kernel.count or 1) for kernel, sizes in calls)
    share = scene.share([kernel for kernel, _ in calls], number * _CALL_BYTES[scene.platform])
    if share < WORTH:
        return
    calls.sort(key=lambda call: -prod(call[1]))
    rows, columns = calls[0][1][-2:]
    flops = flops_of(kernel for kernel, _ in calls)
    yield module_finding(
        f"{integer(number)} library calls ({', '.join(dict.fromkeys(kernel.kind for kernel, _ in calls))}), one "
        f"for each matrix of {rows} x {columns}, for {scaled(flops, 'FLOP')} a call",
        tuple(kernel.name for kernel, _ in calls),
    )


# -- columns -----------------------------------------------------------------------------------------------------------


_LINE_BYTES = {"cpu": 64, "gpu": 32}
"""Bytes that memory transfers at once: a cache line, a sector."""
_CACHE_BYTES = {"cpu": 2 << 20, "gpu": 32 << 20}
"""Size of an array that stays in the second level of the cache, where reading columns costs no more than rows. Updating
them does: a row is added at once, a column element by element."""
_PIECES = 8
"""Fewest pieces in different lines that one index takes."""


@frozen
class _Strided:
    """A gather or scatter whose index takes elements that lie apart."""

    kernel: Kernel
    instruction: Instruction
    indices: int
    pieces: int
    """Pieces that one index takes, each in a line of its own."""
    used_bytes: int


@check(
    "columns are gathered or scattered",
    "Each index takes elements that lie far apart in memory, so a whole cache line is transferred for each of them. "
    "vmap over the columns of a row-major array makes such an operation, as does take along the last axis.",
    "Let the index choose rows, whose elements lie together: drop the vmap over columns (jax.ops.segment_sum(x, ids) "
    "and x[ids] take whole rows), keep the array transposed (x.T, made once), or sort the indices before.",
    saves="part",
)
def column_gather(scene: Scene) -> Iterator[Finding]:
    line = _LINE_BYTES.get(scene.platform)
    if line is None:
        return
    taking = [kernel for kernel in scene.kernels if scene.opcodes(kernel) & {"gather", "scatter"}]
    strided: list[_Strided] = []
    for kernel in taking:
        for value in values_of(kernel.instruction):
            instruction = value.instruction
            array = instruction.operand(0)
            if value.opcode not in ("gather", "scatter") or array is None:
                continue
            # Sorted indices take neighbours one after the other, in the same lines.
            if instruction.attributes.get("indices_are_sorted") == "true":
                continue
            # What the kernel itself computes is not in memory.
            if any(made.fusions[:1] == (kernel.instruction,) for made in sources(value)[:1]):
                continue
            if value.opcode == "gather" and array.shape.bytes <= _CACHE_BYTES[scene.platform]:
                continue
            sizes = array.shape.dimensions
            window = _window(instruction, len(sizes))
            taken = prod(window)
            if len(window) != len(sizes) or not taken:
                continue
            together = 1
            for dimension in array.shape.minor_to_major:
                together *= window[dimension]
                if window[dimension] != sizes[dimension]:
                    break
            used = together * array.shape.element_bits // 8
            elements = (instruction.operand(-1) if value.opcode == "scatter" else instruction) or instruction
            if used * 4 <= line and taken // together >= _PIECES:
                strided.append(_Strided(kernel, instruction, elements.shape.elements // taken, taken // together, used))
    moved = {id(each): each.indices * each.pieces * line * (each.kernel.count or 1) for each in strided}
    whole = sum(moved.values())
    if not strided or scene.share([each.kernel for each in strided], whole) < WORTH:
        return
    worst = max(strided, key=lambda each: moved[id(each)])
    verb = "updates" if worst.instruction.opcode == "scatter" else "reads"
    yield module_finding(
        f"each of {integer(worst.indices)} indices {verb} {worst.pieces} pieces of {worst.used_bytes} bytes that lie "
        f"apart: up to {bytes_(whole)} of memory lines a call for {bytes_(whole * worst.used_bytes // line)} used",
        tuple(dict.fromkeys(each.kernel.name for each in sorted(strided, key=lambda each: -moved[id(each)]))),
        whole,
    )


def _window(instruction: Instruction, rank: int) -> tuple[int, ...]:
    """Return the size of the part of the array that one index takes, along each of its dimensions."""
    if instruction.opcode == "gather":
        return instruction.integers("slice_sizes")
    updates = instruction.operand(-1)
    along = iter(instruction.integers("update_window_dims"))
    left_out = {*instruction.integers("inserted_window_dims"), *instruction.integers("input_batching_dims")}
    sizes = updates.shape.dimensions if updates is not None else ()
    numbers = [next(along, -1) if number not in left_out else None for number in range(rank)]
    if any(number is not None and not 0 <= number < len(sizes) for number in numbers):
        return ()
    return tuple(1 if number is None else sizes[number] for number in numbers)


# -- one-hot arrays ----------------------------------------------------------------------------------------------------


_CLASSES = 32
"""Fewest classes of a one-hot array whose product is reported; few of them are one tile of a matrix unit."""
_AROUND_ONE_HOT = SAME_PLACE | {"slice", "pad"}


@check(
    "a product with a one-hot array",
    "In a row of a one-hot array all but one number are zeros, and the product multiplies and adds them all. An index "
    "takes the one row that counts.",
    "Index in place of multiplying: table[ids] for one_hot(ids, n) @ table (its gradient is a scatter-add), and "
    "jax.ops.segment_sum(x, ids, n) for one_hot(ids, n).T @ x.",
    saves="part",
)
def one_hot_product(scene: Scene) -> Iterator[Finding]:
    if " iota(" not in scene.module.text:
        return
    multiplying = [kernel for kernel in scene.kernels if kernel.uses_matrix_units and kernel.flops]
    products = [(kernel, *one_hot) for kernel in multiplying if (one_hot := _one_hot(kernel))]
    products.sort(key=lambda product: -scene.work(product[0]))
    kernels = [kernel for kernel, *_ in products]
    if not kernels or (share := scene.share(kernels)) < WORTH:
        return
    _, classes, compared = products[0]
    # On a CPU a kernel of its own may write the array, which takes longer than the product.
    taking = dict.fromkeys([*(kernel.name for kernel in kernels), *(made.outermost.name for *_, made in products)])
    of_product = module_finding(
        f"{counted(len(kernels), 'product')} with a one-hot array of {integer(classes)} classes: "
        f"{scaled(flops_of(kernels), 'FLOP')} a call, {percent(share)} of the program's work, of which all but 1 in "
        f"{integer(classes)} multiply by zero",
        tuple(taking),
    )  # fmt: skip
    # The line of the array, because XLA may have given the product to a later one.
    yield replace(of_product, places=lines_of([compared]))


def _one_hot(kernel: Kernel) -> tuple[int, Value] | None:
    """Return the number of classes of the one-hot array that a product takes, and the comparison that makes it."""
    for product in values_of(kernel.instruction):
        for operand in sources(product)[:2] if is_any_product(product.instruction) else ():
            compared = origin_through(operand, _AROUND_ONE_HOT)
            if compared is None or compared.opcode != "compare" or compared.instruction.string("direction") != "EQ":
                continue
            sides = [origin_through(side, SAME_PLACE | {"broadcast"}) for side in sources(compared)]
            counters = [side for side in sides if side is not None and side.opcode == "iota"]
            if len(sides) != 2 or len(counters) != 1 or any(side and side.opcode == "constant" for side in sides):
                continue
            along = counters[0].instruction.integers("iota_dimension")
            sizes = counters[0].shape.dimensions
            classes = sizes[along[0]] if along and along[0] < len(sizes) else 0
            if classes >= _CLASSES:
                return classes, compared
    return None


# -- backward passes ---------------------------------------------------------------------------------------------------

_BACKWARD = "transpose(jvp("
"""What JAX writes into the name of an operation that transposition made."""
_TIMES = 8.0
"""Work of a backward pass, in forward passes, from which it is reported. Two or three are usual, four with
checkpointing."""
_MOST = 0.5
"""Share of the module's work that such a backward pass has."""
_SEEN = 0.02
"""Least share of a forward pass: XLA has removed a part of a smaller one."""
_PADS = 4
"""Gradients of slices in one loop from which XLA:CPU does not vectorise it: those of two differences."""
_FILLED = 0.4
"""Share of the traffic that fills and reads the gradient of a table from which it is reported: with the two moments of
Adam it is a quarter, and the table's own update reads all of it anyway."""
_FEW_ROWS = 8
"""A lookup leaves at least this many times as many rows of the table alone as it takes."""


GRADIENT_OF_DIFFERENCES = (
    "Write the gradient of the whole expression by hand (jax.custom_vjp), with its factors outside the differences: "
    "that of jnp.sum(jnp.diff(x) ** 2) is -2 * jnp.diff(jnp.diff(x), prepend=0, append=0). A rule for jnp.diff alone "
    "gains nothing."
)
"""Measured with three axes of 192: 18 ms by JAX, 19 ms with a rule for each difference, 4 ms by hand."""


@check(
    "the backward pass costs many times the forward pass",
    "A backward pass usually takes two or three times the work of its forward pass. Some gradients take more: a "
    "slice or a lookup makes an array of zeros as large as the whole, pooling a scatter, and many results a pass each.",
    "Write the gradient of this operation by hand (jax.custom_vjp), or take it out of what is differentiated.",
    saves="part",
)
def costly_backward(scene: Scene) -> Iterator[Finding]:
    if _BACKWARD not in scene.module.text:
        return
    for form in (_table_gradient, _slice_gradients, _pooling, _many_passes):
        if (finding := form(scene)) is not None:
            yield finding
            return


def _table_gradient(scene: Scene) -> Finding | None:
    """The gradient of a lookup: zeros of the size of the table, to which a few rows are added."""
    moved = sum(map(total, scene.kernels))
    for kernel in scene.kernels:
        for value in values_of(kernel.instruction) if kernel.kind == "scatter" else ():
            updates = value.instruction.operand(-1)
            if value.opcode != "scatter" or updates is None or _BACKWARD not in _name(value.instruction):
                continue
            zeros = origin_through(next(iter(sources(value)), None), SAME_PLACE)
            size = value.shape.bytes
            if zeros is None or zeros.opcode != "broadcast" or updates.shape.bytes * _FEW_ROWS > size:
                continue
            filled = 2 * size * (kernel.count or 1)
            if size < LARGE_BYTES or filled < _FILLED * moved:
                continue
            message = (
                f"the gradient of a lookup is an array of the whole table: {bytes_(size)} of zeros are written and "
                f"read for {bytes_(updates.shape.bytes)} of rows, {percent(filled / moved)} of the program's traffic"
            )
            return replace(
                module_finding(message, (kernel.name, zeros.outermost.name), filled),
                own_fix="Differentiate with respect to the rows that are used, and update these alone: grads = "
                "jax.grad(loss)(table[ids]), then table.at[ids].add(-rate * grads).",
            )
    return None


def _slice_gradients(scene: Scene) -> Finding | None:
    """The gradient of slices: each is padded with zeros to the whole array, and all are added in one loop."""
    if scene.platform != "cpu":
        return None
    loops: list[tuple[Kernel, int]] = []
    for kernel in scene.kernels:
        if "pad" not in scene.opcodes(kernel):
            continue
        # Differences that are padded as they are become vector instructions, products with a factor do not.
        pads = [value for value in values_of(kernel.instruction) if value.opcode == "pad"]
        scaled = [pad.instruction for pad in pads if not any(made.opcode == "subtract" for made in sources(pad)[:1])]
        number = sum(_BACKWARD in _name(pad) and pad.shape.bytes >= LARGE_BYTES for pad in scaled)
        if number >= _PADS:
            loops.append((kernel, number))
    kernels = [kernel for kernel, _ in loops]
    if not loops or (share := scene.share(kernels)) < WORTH:
        return None
    message = (
        f"the gradient pads {counted(max(number for _, number in loops), 'slice')} with zeros to the whole array in "
        f"one loop, whose condition for each rules out vector instructions: {percent(share)} of the program's work by "
        "its traffic, and more of its time"
    )
    return replace(
        module_finding(message, tuple(kernel.name for kernel in kernels)),
        own_fix=GRADIENT_OF_DIFFERENCES,
    )


def _pooling(scene: Scene) -> Finding | None:
    """The gradient of a max pooling, which XLA expands to an arg-max over windows and a scatter. Its parts have no
    names."""
    scatters = [kernel for kernel in scene.kernels if kernel.kind == "scatter"]
    pooled = [kernel for kernel in scatters if kernel.path.primitive == "select_and_scatter"]
    if not pooled:
        return None
    parts = [kernel for kernel in scene.kernels if not kernel.op_name and not kernel.uses_matrix_units]
    share = scene.share([*pooled, *parts])
    if share < WORTH:
        return None
    message = (
        f"the gradient of a max pooling finds the largest element of each window again and scatters to it: "
        f"{bytes_(sum(map(total, [*pooled, *parts])))} a call, {percent(share)} of the program's work"
    )
    return replace(
        module_finding(message, tuple(kernel.name for kernel in [*pooled, *parts])),
        own_fix="Where the windows do not overlap, pool by a reduction, whose gradient is a comparison: "
        "x.reshape(n, h // 2, 2, w // 2, 2, c).max((2, 4)).",
    )


def _many_passes(scene: Scene) -> Finding | None:
    forward: list[Kernel] = []
    backward: list[Kernel] = []
    for kernel in scene.kernels:
        name = _name(kernel.instruction)
        if "jvp(" in name:
            (backward if _BACKWARD in name else forward).append(kernel)
    ahead, back = sum(map(scene.work, forward)), sum(map(scene.work, backward))
    whole = sum(map(scene.work, scene.kernels))
    if not ahead or back < _TIMES * ahead or back < _MOST * whole:
        return None
    # One forward pass and many backward passes; of examples that are differentiated one by one both are under vmap.
    batched = [kernel for kernel in backward if f"vmap({_BACKWARD}" in _name(kernel.instruction)]
    reverse = len(batched) * 2 > len(backward) and not any(
        "vmap(jvp(" in _name(kernel.instruction) for kernel in forward
    )
    if not reverse and ahead < _SEEN * whole:
        return None
    worst = max(backward, key=scene.work)
    message = (
        f"the backward pass does {ratio(back / ahead)} the work of the forward pass, most of it in {worst.name} "
        f"({worst.path.primitive or worst.kind})"
    )
    finding = module_finding(message, tuple(kernel.name for kernel in sorted(backward, key=scene.work)[::-1]))
    if not reverse:
        return finding
    # The call of jacrev is the innermost frame that all passes share, the forward one too: its lines are more.
    stacks = [stack for kernel in (*backward, *forward) if (stack := kernel.instruction.stack)]
    shared = own_frame(frame for frame in stacks[0] if all(frame in stack for stack in stacks)) if stacks else None
    return replace(
        finding,
        places=(SourceLocation(shared.file, shared.line),) if shared is not None else (),
        message=f"{message}: a backward pass for each of {integer(max(worst.shape.dimensions, default=0))} results",
        own_fix="Where a function has more results than arguments, jax.jacfwd takes one pass for each argument; "
        "jax.jacrev takes one for each result. jax.hessian does the right thing for one result.",
    )


def _name(instruction: Instruction) -> str:
    return instruction.metadata.first_name
