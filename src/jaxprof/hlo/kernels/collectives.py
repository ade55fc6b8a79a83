"""Collectives of a module: what is exchanged, and which devices take part.

Groups of devices are read in each form that XLA writes: `{{0,1},{2,3}}`, `[2,4]<=[2,2,2]T(1,0,2)` (an iota, reshaped
and transposed), and `mesh['x'=4,'y'=2] {'x'}`, with or without `device_ids=([2,4]T(1,0))` for the order of its devices.
Nothing is guessed: what cannot be read is None.

How long an exchange takes depends on how the devices are connected: `jaxprof.devices.absent.least_time`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from math import prod

from jaxprof.base.values import frozen
from jaxprof.hlo.kernels import COLLECTIVES, base_opcode
from jaxprof.hlo.kernels.kernels import Kernel, kernels
from jaxprof.hlo.kernels.kinds import instructions_in
from jaxprof.hlo.text.model import Instruction, Module


@frozen
class Collective:
    kernel: Kernel
    opcode: str
    """Opcode of the collective, such as `all-reduce`, even if the kernel is a fusion around it."""
    groups: Groups | None
    """Numbers of the devices that exchange with each other; for a permute, the pairs of sender and receiver. None if
    the text does not say."""
    bytes: int
    """Bytes of the whole array that is gathered, reduced or sent."""

    @property
    def group_size(self) -> int | None:
        """Devices in the largest group; None if unknown, and for a permute, which has no groups."""
        if self.groups is None or self.opcode == "collective-permute":
            return None
        return max(len(group) for group in self.groups)


STARTS, FINISHES = "async-collective-start", "async-collective-done"
"""Names of the two fusions by which XLA for TPUs writes an asynchronous collective; each holds the collective."""


def collectives(module: Module) -> tuple[Collective, ...]:
    """Return the collectives of `module` with their bytes and groups, in execution order."""
    found: list[Collective] = []
    for kernel in kernels(module):
        if kernel.kind not in COLLECTIVES or kernel.name.startswith(FINISHES):
            continue
        instruction = inner = kernel.instruction
        if instruction.opcode == "fusion":
            held = instructions_in(instruction)
            inner = next((each for each in held if base_opcode(each.opcode) in COLLECTIVES), instruction)
        elif instruction.opcode == "async-start":
            inner = instruction.called_root or instruction
        opcode = base_opcode(inner.opcode)
        groups = pairs_of(inner) if opcode == "collective-permute" else groups_of(inner)
        if opcode == "all-reduce" and instruction.opcode == "fusion" and groups is not None:
            # XLA for TPUs writes a reduce-scatter as an all-reduce; each device keeps its part.
            parts = max(len(group) for group in groups)
            if parts > 1 and instruction.shape.elements * parts == inner.shape.elements:
                opcode = "reduce-scatter"
        found.append(Collective(kernel, opcode, groups, _whole_bytes(inner)))
    return tuple(found)


def _whole_bytes(inner: Instruction) -> int:
    """Return the bytes of the whole array: the result of an all-gather, else the operands.

    They come from the shapes, not from the kernel's traffic, because an array in on-chip memory is exchanged as well.
    """
    given = sum(operand.shape.bytes for operand in inner.operand_instructions())
    if base_opcode(inner.opcode) != "all-gather":
        return given
    shape = inner.shape
    starts = inner.opcode.endswith("-start") and len(shape.tuple_shapes) > 1
    return shape.tuple_shapes[1].bytes if starts else shape.bytes


Groups = tuple[tuple[int, ...], ...]
"""Numbers of the devices in each group."""

_MOST = 1 << 17
"""Most devices that are listed; a text may write any number."""
_MESH = re.compile(r"mesh\[(?P<axes>[^\]]*)\]")
_CHOSEN = re.compile(r"\{(?P<chosen>[^{}]*)\}\s*$")
_AXIS = re.compile(r"'([^']*)'=(\d{1,9})")
_QUOTED = re.compile(r"'([^']*)'")
_IOTA = re.compile(r"\[(?P<shape>[\d,]+)\]<=\[(?P<dimensions>[\d,]+)\](?:T\((?P<order>[\d,]+)\))?")
_ORDER = re.compile(r"\(\[(?P<dimensions>[\d,]+)\](?:T\((?P<order>[\d,]+)\))?\)")
_LISTED = re.compile(r"\{([\d,\s]*)\}")


def groups_of(instruction: Instruction) -> Groups | None:
    """Return the groups; one group of all devices if none are written and the module states their number. None if
    unknown."""
    raw = instruction.attributes.get("replica_groups", "").strip()
    if raw.startswith("mesh["):
        # The devices along the chosen axes, one group for each position along the others.
        ids = instruction.attributes.get("device_ids", "")
        mesh, chosen = _MESH.match(raw), _CHOSEN.search(ids or raw)
        if mesh is None or chosen is None:
            return None
        axes = {name: int(size) for name, size in _AXIS.findall(mesh["axes"])}
        sizes = tuple(axes.values())
        order = _ORDER.match(ids)
        if ids and order is None:
            return None
        devices = _device_order(_numbers(order["dimensions"]), order["order"]) if order else _device_order(sizes, None)
        wanted = _QUOTED.findall(chosen["chosen"])
        if devices is None or len(devices) != prod(sizes) or not wanted or not set(wanted) <= set(axes):
            return None
        if len(set(wanted)) < len(wanted):
            return None
        inner = [list(axes).index(name) for name in wanted]
        outer = [number for number in range(len(sizes)) if number not in inner]
        turned = _transpose(devices, sizes, (*outer, *inner))
        return _in_groups(turned, prod(sizes[number] for number in inner))
    if iota := _IOTA.match(raw):
        shape = _numbers(iota["shape"])
        devices = _device_order(_numbers(iota["dimensions"]), iota["order"])
        if devices is None or prod(shape) != len(devices) or len(shape) < 2:
            return None
        return _in_groups(devices, prod(shape[1:]))
    if raw in ("", "{}"):
        count = device_count(instruction)
        return (tuple(range(count)),) if count and count <= _MOST else None
    return _explicit_groups(raw)


def pairs_of(instruction: Instruction) -> Groups | None:
    """Return the senders and receivers of a collective-permute."""
    pairs = _explicit_groups(instruction.attributes.get("source_target_pairs", "")) or ()
    return tuple(pair for pair in pairs if len(pair) == 2) or None


def _explicit_groups(raw: str) -> Groups | None:
    groups = (tuple(_numbers(written)) for written in _LISTED.findall(raw))
    return tuple(group for group in groups if group) or None


def device_count(instruction: Instruction) -> int | None:
    """Return how many devices run the module, as its header says."""
    header = instruction.computation.module.attributes
    counts = [header.get(name, "") for name in ("num_partitions", "replica_count")]
    stated = [int(count) for count in counts if count.isdecimal() and len(count) < 10]
    return prod(stated) if stated else None


def _in_groups(devices: Sequence[int], size: int) -> Groups:
    return tuple(tuple(devices[at : at + size]) for at in range(0, len(devices), size))


def _device_order(dimensions: Sequence[int], order: str | None) -> list[int] | None:
    """Return the numbers from 0 in an array of these dimensions, read in another order of its dimensions."""
    if not 1 <= prod(dimensions) <= _MOST or not dimensions:
        return None
    numbers = list(range(prod(dimensions)))
    if not order:
        return numbers
    axes = _numbers(order)
    return _transpose(numbers, dimensions, axes) if sorted(axes) == list(range(len(dimensions))) else None


def _transpose(values: Sequence[int], sizes: Sequence[int], axes: Sequence[int]) -> list[int]:
    """Return `values`, an array of `sizes` row by row, with its dimensions in the order `axes`."""
    strides = [prod(sizes[number + 1 :]) for number in range(len(sizes))]
    offsets = [0]
    for axis in axes:
        offsets = [offset + step * strides[axis] for offset in offsets for step in range(sizes[axis])]
    return [values[offset] for offset in offsets]


def _numbers(text: str) -> list[int]:
    return [int(number) for number in text.split(",") if number.strip().isdecimal() and len(number.strip()) < 10]
