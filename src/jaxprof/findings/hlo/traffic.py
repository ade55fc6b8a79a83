"""Findings about arrays that are moved or held needlessly: copies, casts, broadcasts, padding, constants, arguments
that are updated without being donated, transfers to the host, and between two shardings.

Each function yields one finding at most.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Set
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from jaxprof.base.units import bytes_, counted, percent
from jaxprof.base.values import frozen
from jaxprof.events.finding import Finding
from jaxprof.findings.hlo.compute import TINY_BYTES
from jaxprof.findings.hlo.scene import LARGE_BYTES, Scene, check, join, join_sizes, lines_of, module_finding, total
from jaxprof.hlo.kernels import COLLECTIVES
from jaxprof.hlo.kernels.cost.library import is_any_product
from jaxprof.hlo.kernels.dataflow import Value, origin_through, resolve, same_elements, sources, upstream
from jaxprof.hlo.kernels.kernels import Kernel
from jaxprof.hlo.kernels.kinds import HOST_KINDS, generator_of, reorders, values_of
from jaxprof.hlo.shape import parse_shape
from jaxprof.hlo.text.model import Instruction

if TYPE_CHECKING:
    from jaxprof.hlo.kernels.collectives import Collective
    from jaxprof.hlo.kernels.flow import Passage

_AROUND = frozenset({"copy", "transpose", "reshape", "slice", "broadcast", "pad"})


def _only(scene: Scene, doing: Set[str], beside: Set[str]) -> list[Kernel]:
    """Return the kernels with large traffic that do one of these operations, and besides at most the others."""
    return [
        kernel
        for kernel in scene.kernels
        if total(kernel) >= LARGE_BYTES
        and kernel.name not in scene.explained
        and (opcodes := scene.opcodes(kernel)) & doing
        and opcodes <= doing | beside
    ]


@check(
    "kernels that only rewrite arrays in another order",
    "Producer and consumer want the dimensions in different orders, so the array is read and written once more.",
    "Let producer and consumer agree on the order of dimensions: transpose once, outside the hot path, or write "
    "the contraction so that it takes the array in its present order (einsum).",
    saves="all",
)
def layout_copy(scene: Scene) -> Iterator[Finding]:
    kernels: list[Kernel] = []
    for kernel in _only(scene, {"copy", "transpose"}, _AROUND):
        # XLA itself reorders an array for a convolution, which a program cannot change.
        near = (*kernel.instruction.users, *kernel.instruction.operand_instructions())
        beside = (scene.kernel_of.get(id(instruction)) for instruction in near)
        is_xlas = kernel.source is None and any(each.kind == "convolution" for each in beside if each is not None)
        if reorders(kernel.instruction) and not is_xlas:
            kernels.append(kernel)
    yield from join(kernels, "kernel only rewrites", "kernels only rewrite", "arrays in another order: {bytes} a call")


@check(
    "kernels that only change a dtype",
    "The array is read in one dtype and written in another, with nothing computed on the way.",
    "Keep the array in one dtype along the path, or cast where it is smallest; parameters that are cast at each "
    "step can be kept in the narrow dtype as well.",
    saves="all",
)
def dtype_convert(scene: Scene) -> Iterator[Finding]:
    kernels = _only(scene, {"convert"}, _AROUND)
    yield from join(kernels, "kernel only changes", "kernels only change", "the dtype of arrays: {bytes} a call")


@check(
    "a broadcast array is written out",
    "A small array is repeated in memory instead of inside the kernel that uses it.",
    "Pass the small array and let XLA broadcast it inside the kernel that uses it; library calls and sorts need "
    "whole arrays.",
    saves="all",
)
def broadcast_materialised(scene: Scene) -> Iterator[Finding]:
    """Find kernels that write a broadcast array to memory, at least sixteen times what they read."""
    kernels = [
        kernel
        for kernel in _only(scene, {"broadcast"}, {"reshape", "convert", "copy", "transpose"})
        if kernel.bytes_written >= LARGE_BYTES and kernel.bytes_read * 16 <= kernel.bytes_written
    ]
    # Those that another kernel reads, except the empty buffer that a loop or a scatter fills (or a copy of one).
    candidates = {id(kernel) for kernel in kernels}
    read = {
        id(passage.producer)
        for passage in (scene.flow if kernels else ())
        if id(passage.producer) in candidates
        and passage.bytes_read * 2 >= passage.producer.bytes_written
        and passage.consumer.kind not in ("scatter", "copy")
        and not passage.crossed
        and not _takes_whole_arrays(passage)
    }
    yield from join(
        [kernel for kernel in kernels if id(kernel) in read],
        "kernel writes",
        "kernels write",
        "a broadcast array to memory: {bytes} a call",
    )


def _takes_whole_arrays(passage: Passage) -> bool:
    """Return whether the array goes into a fusion that XLA:CPU hands to a library, which takes whole arrays for all but
    its product: a bias, a scale, a constant."""
    into = passage.consumer.instruction
    if generator_of(into) != "__ynn_fusion":
        return False
    operands = (each for value in values_of(into) if is_any_product(value.instruction) for each in sources(value)[:2])
    return all(operand.outermost is not passage.producer.instruction for operand in operands)


@check(
    "kernels that only pad",
    "An array is copied to a larger one, to fill a tile or for a convolution.",
    "Choose sizes that need no padding, or pad once, outside the hot path.",
    saves="all",
)
def padding(scene: Scene) -> Iterator[Finding]:
    kernels = _only(scene, {"pad"}, {"copy", "transpose", "reshape", "slice"})
    yield from join(kernels, "kernel only pads", "kernels only pad", "arrays: {bytes} a call")


_CONSTANT = re.compile(r"(?<![^\s%])([^\s%=]++)\s*+=\s*+(\w+\[[\d,]*+\](?:\{[^{}]*+\})?)\s*+constant\(")


@check(
    "an array is part of the program",
    "A closed-over array became a constant: every compilation copies it, and folding it can take minutes.",
    "Pass the array as an argument.",
    holds=True,
    unfused=True,
)
def large_constant(scene: Scene) -> Iterator[Finding]:
    module = scene.module
    sizes: list[tuple[int, str]] = []
    # Found in the text, because nothing else needs all instructions of a module.
    for name, shape in _CONSTANT.findall(module.source.text, *module.span):
        with suppress(ValueError):  # an array that cannot exist
            if (size := parse_shape(shape).bytes) >= LARGE_BYTES:
                sizes.append((size, name))
    yield from join_sizes(sizes, "constant is", "constants are", "baked into the program: {bytes}")


_WHOLE = re.compile(r"TopK|(sy|he)evd")
"""Custom calls with results that no caller can leave out: JAX asks for eigenvectors in `eigvalsh`, too."""
_VALUES_ONLY = re.compile(r"\b(mode|compute_\w+) = (78 : ui8|false)")
"""In the settings of a decomposition: its vectors are not computed, their arrays are its workspace (78 is `N`)."""


@check(
    "results that nothing reads",
    "A kernel writes arrays that neither another kernel nor the caller reads.",
    "Compute only what is used, as a decomposition without its vectors.",
)
def unused_output(scene: Scene) -> Iterator[Finding]:
    sizes: list[tuple[int, str]] = []
    for kernel in scene.kernels:
        instruction = kernel.instruction
        members = instruction.shape.tuple_shapes
        if len(members) < 2 or kernel.asynchronous or instruction.is_root:
            continue
        if kernel.kind == "sort":  # an argsort needs its keys, though nothing reads them; XLA drops an unread payload
            continue
        users = instruction.users
        if any(user.opcode != "get-tuple-element" for user in users):
            continue
        settings = instruction.attributes.get("backend_config", "")
        if _WHOLE.search(instruction.string("custom_call_target")) or _VALUES_ONLY.search(settings):
            continue
        used = {index for user in users if user.users or user.is_root for index in user.integers("index")}
        scratch = len(members) - 1 if members[-1].dtype in ("s8", "u8") and members[-1].rank == 1 else len(members)
        size = sum(shape.bytes for number, shape in enumerate(members[:scratch]) if number not in used)
        if size * (kernel.count or 1) >= LARGE_BYTES:
            sizes.append((size * (kernel.count or 1), kernel.name))
    yield from join_sizes(sizes, "kernel writes", "kernels write", "results that nothing reads: {bytes} a call")


@check(
    "kernels that exchange data with the host",
    "A callback or infeed inside the program stops the device until the host has answered; arrays in the host's "
    "memory are copied in each call.",
    "Keep the loop on the device: call back less often, or after the step; move arrays from the host's memory "
    "(pinned_host) to the device if they fit.",
    saves="all",
    unfused=True,
)
def host_transfer(scene: Scene) -> Iterator[Finding]:
    kernels = [kernel for kernel in scene.kernels if kernel.kind in HOST_KINDS]
    # a copy reads on one side what it writes on the other
    sizes = [(total(each) // (1 + each.instruction.opcode.startswith("copy")), each.name) for each in kernels]
    yield from join_sizes(sizes, "kernel exchanges", "kernels exchange", "data with the host: {bytes} a call")


UPDATED_BYTES = 16 << 20
"""Memory of replaced arguments from which their donation is worth reporting."""
_UPDATED = 2
"""Number of arguments updated element by element that identify a step, which replaces its state, rather than a function
of an array. One that is updated in place is a state.
"""
COPIED_SHARE = 0.1
"""Share of the program's traffic from which the copies of arguments that are not donated are worth reporting."""
_IN_PLACE = frozenset({"dynamic-update-slice", "scatter"})


