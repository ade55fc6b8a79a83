"""What the findings look at: a module's kernels with their instructions, its flow of arrays, its platform."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from jaxprof.hlo.analysis.finding import ADVICE, Finding
from jaxprof.hlo.analysis.kinds import fused
from jaxprof.hlo.analysis.opcodes import FREE
from jaxprof.units import bytes_

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from jaxprof.hlo.analysis.flow import Flow
    from jaxprof.hlo.analysis.kernels import Kernel, KernelTable
    from jaxprof.hlo.model import Instruction

LARGE_BYTES: Final = 1 << 20
"""A megabyte takes some 0.3 µs of an accelerator's bandwidth, less than a launch: below it traffic hardly matters."""


class Scene:
    """The module with what several findings ask for."""

    def __init__(self, table: KernelTable, flow: Flow, platform: str) -> None:
        self.table = table
        self.flow = flow
        self.platform = platform
        self.pairs: list[tuple[Kernel, Instruction]] = [
            (kernel, launch.instruction) for kernel, launch in zip(table.kernels, table.launches, strict=True)
        ]
        self._working: dict[tuple[str, str], frozenset[str]] = {}

    def opcodes(self, kernel: Kernel, instruction: Instruction) -> frozenset[str]:
        """The operations in a kernel, without what is free."""
        key = (kernel.computation, kernel.name)
        if key not in self._working:
            held = fused(instruction) if instruction.opcode == "fusion" else [instruction]
            self._working[key] = frozenset(inner.opcode for inner in held) - FREE
        return self._working[key]

    @property
    def on_accelerator(self) -> bool:
        return self.platform in ("gpu", "tpu")


def total(kernel: Kernel) -> int:
    return kernel.bytes * (kernel.count or 1)


def gather(code: str, found: Sequence[Kernel], sentence: str) -> Iterator[Finding]:
    """One finding over all the kernels that show it; `sentence` has places for their number and their bytes."""
    if not found:
        return
    ordered = sorted(found, key=lambda kernel: -total(kernel))
    moved = sum(total(kernel) for kernel in ordered)
    message = sentence.format(count=len(ordered), bytes=bytes_(moved))
    yield Finding(code, message, ADVICE[code], tuple(kernel.name for kernel in ordered), moved)
