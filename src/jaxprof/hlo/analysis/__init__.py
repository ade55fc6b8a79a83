"""What a module's text tells about its kernels: what they are, what they cost, where they came from, why not fused.

    from jaxprof.hlo.analysis import kernels
    for kernel in kernels(module): ...

Pure functions over `jaxprof.hlo.model`; standard library only. Figures are counted from shapes (`docs/hlo.md` says
how), so they are the same on every machine; how long a kernel took is not told here, only how long it must take.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from jaxprof.hlo.analysis.barriers import Barrier
from jaxprof.hlo.analysis.barriers import barriers as _barriers
from jaxprof.hlo.analysis.collectives import Collective
from jaxprof.hlo.analysis.collectives import collectives as _collectives
from jaxprof.hlo.analysis.cost import Cost
from jaxprof.hlo.analysis.devices import DEVICES, Device, device, device_of_kind
from jaxprof.hlo.analysis.finding import Finding
from jaxprof.hlo.analysis.findings import findings as _findings
from jaxprof.hlo.analysis.fingerprint import Difference, diff, fingerprint
from jaxprof.hlo.analysis.flow import Flow
from jaxprof.hlo.analysis.kernels import Kernel, KernelTable, Totals
from jaxprof.hlo.analysis.origin import OpPath, Origin, Place, op_path, source_lines
from jaxprof.hlo.analysis.platform import platform_of
from jaxprof.hlo.analysis.roofline import Roofline, least_seconds, measured_device, roofline, with_measured
from jaxprof.hlo.analysis.tree import Row, text_tree, tree

if TYPE_CHECKING:
    from jaxprof.hlo.model import Instruction, Module

__all__ = [
    "DEVICES", "Barrier", "Collective", "Cost", "Device", "Difference", "Finding", "Kernel", "OpPath", "Origin",
    "Place", "Roofline", "Row", "Totals", "barriers", "collectives", "device", "device_of_kind", "diff", "findings",
    "fingerprint", "flow_of", "instruction_of", "kernels", "least_seconds", "measured_device", "op_path", "platform_of",
    "roofline", "source_lines", "text_tree", "totals", "tree", "with_measured",
]  # fmt: skip


class _Analysis:
    """What was already worked out about one module."""

    def __init__(self, module: Module) -> None:
        self.table = KernelTable(module)
        self._flow: Flow | None = None
        self._barriers: tuple[Barrier, ...] | None = None
        self._findings: dict[str, tuple[Finding, ...]] = {}

    @property
    def flow(self) -> Flow:
        if self._flow is None:
            self._flow = Flow(self.table)
        return self._flow

    def barriers(self) -> tuple[Barrier, ...]:
        if self._barriers is None:
            self._barriers = _barriers(self.table, self.flow)
        return self._barriers

    def findings(self, platform: str) -> tuple[Finding, ...]:
        if platform not in self._findings:
            self._findings[platform] = _findings(self.table, self.flow, platform)
        return self._findings[platform]


@lru_cache(maxsize=8)
def _of(module: Module) -> _Analysis:
    """The analysis of a module; the last few are kept, and keep their modules."""
    return _Analysis(module)


def kernels(module: Module) -> tuple[Kernel, ...]:
    """The kernels of `module` in the order of execution. Made once for each module; empty for one without entry."""
    return _of(module).table.kernels


def totals(module: Module) -> Totals:
    """What one run of `module` costs: loops multiplied, of a conditional the branch that costs most."""
    return _of(module).table.totals()


def barriers(module: Module) -> tuple[Barrier, ...]:
    """Why kernels that share an array are not one, those first that cost most bytes."""
    return _of(module).barriers()


def findings(module: Module, platform: str = "") -> tuple[Finding, ...]:
    """What is worth looking at. `platform` (`cpu`, `gpu`, `tpu`) is told from the text if it is not given."""
    return _of(module).findings(platform)


def flow_of(module: Module) -> Flow:
    """Which kernel reads what which other one wrote."""
    return _of(module).flow


def collectives(module: Module) -> tuple[Collective, ...]:
    """The collectives of `module` with their bytes and groups, in the order of execution."""
    return _collectives(_of(module).table)


def instruction_of(module: Module, kernel: Kernel) -> Instruction:
    """The instruction that a kernel of `module` is. Raises KeyError for a kernel of another module."""
    return module[kernel.computation][kernel.name]