@check(
    "a step holds its old state beside the new one",
    "Results that update arguments could take their memory. Without donation both are held, which can be half of the "
    "device's memory, and an argument that is updated in place (a cache, a buffer) is copied whole before.",
    "Donate the arguments that are replaced: jax.jit(step, donate_argnums=...) lets a result reuse the memory of "
    "the argument that it updates. Only if the caller does not use the old array again.",
    saves="all",
)
def lost_donation(scene: Scene) -> Iterator[Finding]:
    module = scene.module
    root = module.entry.root if module.entry is not None else None
    if root is None or "buffer_donor" in module.attributes:
        return
    results = enumerate(root.operand_instructions()) if root.opcode == "tuple" else [(-1, root)]
    taken = set(module.aliases.values())
    updates: list[_Update] = []
    for number, result in results:
        update = None if ((number,) if number >= 0 else ()) in module.aliases else _update_of(result, taken)
        if update is not None:
            taken.add(update.argument.parameter_number or 0)
            updates.append(update)
    copying = {name for update in updates for name in update.copies}
    copies = sorted((kernel for kernel in scene.kernels if kernel.name in copying), key=total, reverse=True)
    copied, moved = sum(map(total, copies)), sum(map(total, scene.kernels))
    held = sum(update.argument.shape.bytes for update in updates)
    is_state = len(updates) >= _UPDATED or any(update.value.opcode in _IN_PLACE for update in updates)
    # Beside a loop of unknown length, the share of what runs once is unknown.
    known = all(kernel.count is not None for kernel in scene.kernels)
    costly = known and copied > 0 and copied >= COPIED_SHARE * sum(map(scene.work, scene.kernels))
    if not costly and (not is_state or held < UPDATED_BYTES):
        return
    scene.explained |= copying
    updates.sort(key=lambda update: -update.argument.shape.bytes)
    arguments = dict.fromkeys(update.argument.metadata.op_name.partition("[")[0] for update in updates)
    whose = counted(len(updates), "result updates an argument that is", "results update arguments that are")
    message = f"{whose} not donated: {bytes_(held)} more memory"
    if copied and known:
        message += f", and copies that move {bytes_(copied)} a call, {percent(copied / moved)} of the program's traffic"
    names = tuple(kernel.name for kernel in copies) if costly else tuple(update.argument.name for update in updates)
    fix = None
    if all(name.isidentifier() for name in arguments):
        named = module.name.removeprefix("jit_").strip("_") if module.name.startswith("jit_") else ""
        listed = ", ".join(f'"{name}"' for name in arguments)
        fix = (
            f"Donate what is replaced: jax.jit({named or 'step'}, donate_argnames=({listed},)). Each result then takes "
            "the memory of the argument that it updates, without a copy. Only if the caller does not use the old "
            "array again."
        )
    yield replace(
        module_finding(message, names, copied if costly else held),
        held=not costly,
        own_fix=fix,
        places=lines_of(update.value for update in updates),
    )


