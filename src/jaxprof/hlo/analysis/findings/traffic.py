"""Findings about arrays that are moved needlessly: copies, casts, broadcasts, padding, constants, transfers to the
host.
"""

from __future__ import annotations

import re
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from jaxprof.hlo.analysis.findings.finding import LARGE_BYTES, gather, gather_sizes, total
from jaxprof.hlo.analysis.kinds import HOST_KINDS, reorders
from jaxprof.hlo.shape import parse_shape

if TYPE_CHECKING:
    from collections.abc import Iterator, Set

    from jaxprof.hlo.analysis.findings.finding import HloFinding, Scene
    from jaxprof.hlo.analysis.flow import Flow
    from jaxprof.hlo.analysis.kernels import Kernel


_AROUND: Final = frozenset({"copy", "transpose", "reshape", "slice", "broadcast", "pad"})


def _only(scene: Scene, doing: Set[str], beside: Set[str]) -> list[Kernel]:
    """Return the kernels with large traffic that do one of these operations, and besides at most the others."""
    return [
        kernel
        for kernel in scene.kernels
        if total(kernel) >= LARGE_BYTES and (opcodes := scene.opcodes(kernel)) & doing and opcodes <= doing | beside
    ]


def layout_copies(scene: Scene) -> Iterator[HloFinding]:
    kernels = [kernel for kernel in _only(scene, {"copy", "transpose"}, _AROUND) if reorders(kernel.instruction)]
    yield from gather(
        "layout-copy", kernels, "kernel only rewrites", "kernels only rewrite", "arrays in another order: {bytes} a run"
    )


def converts(scene: Scene) -> Iterator[HloFinding]:
    kernels = _only(scene, {"convert"}, _AROUND)
    yield from gather(
        "dtype-convert", kernels, "kernel only changes", "kernels only change", "the dtype of arrays: {bytes} a run"
    )


def broadcasts(scene: Scene) -> Iterator[HloFinding]:
    kernels = [
        kernel
        for kernel in _only(scene, {"broadcast"}, {"reshape", "convert", "copy", "transpose"})
        if kernel.bytes_written >= LARGE_BYTES and kernel.bytes_read * 16 <= kernel.bytes_written
    ]
    yield from gather(
        "broadcast-materialised",
        _read_whole(scene.flow, kernels) if kernels else [],
        "kernel writes",
        "kernels write",
        "a broadcast array to memory: {bytes} a run",
    )


def _read_whole(flow: Flow, kernels: list[Kernel]) -> list[Kernel]:
    """Return the broadcasts that another kernel reads, except the empty buffer that a loop or a scatter fills (or a
    copy of one)."""
    candidates = {id(kernel) for kernel in kernels}
    read = {
        id(passage.producer)
        for passage in flow.passages
        if id(passage.producer) in candidates
        and passage.bytes_read * 2 >= passage.producer.bytes_written
        and passage.consumer.kind not in ("scatter", "copy")
        and not passage.value.crossed
    }
    return [kernel for kernel in kernels if id(kernel) in read]


def padding(scene: Scene) -> Iterator[HloFinding]:
    kernels = _only(scene, {"pad"}, {"copy", "transpose", "reshape", "slice"})
    yield from gather("padding", kernels, "kernel only pads", "kernels only pad", "arrays: {bytes} a run")


_CONSTANT = re.compile(r"([^\s%=]+)\s*+=\s*+(\w+\[[\d,]*+\](?:\{[^{}]*+\})?)\s*+constant\(")


def constants(scene: Scene) -> Iterator[HloFinding]:
    module = scene.table.module
    sizes: list[tuple[int, str]] = []
    # Found in the text, because nothing else needs all instructions of a module.
    for name, shape in _CONSTANT.findall(module.source.text, *module.span):
        with suppress(ValueError):  # an array that cannot exist
            if (size := parse_shape(shape).bytes) >= LARGE_BYTES:
                sizes.append((size, name))
    yield from gather_sizes("large-constant", sizes, "constant is", "constants are", "baked into the program: {bytes}")


def unused(scene: Scene) -> Iterator[HloFinding]:
    sizes: list[tuple[int, str]] = []
    for kernel in scene.kernels:
        instruction = kernel.instruction
        if kernel.results < 2 or kernel.asynchronous or instruction.is_root:
            continue
        members = instruction.shape.tuple_shapes
        users = instruction.users
        if any(user.opcode != "get-tuple-element" for user in users):
            continue
        used = {index for user in users if user.users or user.is_root for index in user.integers("index")}
        scratch = len(members) - 1 if members[-1].dtype in ("s8", "u8") and members[-1].rank == 1 else len(members)
        size = sum(shape.bytes for number, shape in enumerate(members[:scratch]) if number not in used)
        if size * (kernel.count or 1) >= LARGE_BYTES:
            sizes.append((size * (kernel.count or 1), kernel.name))
    yield from gather_sizes(
        "unused-output", sizes, "kernel writes", "kernels write", "results that nothing reads: {bytes} a run"
    )


def host(scene: Scene) -> Iterator[HloFinding]:
    kernels = [kernel for kernel in scene.kernels if kernel.kind in HOST_KINDS]
    yield from gather(
        "host-transfer", kernels, "kernel exchanges", "kernels exchange", "data with the host: {bytes} a run"
    )
