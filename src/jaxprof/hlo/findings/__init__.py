"""What is worth looking at in a module, as data: a code, a sentence with the figures, the fix, and where.

A finding states what is there, not that it is wrong: a layout copy may be the price of a faster GEMM. Thresholds are
constants with their reasons; anything below them is not reported.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from jaxprof.finding import Finding
from jaxprof.hlo.findings import compute, traffic
from jaxprof.hlo.findings.finding import Scene
from jaxprof.hlo.kernels.kinds import platform_of
from jaxprof.hlo.text.model import Module, once_per_module

_CHECKS: tuple[Callable[[Scene], Iterator[Finding]], ...] = (
    traffic.layout_copies, traffic.converts, compute.float64, traffic.broadcasts, compute.tiny, traffic.padding,
    compute.odd_sizes, compute.rematerialised, traffic.constants, traffic.unused, traffic.host, compute.loops,
    compute.attention_scores, traffic.lost_donation, compute.upcast_products, compute.precise_products,
    traffic.resharded,
)  # fmt: skip
_BEFORE_OPTIMISATION = (compute.rematerialised, traffic.constants, traffic.host)
"""Findings that apply to a module in which nothing is fused yet."""


@once_per_module
def findings(module: Module) -> tuple[Finding, ...]:
    """Return what is worth looking at in a module, in the order of `_CHECKS`."""
    return tuple(findings_on(module, platform_of(module)))


def findings_on(module: Module, platform: str) -> Iterator[Finding]:
    """Yield what is worth looking at in a module on a platform: `cpu`, `gpu`, `tpu`."""
    scene = Scene(module, platform)
    for check in _CHECKS if module.is_optimised else _BEFORE_OPTIMISATION:
        yield from check(scene)