@frozen
class _Update:
    """A result that updates an argument."""

    argument: Instruction
    value: Value
    """The operation that gives the result."""
    copies: tuple[str, ...]
    """Names of the copies of the whole array between the two, if it is updated in place."""


_COPYING = frozenset({"copy", "copy-start"})
_ENTERED = frozenset({"fusion", "call"})
_MOST_STEPS = 64
"""Most copies, and most loops, between a result and the argument that it updates."""


def _update_of(result: Instruction, taken: Set[int]) -> _Update | None:
    value, copies = resolve(Value(result), _ENTERED), []
    for _ in range(_MOST_STEPS):  # a damaged text may lead in a circle
        if value is None or value.opcode not in _COPYING:
            break
        copies.append(value)  # a TPU's update may be on the chip
        value = next(iter(sources(value)), None)
    start = value
    for _ in range(_MOST_STEPS):
        if start is None or start.opcode != "while":
            break
        state = start.instruction.operand(0)
        start = resolve(Value(state, start.member, start.fusions), _ENTERED) if state is not None else None
    if value is None or start is None or value.opcode == "parameter" or value.shape.bytes < LARGE_BYTES:
        return None
    for source in upstream(start, _keeps_elements):
        if source.opcode in _COPYING:
            copies.append(source)
        elif source.opcode == "parameter" and not source.fusions and source.shape.dtype == value.shape.dtype:
            number = source.instruction.parameter_number
            if number is not None and number not in taken:
                in_place = value.opcode in _IN_PLACE | {"while"}
                return _Update(source.instruction, value, tuple(copy.instruction.name for copy in copies if in_place))
    return None


