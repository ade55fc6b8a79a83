"""Findings about the precision of matrix products: more of it than their operands have, or than one pass gives."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from jaxprof.hlo.analysis.attention import is_any_product
from jaxprof.hlo.analysis.dataflow import Value, sources
from jaxprof.hlo.analysis.findings.finding import gather
from jaxprof.hlo.analysis.kernel import MATRIX_KINDS
from jaxprof.hlo.analysis.kinds import values_in

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jaxprof.hlo.analysis.findings.finding import HloFinding, Scene
    from jaxprof.hlo.analysis.kernel import Kernel
    from jaxprof.hlo.model import Instruction

LARGE_PRODUCT_FLOPS: Final = 1e7
"""A product below this is bound by its launch, and its precision does not matter."""
_NARROW: Final = frozenset({"bf16", "f16"})
_REARRANGING: Final = frozenset({"copy", "transpose", "reshape", "broadcast", "slice"})
_PRECISE: Final = re.compile(r"high|highest|dot_f32_f32_f32|.*_x[369]")
"""Precisions for which a TPU adds up several bfloat16 products, and a GPU leaves its matrix units or does the same."""


def upcast_products(scene: Scene) -> Iterator[HloFinding]:
    """Products of float32 arrays that were bfloat16 or float16 just before: nothing is gained by the wider product."""
    if not scene.on_accelerator:
        return
    kernels = [kernel for kernel, instruction in _products(scene) if any(map(_is_upcast, _in_kernel(instruction)))]
    yield from gather(
        "upcast-product", kernels, "product computes", "products compute",
        "in float32 with operands that hold 16-bit floats: {bytes} a run",
    )  # fmt: skip


def precise_products(scene: Scene) -> Iterator[HloFinding]:
    """Products of float32 arrays at a precision that takes several passes."""
    if not scene.on_accelerator:
        return
    kernels = [
        kernel for kernel, _ in _products(scene) if kernel.dtype == "f32" and _PRECISE.fullmatch(kernel.precision)
    ]
    words = ", ".join(dict.fromkeys(kernel.precision for kernel in kernels))
    yield from gather(
        "precise-product", kernels, "float32 product", "float32 products", f"at precision {words}: {{bytes}} a run"
    )


def _products(scene: Scene) -> Iterator[tuple[Kernel, Instruction]]:
    for kernel, instruction in scene.pairs:
        if kernel.kind in MATRIX_KINDS and (kernel.flops or 0) >= LARGE_PRODUCT_FLOPS:
            yield kernel, instruction


def _in_kernel(instruction: Instruction) -> Iterator[Value]:
    values = values_in((instruction,)) if instruction.opcode == "fusion" else iter((Value(instruction),))
    return (value for value in values if is_any_product(value.instruction))


def _is_upcast(product: Value) -> bool:
    operands = sources(product)[:2]
    return len(operands) == 2 and all(map(_held_narrow, operands))


def _held_narrow(value: Value) -> bool:
    """Whether a float32 array is a 16-bit one that was converted, and at most rearranged since."""
    for _ in range(8):
        made_of = sources(value)
        if value.opcode == "convert" and value.shape.dtype == "f32":
            return bool(made_of) and made_of[0].shape.dtype in _NARROW
        if value.opcode not in _REARRANGING or not made_of:
            return False
        value = made_of[0]
    return False
