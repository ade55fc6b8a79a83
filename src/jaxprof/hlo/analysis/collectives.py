"""Collectives of a module: bytes, groups, and the least time that the links of a device allow.

The time is that of the best known algorithm with all links of a chip in use: a ring sends (n - 1) / n of the whole
array for an all-gather, reduce-scatter or all-to-all, and twice that for an all-reduce. Latency, topology and
contention are not in it: a lower bound, and an estimate.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

from jaxprof.hlo.analysis.kinds import is_collective
from jaxprof.hlo.analysis.opcodes import base_opcode

if TYPE_CHECKING:
    from jaxprof.hlo.analysis.devices import Device
    from jaxprof.hlo.analysis.kernels import Kernel, KernelTable
    from jaxprof.hlo.model import Instruction


NETWORK = (50e9, "network between hosts (400 Gb/s a device, assumed)")
"""What a GPU's share of the network between hosts is taken for: one NDR InfiniBand port for each, as in the vendors'
reference designs. The program does not say what the cluster has."""


@dataclass(frozen=True, slots=True)
class Collective:
    """One collective kernel."""

    kernel: Kernel
    group_size: int | None
    """Devices that take part in one group; None where the text does not say (all of them)."""
    bytes: int
    """The whole array that is exchanged: what is gathered, reduced, or sent."""
    sent_fraction: float | None
    """How many times `bytes` a device sends at the least; None where the group's size is not known."""

    @property
    def opcode(self) -> str:
        return self.kernel.opcode

    def least_seconds(self, device: Device, devices_per_host: int | None = None) -> float | None:
        """One execution over the slowest links that it crosses; None where these, or the group's size, are not known.

        `devices_per_host`: with it, a larger group crosses the network between hosts.
        """
        bandwidth, _ = self.link(device, devices_per_host)
        if bandwidth is None or self.sent_fraction is None:
            return None
        return self.bytes * self.sent_fraction / bandwidth

    def link(self, device: Device, devices_per_host: int | None = None) -> tuple[float | None, str]:
        """Bytes a second that a device sends over the slowest link that is crossed, and that link's name."""
        if devices_per_host is not None and self.group_size is not None and self.group_size > devices_per_host:
            return NETWORK
        return device.link_bandwidth, device.link


_GROUPS = re.compile(r"\{\{([\d,\s]*)\}")
_MESH = re.compile(r"mesh\[(?P<axes>[^\]]*)\]\s*\{(?P<chosen>[^}]*)\}")
_AXIS = re.compile(r"'([^']*)'=(\d{1,9})")
_NAME = re.compile(r"'([^']*)'")
_IOTA = re.compile(r"\[([\d,]+)\]<=")


def collectives(table: KernelTable) -> tuple[Collective, ...]:
    """The collectives of a module in the order of execution."""
    return tuple(
        _collective(kernel, launch.instruction)
        for kernel, launch in zip(table.kernels, table.launches, strict=True)
        if is_collective(kernel.kind)
    )


def _collective(kernel: Kernel, instruction: Instruction) -> Collective:
    inner = _itself(instruction)
    size = group_size(inner)
    return Collective(kernel, size, _exchanged(inner), _fraction(kernel.kind, size))


def _exchanged(inner: Instruction) -> int:
    """Bytes of the whole array: of an all-gather the result, else what is given.

    From the shapes and not from the kernel's traffic, as the array may lie in on-chip memory and travels all the same.
    """
    given = sum(operand.shape.bytes for operand in inner.operand_instructions())
    if base_opcode(inner.opcode) != "all-gather":
        return given
    shape = inner.shape
    starts = inner.opcode.endswith("-start") and len(shape.tuple_shapes) > 1
    return shape.tuple_shapes[1].bytes if starts else shape.bytes


def _itself(instruction: Instruction) -> Instruction:
    """The collective in an asynchronous start that wraps it."""
    if instruction.opcode == "async-start":
        for computation in instruction.called_computations():
            if computation.root is not None:
                return computation.root
    return instruction


def _fraction(kind: str, size: int | None) -> float | None:
    if kind in ("collective-permute", "collective-broadcast"):
        return 1.0
    if size is None:
        return None
    part = (size - 1) / size if size else 0.0
    return 2 * part if kind == "all-reduce" else part


def group_size(instruction: Instruction) -> int | None:
    """Devices in one replica group, from `{{0,1},{2,3}}`, `[2,4]<=[8]` or `mesh['x'=4,'y'=2] {'x'}`.

    No groups mean that all take part: then the module's header says how many; None where it does not.
    """
    raw = instruction.attributes.get("replica_groups", "")
    if mesh := _MESH.match(raw):
        axes = {name: int(size) for name, size in _AXIS.findall(mesh["axes"])}
        chosen = [axes.get(name) for name in _NAME.findall(mesh["chosen"])]
        return prod(size for size in chosen if size is not None) if chosen and None not in chosen else None
    if listed := _GROUPS.match(raw):
        return len([number for number in listed[1].split(",") if number.strip()]) or None
    if iota := _IOTA.match(raw):
        sizes = [int(number) for number in iota[1].split(",") if number and len(number) < 10]
        return prod(sizes[1:]) if len(sizes) > 1 else None
    return _all_devices(instruction) if raw.strip() in ("", "{}") else None


def _all_devices(instruction: Instruction) -> int | None:
    header = instruction.computation.module.attributes
    counts = [header.get(name, "") for name in ("num_partitions", "replica_count")]
    known = [int(count) for count in counts if count.isdecimal() and len(count) < 10]
    return prod(known) if known else None