def _keeps_elements(value: Value, operand: Value) -> bool:
    """Return whether the value is computed element by element from the operand, or is the operand with an update."""
    if value.opcode == "async-start" or value.instruction.string("custom_call_target") == "ConcatBitcast":
        return True  # a TPU brings a large array to the chip in slices
    # The result of an asynchronous copy is the first member of its tuple.
    before, after = ((array.shape.tuple_shapes or (array.shape,))[0].elements for array in (operand, value))
    return same_elements(value, operand) or (value.opcode in _IN_PLACE | _COPYING and before == after)


_COPY_SHARE = 0.5
"""Share of the program's work from which plain copies are worth reporting. XLA copies a loop's state once in each
iteration that needs all of it, which is some 40 % of a stencil's traffic.
"""
_BY_CONCATENATION = (
    "Write the new part into an array that is long enough, in place of concatenating: buf.at[i].set(x) in a loop, or "
    "with buf donated. For a window of the last n, write at i % n and keep i."
)
_IN_LOOP = (
    "An iteration makes a new array while it reads the former one, or hands one on under another name, and XLA copies "
    "it to its place. Let one iteration do two steps, after which arrays are back in their own places: "
    "scan(..., unroll=2), fori_loop(..., unroll=2), or the step twice in the body."
)


@check(
    "much of the traffic only copies arrays",
    "Kernels read arrays and write them elsewhere, in the same order, with nothing computed.",
    "Look for what keeps the former array alive at the line: an argument that is not donated, a value that is used "
    "after its update, or an array that is returned twice.",
    saves="all",
)
def copy_traffic(scene: Scene) -> Iterator[Finding]:
    """Find plain copies and concatenations, besides those of other checks, which reorder dimensions, precede an update
    in place, or keep the state of a loop."""
    kernels = [
        kernel
        for kernel in _only(scene, {"copy", "concatenate"}, {"slice", "dynamic-slice", "reshape"})
        if kernel.bytes >= TINY_BYTES
        and kernel.name not in scene.explained
        and not kernel.asynchronous  # prefetches of a TPU
        and kernel.kind not in HOST_KINDS
        and not reorders(kernel.instruction)
        and not (kernel.instruction.computation.is_entry and all(user.is_root for user in kernel.instruction.users))
    ]
    if not kernels or sum(map(scene.work, kernels)) < _COPY_SHARE * sum(map(scene.work, scene.kernels)):
        return
    kernels.sort(key=scene.work, reverse=True)
    around = [scene.callers[kernel.computation] for kernel in kernels if kernel.computation in scene.callers]
    concatenating = "concatenate" in scene.opcodes(kernels[0])
    copied, moved = sum(map(total, kernels)), sum(map(total, scene.kernels))
    whose = counted(len(kernels), "kernel only copies", "kernels only copy")
    own_fix = _IN_LOOP if around else None
    if concatenating:
        own_fix = _BY_CONCATENATION
    yield replace(
        module_finding(
            f"{whose} arrays: {bytes_(copied)} a call, {percent(copied / moved)} of the program's traffic",
            tuple(kernel.name for kernel in kernels),
            copied,
        ),
        own_fix=own_fix,
        # XLA's own copies have no line: those beside them, and the loop, have one.
        places=lines_of(
            Value(near)
            for instruction in (kernel.instruction for kernel in kernels)
            for near in (instruction, *instruction.users, *instruction.operand_instructions(), *around)
        ),
    )


