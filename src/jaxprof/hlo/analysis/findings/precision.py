"""Findings about precision: products with more than their operands have, or than one pass gives."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from jaxprof.hlo.analysis.attention import is_any_product
from jaxprof.hlo.analysis.dataflow import Value, made_through, sources
from jaxprof.hlo.analysis.findings.finding import HloFinding, gather
from jaxprof.hlo.analysis.kernels import MATRIX_KINDS
from jaxprof.hlo.analysis.kinds import values_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jaxprof.hlo.analysis.findings.finding import Scene
    from jaxprof.hlo.analysis.kernels import Kernel

LARGE_PRODUCT_FLOPS: Final = 1e7
"""FLOPs below which a product is launch-bound, so that its precision does not matter."""
_NARROW: Final = frozenset({"bf16", "f16"})
_REARRANGING: Final = frozenset({"copy", "transpose", "reshape", "broadcast", "slice"})
_PRECISE: Final = re.compile(r"high|highest|dot_f32_f32_f32|.*_x[369]")
"""Precisions for which a TPU adds up several bfloat16 products, and a GPU does the same or does not use its matrix
units.
"""


def upcast_products(scene: Scene) -> Iterator[HloFinding]:
    """Find products of float32 arrays that were bfloat16 or float16 just before, where the wider product gains
    nothing."""
    if not scene.on_accelerator:
        return
    kernels = [
        kernel
        for kernel in _products(scene)
        if any(is_any_product(value.instruction) and _is_upcast(value) for value in values_of(kernel.instruction))
    ]
    yield from gather(
        "upcast-product", kernels, "product computes", "products compute",
        "in float32 with operands converted from 16-bit floats: {bytes} a run",
    )  # fmt: skip


def precise_products(scene: Scene) -> Iterator[HloFinding]:
    """Find products of float32 arrays at a precision that takes several passes."""
    if not scene.on_accelerator:
        return
    kernels = [kernel for kernel in _products(scene) if kernel.dtype == "f32" and _PRECISE.fullmatch(kernel.precision)]
    words = ", ".join(dict.fromkeys(kernel.precision for kernel in kernels))
    yield from gather(
        "precise-product", kernels, "float32 product", "float32 products", f"at precision {words}: {{bytes}} a run"
    )


def _products(scene: Scene) -> list[Kernel]:
    return [
        kernel for kernel in scene.kernels if kernel.kind in MATRIX_KINDS and (kernel.flops or 0) >= LARGE_PRODUCT_FLOPS
    ]


def _is_upcast(product: Value) -> bool:
    operands = sources(product)[:2]
    return len(operands) == 2 and all(map(_held_narrow, operands))


def _held_narrow(value: Value) -> bool:
    """Return whether a float32 array is a converted 16-bit one, at most rearranged since."""
    converted = made_through(value, _REARRANGING)
    if converted is None or converted.opcode != "convert" or converted.shape.dtype != "f32":
        return False
    return any(source.shape.dtype in _NARROW for source in sources(converted)[:1])
