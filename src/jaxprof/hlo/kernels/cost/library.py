"""Library calls: what a `custom-call` target computes, in words, and what it costs; and the axes of matrix products,
whether or not a library computes them.

XLA hands GEMMs, convolutions, attention, sorts and factorisations to libraries and counts nothing for them. Their
shapes and `backend_config` suffice: the dimension numbers of a GEMM, the window of a convolution, the shape of
attention's scores. Factorisations follow the operation counts of LAPACK Working Note 41 (leading terms). A target in no
table is a library call of unknown cost.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import log2, prod

from jaxprof.base.text import number, whole_number
from jaxprof.base.values import frozen
from jaxprof.hlo.kernels.cost import (
    OPAQUE,
    Cost,
    NotShownError,
    convolution_flops,
    dimension_labels,
    dot_flops,
    is_product,
    matmul_flops,
    multiply_add_flops,
)
from jaxprof.hlo.shape import MAIN_MEMORY, Shape
from jaxprof.hlo.text.model import Instruction

_TARGETS: tuple[tuple[str, str], ...] = (
    (r"__cublas\$(lt\$)?(gemm|matmul|grouped).*|(?i:.*(gemm|matmul).*)", "GEMM"),
    (r"__cudnn\$conv.*|__onednn\$convolution.*|.*[cC]onv(olution)?([A-Z$_].*)?", "convolution"),
    (r"(?i:__cudnn\$(fmha|flash).*|.*(attn|attention|mha|splash).*)", "attention"),
    (r"(?i:__cub\$DeviceRadixSort.*|.*(radix|bitonic)?_?sort.*)", "sort"),
    (r"(?i:.*top_?k.*)", "top-k"),
    (r"(?i:.*(callback|host_execute).*)", "host callback"),
    (r"MoveToHost|MoveToDevice|annotate_device_placement", "transfer"),
    (r"X64(SplitHigh|SplitLow|Combine)", "copy"),
    (r"(?i:.*(potrf|cholesky).*)", "Cholesky"),
    (r"(?i:.*(trsm|triangular_?solve).*)", "triangular solve"),
    (r"(?i:.*(getrf|lu_?decomposition).*)|.*lu_pivots.*", "LU"),
    (r"(?i:.*(geqrf|orgqr|ungqr|geqp3|householder).*)|Qr|QrDecomposition", "QR"),
    (r"(?i:.*(gesdd|gesvd|svd).*)", "SVD"),
    (r"(?i:.*(syev|heev|eigh|geev|gees).*)|Eigh", "eigenvalues"),
    (r"(?i:.*fft.*)", "FFT"),
    (r"tpu_custom_call|(?i:.*mosaic.*)", "Pallas kernel"),
    (r"(?i:.*triton.*)", "Triton kernel"),
    (r"(?i:.*(cutlass|cutedsl).*)", "CUTLASS kernel"),
    (r"(?i:.*norm.*)", "normalisation"),
)
_PATTERNS = tuple((re.compile(pattern), kind) for pattern, kind in _TARGETS)

ANNOTATIONS = frozenset(
    {
        "Sharding", "SPMDFullToShardShape", "SPMDShardToFullShape", "AllocateBuffer", "CreateBuffer", "PinBuffer",
        "Pin", "Unpin", "LayoutConstraint", "AssumeGatherIndicesInBound", "ConcatBitcast",
        "xla.sdy.FuncResultSharding", "xla.sdy.GlobalToLocalShape", "xla.sdy.LocalToGlobalShape",
    }
)  # fmt: skip
"""Targets that run nothing: they annotate a value, or name memory."""
_MOVES = frozenset({"MoveToHost", "MoveToDevice", "annotate_device_placement"})
_PIVOTS = "lu_pivots"
"""In the names of calls that make a permutation of the row exchanges of a factorisation: integers, no arithmetic."""
SPLITS = frozenset({"X64SplitHigh", "X64SplitLow"})
"""A TPU keeps complex and 64-bit arrays as two arrays of 32-bit numbers; these take one of both."""
_HALVES = SPLITS | {"X64Combine"}


def runs_nothing(call: Instruction) -> bool:
    """Return whether a custom call only annotates a value or names memory. Taking a half of a complex array, or making
    one of two halves, is a name too, unless the parts are in another memory: then it copies."""
    target = call.string("custom_call_target")
    if target not in _HALVES:
        return target in ANNOTATIONS
    shapes = [call.shape, *(operand.shape for operand in call.operand_instructions())]
    return len({shape.layout.memory_space if shape.layout else MAIN_MEMORY for shape in shapes}) == 1


def kind_of(target: str) -> str:
    """Return the kind of work of a target; `library call` for an unknown one."""
    for pattern, kind in _PATTERNS:
        if pattern.fullmatch(target):
            return kind
    return "library call"


def cost_of(instruction: Instruction) -> Cost:
    """Return the cost of one call; `OPAQUE` if target and settings do not show it. Raises NotShownError if its shapes
    do not."""
    declared = _cost_estimate(instruction.backend_config)
    if declared is not None:
        return declared
    target = instruction.string("custom_call_target")
    if target in ANNOTATIONS or target in _HALVES or target in _MOVES or _PIVOTS in target:
        return Cost()
    formula = _FORMULAS.get(kind_of(target))
    return formula(instruction, target) if formula else OPAQUE


def cost_as(kind: str, instruction: Instruction) -> Cost:
    """Return the cost of an instruction that computes what a library call of this kind does."""
    return _FORMULAS[kind](instruction, "")


def _cost_estimate(config: Mapping[str, object]) -> Cost | None:
    """Return the cost that the author of a Pallas kernel states in `pl.CostEstimate`."""
    inner = config.get("custom_call_config", config)
    stated = inner.get("cost_estimate") if isinstance(inner, dict) else None
    if not isinstance(stated, dict):
        return None
    flops, transcendentals = (number(str(stated.get(name, 0))) for name in ("flops", "transcendentals"))
    if flops is None or transcendentals is None or flops < 0:
        return None
    return Cost(flops, transcendentals, estimated=True)


def _shapes(instruction: Instruction, least: int = 1, *, rank: int = 0) -> list[Shape]:
    """Return the arrays among the operands that have this rank or more. Raises NotShownError if there are less than
    `least`."""
    leaves = [leaf for operand in instruction.operand_instructions() for leaf in operand.shape.leaves()]
    shapes = [leaf for leaf in leaves if leaf.rank >= rank]
    if len(shapes) < least:
        raise NotShownError
    return shapes


def first_leaf(instruction: Instruction) -> Shape:
    """Return the first array of the result. Raises NotShownError if there is none."""
    leaves = instruction.shape.leaves()
    if not leaves:
        raise NotShownError
    return leaves[0]


def gemm_dimensions(instruction: Instruction) -> Mapping[str, object]:
    """Return `dot_dimension_numbers` from a GEMM call's settings, in the old or the new form; empty if there are
    none."""
    config = instruction.backend_config
    for key in ("gemm_backend_config", "onednn_matmul_config", "grouped_gemm_backend_config"):
        inner = config.get(key)
        if isinstance(inner, dict):
            config = inner.get("gemm_backend_config", inner) if key.startswith("grouped") else inner
            break
    dimensions = config.get("dot_dimension_numbers")
    return dimensions if isinstance(dimensions, dict) else {}


def integers(values: object) -> list[int]:
    """Return a list of dimension numbers from its JSON form, `["1"]` or `[1]`."""
    if not isinstance(values, list):
        return []
    return [dimension for value in values if (dimension := whole_number(str(value))) is not None]


def _gemm(instruction: Instruction, _: str) -> Cost:
    operands, result = _shapes(instruction, 2), first_leaf(instruction)
    contracting = integers(gemm_dimensions(instruction).get("lhs_contracting_dimensions"))
    if contracting:
        return Cost(dot_flops(operands[0], result, contracting))
    return Cost(matmul_flops(operands[0], operands[1], result))


def _convolution(instruction: Instruction, target: str) -> Cost:
    operands, result = _shapes(instruction, 2), first_leaf(instruction)
    # The window and labels of a backward call are those of the forward convolution that it belongs to.
    source, kernel, output = operands[0], operands[1], result
    if "BackwardInput" in target:
        source, output = result, operands[0]
    elif "BackwardFilter" in target:
        kernel, output = result, operands[1]
    return Cost(convolution_flops(instruction, source, kernel, output))


def _attention(instruction: Instruction, target: str) -> Cost:
    """Count two GEMMs over the scores (b, h, q, k) and one exponential each; five GEMMs backwards.

    cuDNN's settings hold the shape of the scores; Transformer Engine's hold heads and lengths. A causal mask, which
    would halve the cost, is ignored: the result is an estimate.
    """
    config = instruction.backend_config.get("cudnn_fmha_backend_config")
    query = _shapes(instruction)[0]
    if query.rank != 4:
        return OPAQUE
    scores: list[int] = []
    if isinstance(config, dict):
        shape = config.get("intermediate_tensor_shape")
        scores = integers(shape.get("dimensions")) if isinstance(shape, dict) else []
    depth = query.dimensions[-1]
    if not scores:
        given = dict(_SETTING.findall(instruction.attributes.get("backend_config", "")))
        names = ("input_batch", "attn_heads", "q_max_seqlen", "kv_max_seqlen")
        if not all(name in given for name in names):
            return OPAQUE
        scores = [int(given[name]) for name in names]
        depth = int(given.get("qk_head_dim", depth))
    products = 5 if re.search(r"[bB]ackward|bwd", target) else 2
    elements = prod(scores)
    return Cost(float(products * 2 * elements * depth), float(elements), estimated=True)


_SETTING = re.compile(r"(\w+) = (\d{1,15})\b")


def _comparisons(instruction: Instruction, _: str) -> Cost:
    """Count n log2 k comparisons: one heap of k for each row; a sort has k = n."""
    source, result = _shapes(instruction)[0], first_leaf(instruction)
    if not result.rank:
        return OPAQUE
    return Cost(source.elements * log2(max(2, result.dimensions[-1])), estimated=True)


def _scale(matrix: Shape) -> float:
    """Return 4 for complex numbers, whose multiplication and addition are 8 FLOPs instead of 2; else 1."""
    return multiply_add_flops(matrix.dtype) / 2


def _qr_flops(m: int, n: int) -> float:
    short = min(m, n)
    return 4.0 * m * n * short - 2.0 * (m + n) * short**2 + 4.0 * short**3 / 3


def _lu_flops(m: int, n: int) -> float:
    short = min(m, n)
    return 2.0 * m * n * short - (m + n) * short**2 + 2.0 * short**3 / 3


def _svd_flops(m: int, n: int) -> float:
    tall, short = max(m, n), min(m, n)
    return 4.0 * tall * tall * short + 8.0 * tall * short * short + 9.0 * short**3


_FACTORISATIONS: dict[str, Callable[[int, int], float]] = {
    "Cholesky": lambda _m, n: n**3 / 3,
    "LU": _lu_flops,
    "QR": _qr_flops,
    "SVD": _svd_flops,
    "eigenvalues": lambda _m, n: 9.0 * n**3,
}
"""Leading terms for one m x n matrix. SVD and eigenvalues iterate, so these are estimates: the usual figures with
vectors (Golub and Van Loan, Matrix Computations, 4th ed., 8.3 and 8.6).
"""


def _factorisation(kind: str) -> Callable[[Instruction, str], Cost]:
    def formula(instruction: Instruction, _: str) -> Cost:
        matrix = _shapes(instruction, rank=2)[0]
        flops = _FACTORISATIONS[kind](matrix.dimensions[-2], matrix.dimensions[-1])
        return Cost(_scale(matrix) * prod(matrix.dimensions[:-2]) * flops, estimated=kind != "Cholesky")

    return formula


def _triangular(instruction: Instruction, _: str) -> Cost:
    """Count n for each element of the right-hand sides: on average half of n multiplications and additions."""
    matrix, right = _shapes(instruction, 2, rank=2)[:2]
    return Cost(_scale(matrix) * right.elements * matrix.dimensions[-1])


def _callback(instruction: Instruction, _: str) -> Cost:
    """Return no cost for a Python callback on the host that returns no array (`jax.debug.print`)."""
    return OPAQUE if any(leaf.is_array for leaf in instruction.shape.leaves()) else Cost()


_FORMULAS: dict[str, Callable[[Instruction, str], Cost]] = {
    "host callback": _callback,
    "GEMM": _gemm,
    "convolution": _convolution,
    "attention": _attention,
    "top-k": _comparisons,
    "sort": _comparisons,
    "triangular solve": _triangular,
    **{kind: _factorisation(kind) for kind in _FACTORISATIONS},
}


@frozen
class OperandAxes:
    """Dimensions of one operand of a product."""

    contracting: tuple[int, ...]
    batch: tuple[int, ...]


def operand_axes(product: Instruction, number: int) -> OperandAxes | None:
    """Return the roles of the dimensions of operand 0 or 1 of a product; None if the text does not show them."""
    side = "rhs" if number else "lhs"
    if product.opcode == "custom-call":
        numbers = gemm_dimensions(product)
        contracting, batch = (
            tuple(integers(numbers.get(f"{side}_{role}_dimensions"))) for role in ("contracting", "batch")
        )
        return OperandAxes(contracting, batch) if contracting else None
    if product.opcode == "convolution":
        labels = _convolution_labels(product)
        if labels is None:
            return None
        own = labels[number]
        return OperandAxes((own.index("i" if number else "f"),), tuple(at for at, c in enumerate(own) if c.isdecimal()))
    return OperandAxes(product.integers(f"{side}_contracting_dims"), product.integers(f"{side}_batch_dims"))


def _convolution_labels(convolution: Instruction) -> tuple[str, str, str] | None:
    """Return the dimension labels of a product written as a convolution whose window is a batch; None for any other."""
    labels, operands = dimension_labels(convolution), convolution.operand_instructions()[:2]
    if labels is None or len(operands) < 2:
        return None
    left, right, result = labels
    if sorted(left) != sorted(right.replace("i", "f").replace("o", "b")) or sorted(left) != sorted(result):
        return None
    shapes = [*(operand.shape for operand in operands), convolution.shape]
    for label in filter(str.isdecimal, left):
        sizes = {shape.dimensions[own.index(label)] for own, shape in zip(labels, shapes, strict=True)}
        if len(sizes) > 1:
            return None
    return labels


def is_any_product(instruction: Instruction) -> bool:
    """Return whether the instruction is a matrix product, including one that a library computes."""
    if instruction.opcode == "custom-call":
        return kind_of(instruction.string("custom_call_target")) == "GEMM"
    return is_product(instruction)


def product_sizes(product: Instruction) -> tuple[int, int, int] | None:
    """Return the sizes of a product's axes: those of both operands, and those of each; None if the text does not show
    them."""
    axes, operands = [operand_axes(product, number) for number in (0, 1)], product.operand_instructions()[:2]
    if len(operands) < 2 or axes[0] is None or axes[1] is None:
        return None
    left, right = operands[0].shape, operands[1].shape
    batch = axes_size(left.dimensions, axes[0].batch)
    shared = batch * axes_size(left.dimensions, axes[0].contracting)
    return (batch, left.elements // shared, right.elements // shared) if shared else None


def axes_size(dimensions: Sequence[int], axes: Iterable[int]) -> int:
    return prod(dimensions[axis] for axis in axes if axis < len(dimensions))
