"""What is worth looking at in a module, as data: a code, a sentence with the figures, advice, and where.

A finding says what is there, not that it is wrong: a layout copy may be the price of a faster GEMM. Thresholds are
constants with their reasons; what lies below them is not told.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from jaxprof.hlo.analysis import findings_compute as compute
from jaxprof.hlo.analysis import findings_traffic as traffic
from jaxprof.hlo.analysis.platform import is_optimised, platform_of
from jaxprof.hlo.analysis.scene import Scene

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from jaxprof.hlo.analysis.finding import Finding
    from jaxprof.hlo.analysis.flow import Flow
    from jaxprof.hlo.analysis.kernels import KernelTable

_LOOKS: Final[tuple[Callable[[Scene], Iterator[Finding]], ...]] = (
    traffic.layout_copies, traffic.converts, compute.float64, traffic.broadcasts, compute.tiny, traffic.padding,
    compute.odd_sizes, compute.rematerialised, traffic.constants, traffic.unused, traffic.host, compute.loops,
)  # fmt: skip
_BEFORE_OPTIMISATION: Final = (compute.rematerialised, traffic.constants, traffic.host)
"""What can be told of a module in which nothing is fused yet."""


def findings(table: KernelTable, flow: Flow, platform: str = "") -> tuple[Finding, ...]:
    """The findings of a module, in the order of `ADVICE`.

    `platform` (`cpu`, `gpu`, `tpu`) is told from the text if it is not given.
    """
    scene = Scene(table, flow, platform or platform_of(table.module))
    looks = _LOOKS if is_optimised(table.module) else _BEFORE_OPTIMISATION
    return tuple(finding for look in looks for finding in look(scene))
