"""Findings about arrays that are moved without need: copies, casts, broadcasts, padding, constants, the host."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from jaxprof.hlo.analysis.finding import ADVICE, Finding
from jaxprof.hlo.analysis.layout import reorders
from jaxprof.hlo.analysis.scene import LARGE_BYTES, gather, total
from jaxprof.units import bytes_

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jaxprof.hlo.analysis.flow import Flow
    from jaxprof.hlo.analysis.kernels import Kernel
    from jaxprof.hlo.analysis.scene import Scene


_LAYOUT: Final = frozenset({"copy", "transpose"})
_AROUND: Final = frozenset({"copy", "transpose", "reshape", "slice", "broadcast", "pad"})


def layout_copies(scene: Scene) -> Iterator[Finding]:
    found = []
    for kernel, instruction in scene.pairs:
        opcodes = scene.opcodes(kernel, instruction)
        if total(kernel) >= LARGE_BYTES and opcodes & _LAYOUT and opcodes <= _AROUND and reorders(instruction):
            found.append(kernel)
    yield from gather("layout-copy", found, "{count} kernels only rewrite arrays in another order: {bytes} a run")


def converts(scene: Scene) -> Iterator[Finding]:
    found = [
        kernel
        for kernel, instruction in scene.pairs
        if total(kernel) >= LARGE_BYTES
        and "convert" in (opcodes := scene.opcodes(kernel, instruction))
        and opcodes <= _AROUND | {"convert"}
    ]
    yield from gather("dtype-convert", found, "{count} kernels only change the dtype of arrays: {bytes} a run")


def broadcasts(scene: Scene) -> Iterator[Finding]:
    found = []
    for kernel, instruction in scene.pairs:
        opcodes = scene.opcodes(kernel, instruction)
        if (
            kernel.bytes_written >= LARGE_BYTES
            and kernel.bytes_read * 16 <= kernel.bytes_written
            and "broadcast" in opcodes
            and opcodes <= {"broadcast", "reshape", "convert", "copy", "transpose"}
            and _is_read_whole(scene.flow, kernel)
        ):
            found.append(kernel)
    yield from gather("broadcast-materialised", found, "{count} kernels write out a broadcast array: {bytes} a run")


def _is_read_whole(flow: Flow, kernel: Kernel) -> bool:
    """Another kernel reads it: it is not the empty buffer that a loop or a scatter fills (or a copy of one)."""
    return any(
        passage.bytes_read * 2 >= kernel.bytes_written and passage.consumer.kind not in ("scatter", "copy")
        for passage in flow.passages
        if passage.producer is kernel and not passage.value.crossed
    )


def padding(scene: Scene) -> Iterator[Finding]:
    found = [
        kernel
        for kernel, instruction in scene.pairs
        if total(kernel) >= LARGE_BYTES
        and "pad" in (opcodes := scene.opcodes(kernel, instruction))
        and opcodes <= {"pad", "copy", "transpose", "reshape", "slice"}
    ]
    yield from gather("padding", found, "{count} kernels only pad arrays: {bytes} a run")


def constants(scene: Scene) -> Iterator[Finding]:
    found: list[tuple[int, str]] = []
    for computation in scene.table.module.computations.values():
        found += [
            (instruction.shape.bytes, instruction.name)
            for instruction in computation.instructions
            if instruction.opcode == "constant" and instruction.shape.bytes >= LARGE_BYTES
        ]
    if found:
        found.sort(reverse=True)
        size = sum(size for size, _ in found)
        message = f"{len(found)} constants of {bytes_(size)} are baked into the program"
        yield Finding("large-constant", message, ADVICE["large-constant"], tuple(name for _, name in found), size)


def unused(scene: Scene) -> Iterator[Finding]:
    found: list[tuple[int, str]] = []
    for kernel, instruction in scene.pairs:
        members = instruction.shape.tuple_shapes
        if len(members) < 2 or kernel.asynchronous or instruction.is_root:
            continue
        users = instruction.users
        if any(user.opcode != "get-tuple-element" for user in users):
            continue
        used = {index for user in users if user.users or user.is_root for index in user.integers("index")}
        scratch = len(members) - 1 if members[-1].dtype in ("s8", "u8") and members[-1].rank == 1 else len(members)
        size = sum(shape.bytes for number, shape in enumerate(members[:scratch]) if number not in used)
        if size * (kernel.count or 1) >= LARGE_BYTES:
            found.append((size * (kernel.count or 1), kernel.name))
    if found:
        found.sort(reverse=True)
        size = sum(size for size, _ in found)
        message = f"{len(found)} kernels write results that nothing reads: {bytes_(size)} a run"
        yield Finding("unused-output", message, ADVICE["unused-output"], tuple(name for _, name in found), size)


_HOST_KINDS: Final = frozenset({"host callback", "transfer", "infeed", "outfeed"})


def host(scene: Scene) -> Iterator[Finding]:
    found = [kernel for kernel, _ in scene.pairs if kernel.kind in _HOST_KINDS]
    yield from gather("host-transfer", found, "{count} kernels exchange data with the host: {bytes} a run")
