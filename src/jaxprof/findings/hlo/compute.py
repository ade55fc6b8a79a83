"""Findings about the work itself: its dtype, precision and sizes, work that is done twice, work that is too small, and
attention whose scores go through memory.

Each function yields one finding at most, `loops` one for each loop.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterator
from dataclasses import replace
from functools import cache

from jaxprof.base.grouping import grouped
from jaxprof.base.units import bytes_, counted, integer, percent, scaled
from jaxprof.events.finding import Finding
from jaxprof.findings.hlo.scene import LARGE_BYTES, Scene, check, flops_of, join, lines_of, module_finding, total
from jaxprof.hlo.kernels.cost.library import is_any_product
from jaxprof.hlo.kernels.cost.peaks import DEVICES
from jaxprof.hlo.kernels.dataflow import Value, origin_through, same_elements, sources, upstream
from jaxprof.hlo.kernels.execution import Execution, functions_of_calls
from jaxprof.hlo.kernels.kernels import MATRIX_KINDS, Kernel, kernels_run_again
from jaxprof.hlo.kernels.kinds import instructions_in, values_of
from jaxprof.hlo.text.model import Instruction

TINY_BYTES = 32 << 10
TINY_FLOPS = 1e5
"""FLOPs, with `TINY_BYTES`, below which a GPU kernel runs for less time than its launch takes (some 2 to 5 µs)."""
_TINY_IN_LOOP = {"gpu": (TINY_BYTES, TINY_FLOPS), "cpu": (1 << 10, 1e3)}
"""Bytes and FLOPs below which a kernel of a loop body takes less time than the loop's own steps: a CPU takes some 0.1
µs from one kernel to the next. A TPU runs the whole loop without a launch, so nothing is reported.
"""
FEW = 10
"""Number of tiny launches in one call from which they are reported: 10 take some 30 µs."""
LARGE_GEMM_FLOPS = 1e7
"""FLOPs below which a product is launch-bound, so that its sizes and its precision do not matter."""


_IN_FLOAT64 = 0.5
"""Share of a program's work in float64 that is reported on a CPU."""


@check(
    "float64 where it is slow",
    "float64 moves twice the bytes of float32, and a CPU computes half as many at once. TPUs emulate it, and most GPUs "
    "compute it at 1/32 or 1/64 of their float32 rate.",
    "Use float32 unless the result needs more: leave jax_enable_x64 off, or look for a NumPy constant or array in "
    "float64 that widens what follows (np.float32(x), x.astype(np.float32)).",
    saves="part",
)
def float64(scene: Scene) -> Iterator[Finding]:
    kernels = [kernel for kernel in scene.kernels if kernel.dtype in _WIDE and kernel.flops]
    share = scene.share(kernels)
    if not kernels or (not scene.on_accelerator and share < _IN_FLOAT64):
        return
    # What widens float32 arrays comes first: its line is the one to change.
    widening = {id(kernel): any(map(_widens, instructions_in(kernel.instruction))) for kernel in kernels}
    kernels.sort(key=lambda kernel: (not widening[id(kernel)], -total(kernel)))
    some, number = any(widening.values()), counted(len(kernels), "kernel computes", "kernels compute")
    moved = sum(map(total, kernels))
    yield module_finding(
        f"{number} in float64: {bytes_(moved)} a call, {percent(share)} of the program's work, of which float32 moves "
        f"half{'; the first one widens a float32 array' if some else ''}",
        tuple(kernel.name for kernel in kernels),
        moved,
    )  # fmt: skip


_WIDE = frozenset({"f64", "c128"})


def _widens(instruction: Instruction) -> bool:
    """Return whether the instruction makes float64 of a large array of a narrower dtype."""
    operand = instruction.operand(0) if instruction.opcode == "convert" else None
    return (
        operand is not None
        and instruction.shape.dtype in _WIDE
        and operand.shape.dtype not in _WIDE
        and operand.shape.bytes >= LARGE_BYTES
    )


