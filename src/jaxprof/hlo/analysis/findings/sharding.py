"""Findings about programs on several devices: arrays that change their sharding between two operations.

They are derived from the collectives that XLA's partitioner made. Collectives that the program requests (`psum`,
`all_gather`, `ppermute`, ... in `shard_map` or `pmap`) carry the name of their primitive, and are not reported.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from jaxprof.hlo.analysis.collectives import collectives
from jaxprof.hlo.analysis.dataflow import Value, made_through, sources
from jaxprof.hlo.analysis.findings.finding import LARGE_BYTES, gather, total

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jaxprof.hlo.analysis.collectives import Collective
    from jaxprof.hlo.analysis.findings.finding import HloFinding, Scene
    from jaxprof.hlo.model import Instruction

_ASKED_FOR: Final = ("shard_map", "pmap(", "xmap(")
"""Parts of the `op_name` of a collective that the program itself requests."""
_REARRANGING: Final = frozenset(
    {"convert", "copy", "transpose", "reshape", "bitcast-convert", "slice", "dynamic-slice", "get-tuple-element"}
)
_PARTS: Final = frozenset({"slice", "dynamic-slice", "pad", "concatenate"})
"""Opcodes with which a permute of a border (of a convolution, a roll) begins: they take a part of the array, which
keeps its sharding.
"""
_MOST: Final = 16


def resharded(scene: Scene) -> Iterator[HloFinding]:
    """Find arrays that XLA moves from the sharding in which one operation leaves them to that in which the next takes
    them.

    The partitioner's all-to-all moves the split from one dimension to another, its permute of a whole array moves the
    parts to other devices, and its all-gather makes an array whole. An argument counts only if the program does not
    return it in its own shape, because state that is split to save memory (FSDP) is gathered on purpose. Collectives
    whose array is a result do not count, nor do all-reduce and reduce-scatter, which add up.
    """
    module = scene.table.module
    root = module.entry.root if module.entry is not None else None
    given_back = {str(leaf.without_layout()) for leaf in root.shape.leaves()} if root is not None else set()
    resharding = [
        collective
        for collective in collectives(module)
        if total(collective.kernel) >= LARGE_BYTES
        and _is_partitioners(collective)
        and _reshards(collective, given_back)
    ]
    words = ", ".join(dict.fromkeys(collective.opcode for collective in resharding))
    yield from gather(
        "resharding",
        [collective.kernel for collective in resharding],
        "collective moves",
        "collectives move",
        f"arrays from one sharding to another ({words}): {{bytes}} a run",
    )


def _is_partitioners(collective: Collective) -> bool:
    """Return whether XLA made the collective from an operation of another kind. One without a name may have any
    origin."""
    name = collective.kernel.op_name
    return bool(name) and collective.kernel.path.primitive not in _OWN and not any(word in name for word in _ASKED_FOR)


_OWN: Final = frozenset(
    {
        "all_gather", "all_gather_invariant", "all_gather_reduced", "all_to_all", "collective_permute", "pgather",
        "pbroadcast", "ppermute", "psend", "precv", "psum", "psum_invariant", "psum_scatter", "ragged_all_to_all",
        "reduce_scatter", "unreduced_psum",
    }
)  # fmt: skip
"""JAX's own collective primitives."""


def _reshards(collective: Collective, given_back: set[str]) -> bool:
    instruction = collective.kernel.instruction
    if collective.opcode == "all-to-all":
        return True
    moved = _moved(instruction)
    if moved is None:
        return False
    if collective.opcode == "collective-permute":
        return moved.opcode not in _PARTS
    if collective.opcode != "all-gather" or _is_result(instruction):
        return False
    source = made_through(moved, _REARRANGING)
    if source is None or source.opcode not in ("parameter", "constant"):
        return True  # it was computed
    return source.fusions == () and str(source.shape.without_layout()) not in given_back


def _moved(instruction: Instruction) -> Value | None:
    """Return the array that a collective takes; None if it is in a fusion or an asynchronous call, whose inside shows
    it."""
    if instruction.opcode in ("fusion", "async-start") or not instruction.operands:
        return None
    made_of = sources(Value(instruction))
    return made_of[0] if made_of else None


def _is_result(instruction: Instruction) -> bool:
    """Return whether only the program's result takes the array, so that its sharding was requested."""
    waiting, seen = [instruction], 0
    while waiting and seen < _MOST:
        current, seen = waiting.pop(), seen + 1
        if not current.users and not current.is_root:
            continue
        for user in current.users:
            if (
                not (user.is_root and user.opcode == "tuple")
                and user.opcode not in ("copy", "bitcast")
                and not (user.opcode.endswith("-done"))
            ):
                return False
            waiting.append(user)
    return True
