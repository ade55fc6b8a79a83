"""What is worth looking at in a module, as data: a code, a sentence with the figures, the fix, and where.

A finding states what is there, not that it is wrong: a layout copy may be the price of a faster GEMM. Thresholds are
constants with their reasons; anything below them is not reported.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from jaxprof.events import SourceLocation
from jaxprof.events.finding import Finding
from jaxprof.findings import rank
from jaxprof.findings.hlo import algorithms, compute, cpu, draws, loops, traffic, transforms
from jaxprof.findings.hlo.scene import Scene
from jaxprof.hlo.kernels.cost import NOTHING
from jaxprof.hlo.kernels.kernels import Kernel, totals
from jaxprof.hlo.kernels.kinds import platform_of
from jaxprof.hlo.text.model import Module, once_per_module

CHECKS = (
    algorithms.cumulative_sum, algorithms.complex_transform,
    traffic.layout_copy, traffic.dtype_convert, compute.float64,
    traffic.broadcast_materialised, compute.tiny_kernels, traffic.padding, compute.odd_sizes, compute.few_rows,
    compute.rematerialisation, traffic.large_constant, traffic.unused_output, traffic.host_transfer,
    compute.small_loop_body, compute.attention_scores, algorithms.whole_sort, algorithms.inverse_product,
    algorithms.product_order, algorithms.diagonal_product, algorithms.direct_convolution, cpu.unvectorised,
    algorithms.binary_search,
    traffic.lost_donation, compute.upcast_product, compute.precise_product, traffic.resharding,
    transforms.grouped_convolution, transforms.small_decompositions, transforms.column_gather,
    transforms.one_hot_product, draws.random_bits, draws.rejection_sampling, transforms.costly_backward,
    loops.whole_carry, loops.both_branches, loops.longest_lane, traffic.copy_traffic,
)  # fmt: skip


@once_per_module
def findings(module: Module) -> tuple[Finding, ...]:
    """Return what is worth looking at in a module, with its line and its share of the traffic, those first that cost
    most."""
    found = tuple(findings_on(module, platform_of(module)))
    traffic = totals(module) if found else NOTHING
    whole = 0 if traffic.unsized else traffic.bytes
    with_shares = (
        replace(each, share=min(1.0, each.bytes / whole)) if each.bytes and not each.held and whole else each
        for each in found
    )
    return tuple(sorted(with_shares, key=rank))


def line_of(kernels: Iterable[Kernel]) -> SourceLocation | None:
    source = next((kernel.source for kernel in kernels if kernel.source is not None), None)
    return SourceLocation(source.file, source.line) if source is not None else None


def findings_on(module: Module, platform: str) -> Iterator[Finding]:
    """Yield what is worth looking at in a module on a platform: `cpu`, `gpu`, `tpu`."""
    scene = Scene(module, platform)
    for check in CHECKS:
        if module.is_optimised or check.unfused:
            for found in check.find(scene):
                its = (scene.kernel_named[name] for name in found.kernels if name in scene.kernel_named)
                places = found.places or tuple(filter(None, (line_of(its),)))
                yield replace(check.complete(found), held=found.held or check.holds, places=places)