@check(
    "most launches do next to nothing",
    "A launch takes 2 to 5 µs on a GPU; kernels that move less than 32 KiB take less than that.",
    "Stack the small arrays and process them together (vmap, one concatenated array), or let one scan iteration "
    "do several steps (unroll).",
    saves="part",
)
def tiny_kernels(scene: Scene) -> Iterator[Finding]:
    """Find runs of mostly tiny kernels, on a GPU only: elsewhere the host does not launch kernels one by one."""
    if scene.platform != "gpu":
        return
    tiny = [
        kernel
        for kernel in scene.kernels
        if kernel.flops is not None
        and kernel.flops < TINY_FLOPS
        and kernel.bytes < TINY_BYTES
        and kernel.shape.bytes < TINY_BYTES
    ]
    launches = sum(kernel.count or 1 for kernel in tiny)
    everything = sum(kernel.count or 1 for kernel in scene.kernels)
    if launches < FEW or launches * 2 < everything:
        return
    ordered = sorted(tiny, key=lambda kernel: -(kernel.count or 1))
    yield module_finding(
        f"{integer(launches)} of {integer(everything)} launches move less than {bytes_(TINY_BYTES)} and compute less "
        f"than {scaled(TINY_FLOPS, 'FLOP')}: launching them takes longer than running them",
        tuple(kernel.name for kernel in ordered),
    )  # fmt: skip


@check(
    "sizes that do not fill the matrix unit's tiles",
    "Matrix units work on tiles; a size that is not a multiple leaves a part of each last tile empty, or rules out "
    "the fastest kernels.",
    "Make the sizes multiples of the matrix unit's tile: a vocabulary of 50304 costs less than one of 50257.",
)
def odd_sizes(scene: Scene) -> Iterator[Finding]:
    if not scene.on_accelerator:
        return
    kernels: list[Kernel] = []
    sizes: list[str] = []
    for kernel in scene.kernels:
        if kernel.kind != "GEMM" or (kernel.flops or 0) < LARGE_GEMM_FLOPS:
            continue
        if (kernel.intensity or 0.0) < _least_ridge(kernel.dtype):
            continue  # a batch of 11 tokens waits for the weights from memory, however full its tiles are
        multiple = 128 if scene.platform == "tpu" else _GPU_MULTIPLE.get(kernel.dtype, 8)
        # The last two sizes of the operands and of the result of the product, without sizes of 1.
        product = _product_of(kernel)
        shapes = [leaf for operand in product.operand_instructions()[:2] for leaf in operand.shape.leaves()]
        shapes += product.shape.leaves()[:1]
        gemm_sizes = {size for shape in shapes for size in shape.dimensions[-2:] if size > 1}
        odd = [size for size in gemm_sizes if size % multiple and size > multiple]
        if odd:
            kernels.append(kernel)
            sizes += [str(size) for size in odd]
    if kernels:
        named = ", ".join(list(dict.fromkeys(sizes))[:6])
        yield from join(kernels, "GEMM has", "GEMMs have", f"sizes that do not fill whole tiles ({named})")


@check(
    "large matrices are read for a few rows",
    "A product with few rows does a few FLOPs for each byte of its matrix and waits for memory: a model that makes one "
    "token at a time reads all its weights for it.",
    "Process more rows in each call (a larger batch, several sequences or tokens), so that they share each read of the "
    "matrices; else keep these in a narrower dtype (bfloat16, int8).",
    saves="part",
)
def few_rows(scene: Scene) -> Iterator[Finding]:
    if not scene.on_accelerator:
        return
    kernels: list[Kernel] = []
    rows, most = 0, 0.0
    for kernel in scene.kernels:
        product = _product_of(kernel) if kernel.kind == "GEMM" else None
        if product is None or kernel.flops is None or product.attributes.get("lhs_batch_dims", "{}") != "{}":
            continue  # of a batch of products each has its own matrix, which no other row could share
        matrix = max(
            (leaf for operand in product.operand_instructions()[:2] for leaf in operand.shape.leaves()),
            key=lambda leaf: leaf.bytes or 0,
            default=None,
        )
        if matrix is None or not LARGE_BYTES <= (matrix.bytes or 0) <= kernel.bytes <= _MOSTLY_MATRIX * matrix.bytes:
            continue
        intensity = kernel.flops / kernel.bytes
        if intensity < _least_ridge(kernel.dtype) / 2:
            kernels.append(kernel)
            rows, most = max(rows, round(kernel.flops / 2 / matrix.elements)), max(most, intensity)
    if sum(map(total, kernels)) >= _MOST_TRAFFIC * sum(map(total, scene.kernels)):
        rest = f"large matrices for {counted(rows, 'row')} or fewer: {{bytes}} a call, {most:.2g} FLOPs a byte or fewer"
        yield from join(kernels, "product reads", "products read", rest)


_MOSTLY_MATRIX = 1.5
"""Most traffic of such a product, in sizes of its matrix."""
_MOST_TRAFFIC = 0.5
"""Share of the module's traffic from which they are what it waits for."""


