"""Findings about results that another function of JAX computes with much less work."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from jaxprof.base.units import integer, percent
from jaxprof.events.finding import Finding
from jaxprof.findings.hlo.scene import WORTH, Scene, check, module_finding
from jaxprof.hlo.kernels.dataflow import Value, downstream
from jaxprof.hlo.kernels.kernels import Kernel
from jaxprof.hlo.kernels.kinds import values_of

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
    if any(passage.producer is kernel and passage.crossed for passage in scene.flow):
        return 0  # what a loop or a branch does with it is not followed
    first = last = 0
    for member in range(len(sort.instruction.shape.leaves())):
        index = (member,) if sort.instruction.shape.is_tuple else ()
        if ((kernel, index) if index else kernel) in scene.flow.outputs:
            return 0
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
    outputs = {array[0] if isinstance(array, tuple) else array for array in scene.flow.outputs}
    if not used or solving & outputs:
        return
    for passage in used:
        # With as many columns as the matrix has, solving still takes half the time. A product with more of them costs
        # the same either way, so that it saves less and less.
        others = sum(size for _, size in passage.consumer.operand_bytes) - passage.bytes_read
        is_product = passage.consumer.path.primitive == "dot_general"
        if passage.crossed or not is_product or others > passage.bytes_read:
            return
    inverse = used[0].shape.without_layout()
    yield module_finding(
        f"the inverse {inverse} is only multiplied, by no more columns than it has: inverting is {percent(share)} of "
        "the program's work",
        tuple(kernel.name for kernel in sorted(inverting, key=scene.work, reverse=True)),
    )