# -- between shardings -------------------------------------------------------------------------------------------------

# Derived from the collectives that XLA's partitioner made. Collectives that the program requests (`psum`, `all_gather`,
# `ppermute`, ... in `shard_map` or `pmap`) carry the name of their primitive, and are not reported.

_REQUESTED = ("shard_map", "pmap(", "xmap(")
"""Parts of the `op_name` of a collective that the program itself requests."""
_REARRANGING = frozenset(
    {"convert", "copy", "transpose", "reshape", "bitcast-convert", "slice", "dynamic-slice", "get-tuple-element"}
)
_PARTS = frozenset({"slice", "dynamic-slice", "pad", "concatenate"})
"""Opcodes with which a permute of a border (of a convolution, a roll) begins: they take a part of the array, which
keeps its sharding.
"""
_MOST = 16


@check(
    "arrays move between shardings",
    "One operation leaves an array split in one way, and the next takes it split in another, or whole: XLA's "
    "partitioner inserts an all-to-all, a permute or an all-gather between them.",
    "Let the operations on both sides split the array along the same dimension: give parameters, inputs and "
    "jax.lax.with_sharding_constraint the same axes, or split a dimension that the operation does not work over. "
    "If resharding is needed, do it where the array is smallest or has the narrowest dtype.",
    saves="part",
)
def resharding(scene: Scene) -> Iterator[Finding]:
    """Find arrays that XLA moves from the sharding in which one operation leaves them to that in which the next takes
    them.

    The partitioner's all-to-all moves the split from one dimension to another, its permute of a whole array moves the
    parts to other devices, and its all-gather makes an array whole. An argument counts only if the program does not
    return it in its own shape, because state that is split to save memory (FSDP) is gathered on purpose. Collectives
    whose array is a result do not count, nor do all-reduce and reduce-scatter, which add up.
    """
    if all(kernel.kind not in COLLECTIVES for kernel in scene.kernels):
        return
    from jaxprof.hlo.kernels.collectives import collectives  # not for the programs of one device

    module = scene.module
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
    yield from join(
        [collective.kernel for collective in resharding],
        "collective moves",
        "collectives move",
        f"arrays from one sharding to another ({words}): {{bytes}} a call",
    )


def _is_partitioners(collective: Collective) -> bool:
    """Return whether XLA made the collective from an operation of another kind. One without a name may have any
    origin."""
    name = collective.kernel.op_name
    return bool(name) and collective.kernel.path.primitive not in _OWN and not any(word in name for word in _REQUESTED)


_OWN = frozenset(
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
    # the inside of a fusion or an asynchronous call shows the array
    is_shown = instruction.opcode not in ("fusion", "async-start") and bool(instruction.operands)
    moved = next(iter(sources(Value(instruction))), None) if is_shown else None
    if moved is None:
        return False
    if collective.opcode == "collective-permute":
        return moved.opcode not in _PARTS
    if collective.opcode != "all-gather" or _is_result(instruction):
        return False
    source = origin_through(moved, _REARRANGING)
    if source is None or source.opcode not in ("parameter", "constant"):
        return True  # it was computed
    return source.fusions == () and str(source.shape.without_layout()) not in given_back


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
