"""Findings about precision: products with more than their operands have or than one pass gives, and sums with too
little.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from jaxprof.hlo.analysis.attention import is_any_product
from jaxprof.hlo.analysis.dataflow import Value, made_through, resolved, sources
from jaxprof.hlo.analysis.findings.finding import HloFinding, gather
from jaxprof.hlo.analysis.kernels import MATRIX_KINDS
from jaxprof.hlo.analysis.kinds import held_in, values_of
from jaxprof.units import counted, integer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jaxprof.hlo.analysis.findings.finding import Scene
    from jaxprof.hlo.analysis.kernels import Kernel
    from jaxprof.hlo.model import Computation, Instruction

LARGE_PRODUCT_FLOPS: Final = 1e7
"""FLOPs below which a product is launch-bound, so that its precision does not matter."""
_NARROW: Final = frozenset({"bf16", "f16"})
_CONVERT: Final = frozenset({"convert"})
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


def narrow_sums(scene: Scene) -> Iterator[HloFinding]:
    """Find sums that are rounded to 16 bits at each addition, over more numbers than such a sum can take up.

    A sum of n numbers of one size is n times as large as the next of them. With p significant bits (8 for bfloat16, 11
    for float16) it no longer changes once n reaches 2 ** p: half a unit in its last place is then as large as the
    number (Higham, Accuracy and Stability of Numerical Algorithms, 2nd edition, section 4.2). That is what the HLO
    says: a backend that sums in parts, or keeps more bits on the way, loses less.
    """
    found: dict[str, tuple[int, str]] = {}
    for kernel in scene.kernels:
        for inner in held_in(kernel.instruction):
            number, dtype = _reduced(inner)
            if dtype and number >= _TAKEN_UP[dtype] and number > found.get(kernel.name, (0, ""))[0]:
                found[kernel.name] = number, dtype
    for edges in scene.table.execution.edges.values():
        for edge in edges:
            if edge.caller.opcode != "while" or edge.callee not in edge.caller.called[:1] or edge.times is None:
                continue
            dtype = _carried_sum(scene.table.module.get(edge.callee))
            if dtype and edge.times >= _TAKEN_UP[dtype]:
                found[edge.caller.name] = edge.times, dtype
    if not found:
        return
    ordered = sorted(found, key=lambda name: -found[name][0])
    most, dtype = found[ordered[0]]
    yield HloFinding(
        "narrow-sum",
        f"{counted(len(found), 'sum rounds', 'sums round')} to 16 bits at each addition, according to the HLO, over up "
        f"to {integer(most)} numbers: a {dtype} sum of {integer(_TAKEN_UP[dtype])} equal numbers no longer changes",
        tuple(ordered),
    )


_TAKEN_UP: Final = {"bf16": 1 << 8, "f16": 1 << 11}
"""Numbers of one size after which a sum with so many significant bits no longer changes."""


def _reduced(reduction: Instruction) -> tuple[int, str]:
    """Return how many numbers each sum of a reduction takes, and the 16-bit dtype that it is rounded to, empty if
    none."""
    if reduction.opcode != "reduce" or reduction.shape.is_tuple or not reduction.operands:
        return 0, ""
    called, operand = reduction.called_computations(), reduction.operand(0)
    inside = called[0].instructions if called else ()
    adding = [instruction for instruction in inside if instruction.opcode == "add"]
    working = {instruction.opcode for instruction in inside} - {"parameter"}
    narrow = [instruction.shape.dtype for instruction in inside if instruction.shape.dtype in _NARROW]
    if operand is None or len(adding) != 1 or not working <= {"add", "convert"} or not narrow:
        return 0, ""
    return operand.shape.elements // max(1, reduction.shape.elements), narrow[0]


def _carried_sum(body: Computation | None) -> str:
    """Return the 16-bit dtype of an element of a loop's state to which each iteration adds; empty if there is none."""
    root = body.root if body is not None else None
    if root is None or root.opcode != "tuple":
        return ""
    for number, element in enumerate(root.operand_instructions()):
        value = made_through(resolved(Value(element)), _CONVERT)
        if element.shape.dtype not in _NARROW or value is None or value.opcode != "add":
            continue
        for addend in sources(value):
            carried = made_through(addend, _CONVERT)
            if carried is not None and carried.opcode == "parameter" and carried.member == (number,):
                return element.shape.dtype
    return ""


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