def _product_of(kernel: Kernel) -> Instruction:
    """Return the product in a kernel, which for a library's is its call."""
    inner = (each for each in instructions_in(kernel.instruction) if each.opcode in ("dot", "convolution"))
    return next(inner, kernel.instruction)


@cache
def _least_ridge(dtype: str) -> float:
    """Return the FLOPs per byte below which products of this dtype wait for memory on every accelerator whose matrix
    units take it."""
    peaks = ((device.matrix.get(device.rate(dtype)), device.bandwidth) for device in DEVICES.values())
    return min((peak / bandwidth for peak, bandwidth in peaks if peak), default=0.0)


_GPU_MULTIPLE = {"f32": 4, "f64": 2, "s8": 16, "u8": 16, "f8e4m3fn": 16, "f8e5m2": 16}
"""Elements in 16 bytes: the alignment that tensor cores need (NVIDIA, Matrix Multiplication Background, section 4)."""


@check(
    "work that is done twice to save memory",
    "Checkpointing (jax.checkpoint, jax.remat) computes in the backward pass what the forward pass did not keep.",
    "Recomputation trades time for memory. If memory allows, checkpoint less (a policy such as dots_saveable) or "
    "not at all.",
    saves="all",
    unfused=True,
)
def rematerialisation(scene: Scene) -> Iterator[Finding]:
    kernels = kernels_run_again(scene.module)
    flops = flops_of(kernels)
    share = f" ({percent(flops / whole)} of all FLOPs)" if (whole := flops_of(scene.kernels)) else ""
    rest = f"values that the forward pass did not keep: {scaled(flops, 'FLOP')}{share}, {{bytes}} a call"
    yield from join(kernels, "kernel recomputes", "kernels recompute", rest)


@check(
    "a loop whose iterations are smaller than their overhead",
    "Each iteration launches only tiny kernels, so the loop's own cost is most of its time.",
    "Do more in each iteration: unroll the scan, batch over another axis, or write the recurrence as an "
    "associative scan.",
    saves="part",
)
def small_loop_body(scene: Scene) -> Iterator[Finding]:
    if scene.platform not in _TINY_IN_LOOP:
        return
    tiny_bytes, tiny_flops = _TINY_IN_LOOP[scene.platform]
    bodies = grouped((kernel.computation, kernel) for kernel in scene.kernels)
    calls = scene.module.once(Execution).edges
    functions = functions_of_calls(scene.module) if scene.platform == "cpu" else {}
    for loop, times in scene.loops():
        inside = bodies.get(loop.called[0], [])
        few = times is not None and times < FEW
        if not inside or few or calls[loop.called[0]] or loop.computation.name in functions:
            continue
        moved = sum(kernel.bytes for kernel in inside)
        if any(kernel.flops is None or kernel.flops >= tiny_flops for kernel in inside):
            continue
        if moved >= tiny_bytes * len(inside):
            continue
        turns = "an unknown number of" if times is None else integer(times)
        body = counted(len(inside), "kernel that moves", "kernels that move")
        yield replace(
            module_finding(
                f"{loop.name} runs {turns} iterations of {body} {bytes_(moved)}: the loop's overhead is larger than "
                "its work",
                (loop.name,),
            ),
            places=lines_of(Value(each) for each in (loop, *(kernel.instruction for kernel in inside))),
        )


# -- precision ---------------------------------------------------------------------------------------------------------


_NARROW = frozenset({"bf16", "f16"})
_REARRANGING = frozenset({"copy", "transpose", "reshape", "broadcast", "slice"})
_PRODUCT = re.compile(r"\w*(dot|conv|matmul)")
"""Primitives of JAX that are products."""
_PRECISE = re.compile(r"high|highest|dot_f32_f32_f32|.*_x[369]")
"""Precisions for which a TPU adds up several bfloat16 products, and a GPU does the same or does not use its matrix
units.
"""


@check(
    "products wider than their operands",
    "Both operands were 16-bit floats just before: converting them first gains no precision, reads twice the "
    "bytes and runs at half the rate of the matrix units or less.",
    "Give the product the 16-bit arrays themselves: jnp.matmul(a, b, preferred_element_type=jnp.float32) still "
    "accumulates in float32, at twice the rate or more.",
    saves="part",
)
def upcast_product(scene: Scene) -> Iterator[Finding]:
    if not scene.on_accelerator:
        return
    kernels = [
        kernel
        for kernel in _products(scene)
        if any(
            is_any_product(value.instruction)
            and len(operands := sources(value)[:2]) == 2
            and all(map(_is_widened, operands))
            for value in values_of(kernel.instruction)
        )
    ]
    yield from join(
        kernels, "product computes", "products compute",
        "in float32 with operands converted from 16-bit floats: {bytes} a call",
    )  # fmt: skip


