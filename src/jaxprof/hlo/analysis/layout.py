"""Whether a copy or transpose moves elements to other places, or only renames dimensions, or keeps a second copy."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jaxprof.hlo.analysis.kinds import fused

if TYPE_CHECKING:
    from jaxprof.hlo.model import Instruction


def reorders(instruction: Instruction) -> bool:
    """A copy or transpose in it changes the order in memory; a plain copy (of a buffer that is needed) does not."""
    for inner in fused(instruction) if instruction.opcode == "fusion" else [instruction]:
        if inner.opcode == "transpose" and inner.integers("dimensions") != tuple(range(inner.shape.rank)):
            operand = inner.operand(0)
            if operand is None or not _is_view(inner, operand):
                return True
        if inner.opcode == "copy":
            operand = inner.operand(0)
            before = operand.shape.layout if operand is not None else None
            after = inner.shape.layout
            if before and after and before.minor_to_major != after.minor_to_major:
                return True
    return False


def _is_view(transpose: Instruction, operand: Instruction) -> bool:
    """The transpose only renames dimensions: every element stays where it is, because the layout turns as well."""
    before, after = operand.shape.layout, transpose.shape.layout
    order = transpose.integers("dimensions")
    if not before or not after or len(order) != len(after.minor_to_major):
        return False
    return tuple(order[number] for number in after.minor_to_major) == before.minor_to_major