@check(
    "float32 products that take several passes",
    "Matrix units compute with bfloat16 or TF32. At `high` or `highest` precision a product is made of several, "
    "or leaves the matrix units.",
    "Use the default precision if the result stays accurate enough: jax_default_matmul_precision, or "
    "precision=None on the product. On a TPU `highest` takes six passes; on a GPU it rules out TF32.",
    saves="part",
)
def precise_product(scene: Scene) -> Iterator[Finding]:
    if not scene.on_accelerator:
        return
    kernels = [
        kernel
        for kernel in _products(scene)
        if kernel.dtype == "f32"
        and _PRECISE.fullmatch(kernel.precision)
        # XLA chooses the precision of products that it makes of an FFT or a decomposition.
        and (not kernel.op_name or _PRODUCT.match(kernel.path.primitive))
    ]
    words = ", ".join(dict.fromkeys(kernel.precision for kernel in kernels))
    yield from join(kernels, "float32 product", "float32 products", f"at precision {words}: {{bytes}} a call")


def _products(scene: Scene) -> list[Kernel]:
    return [
        kernel for kernel in scene.kernels if kernel.kind in MATRIX_KINDS and (kernel.flops or 0) >= LARGE_GEMM_FLOPS
    ]


def _is_widened(value: Value) -> bool:
    """Return whether a float32 array is a converted 16-bit one, at most rearranged since."""
    converted = origin_through(value, _REARRANGING)
    if converted is None or converted.opcode != "convert" or converted.shape.dtype != "f32":
        return False
    return any(source.shape.dtype in _NARROW for source in sources(converted)[:1])


# -- attention ---------------------------------------------------------------------------------------------------------


@check(
    "attention stores its scores",
    "The array of scores grows with the square of the sequence, is written and read between kernels, and is the "
    "largest part of the traffic and memory of attention.",
    "Let one kernel compute all of it: jax.nn.dot_product_attention(implementation='cudnn') on GPUs, a "
    "flash-attention kernel (Pallas) on TPUs; or process a block of queries at a time, so that the scores stay "
    "small.",
    saves="part",
)
def attention_scores(scene: Scene) -> Iterator[Finding]:
    # Without a reduction there is no softmax, and each search back from a product would visit up to 512 values in vain.
    if " reduce" not in scene.module.text:
        return
    from jaxprof.hlo.kernels.attention import scores_before

    attentions: list[tuple[Value, Value]] = []  # the products before and after the softmax of each attention
    for kernel in scene.kernels:
        if kernel.kind not in MATRIX_KINDS or kernel.kind == "attention":
            continue
        for value in values_of(kernel.instruction):
            scores = scores_before(value) if is_any_product(value.instruction) else None
            # If the scores are the smaller array, storing them is cheap.
            if scores is not None and scores.elements > value.elements:
                attentions.append((scores, value))
    if not attentions:
        return
    # The kernels from the first product to the second, each with the first attention that it belongs to.
    kernels: dict[int, int] = {}
    for number, (first, second) in reversed([*enumerate(attentions)]):
        for operand in sources(second)[:2]:
            for value in upstream(operand, same_elements):
                if value.elements == first.elements:
                    kernels[id(value.outermost)] = number
    written: dict[Hashable, tuple[int, Kernel]] = {}
    storing: set[int] = set()
    for passage in scene.flow:
        attention = kernels.get(id(passage.producer.instruction))
        if attention is None or not passage.bytes_read:  # not attention, or kept in a TPU's on-chip memory
            continue
        shape = passage.shape
        if shape.elements != attentions[attention][0].elements or shape.dtype == "pred":
            continue
        size, producer = written.get(passage.array, (shape.bytes * (passage.producer.count or 1), passage.producer))
        written[passage.array] = (size + passage.bytes_read * (passage.consumer.count or 1), producer)
        storing.add(attention)
    shapes = [str(attentions[number][0].shape.without_layout()) for number in sorted(storing)]
    moved = sum(size for size, _ in written.values())
    if moved < LARGE_BYTES:
        return
    several = f"{len(shapes)} times" if len(shapes) > 1 else "once"
    message = (
        f"attention stores its scores ({shapes[0]}, {several}): {counted(len(written), 'array')} of "
        f"their size, {bytes_(moved)} written and read in a call"
    )
    where = sorted(written.values(), key=lambda pair: -pair[0])
    yield module_finding(message, tuple(dict.fromkeys(k.name for _, k in where)), moved)
