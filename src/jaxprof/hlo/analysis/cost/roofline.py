"""The roofline of a kernel on a device: the least time that it could take, and what bounds it.

Williams, Waterman and Patterson, "Roofline" (CACM 52(4), 2009): a kernel that computes F FLOPs and moves B bytes takes
at least max(F / peak, B / bandwidth). The ceilings are the vendor's (`peaks` beside this file) or those measured on the
machine. It is a bound, not a forecast: it ignores launch overhead, latency, caches, and transcendentals, whose rate no
vendor states.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from jaxprof.hlo.analysis.cost.peaks import DevicePeaks

if TYPE_CHECKING:
    from collections.abc import Mapping

    from jaxprof.hlo.analysis.kernels import Kernel


@dataclass(frozen=True, slots=True)
class Roofline:
    """One execution of a kernel under a device's ceilings."""

    least_seconds: float | None
    """Least seconds; None if neither bytes nor FLOPs give a bound."""
    bound: str
    """`memory`, `compute`, or empty if unknown: FLOPs or the ceiling are unknown or an estimate."""
    intensity: float | None
    """FLOPs per byte."""
    ridge: float | None
    """Intensity at which the device's two ceilings meet; a kernel below it is bound by memory."""
    peak: float | None
    """Ceiling in FLOP/s for this kernel's dtype."""
    attainable: float | None
    """Most FLOP/s that the kernel can reach: the lower ceiling at its intensity."""


def roofline(kernel: Kernel, device: DevicePeaks) -> Roofline:
    """Place `kernel` under the ceilings of `device`."""
    peak = device.peak(kernel.dtype, matrix=kernel.uses_matrix_units, precision=kernel.precision or "default")
    memory_seconds = kernel.bytes / device.bandwidth
    ridge = peak / device.bandwidth if peak else None
    intensity = kernel.intensity
    # Estimated FLOPs are those of one algorithm: a radix sort compares nothing, so they bound nothing.
    if kernel.flops is None or kernel.estimated or (peak is None and kernel.flops > 0):
        return Roofline(memory_seconds or None, "", intensity, ridge, peak, None)
    compute_seconds = kernel.flops / peak if peak else 0.0
    bound = "compute" if compute_seconds > memory_seconds else "memory"
    attainable = None
    if peak and intensity is not None:
        attainable = min(peak, intensity * device.bandwidth)
    return Roofline(max(compute_seconds, memory_seconds) or None, bound, intensity, ridge, peak, attainable)


def with_measured(
    device: DevicePeaks, source: str, bandwidth: float | None, products: Mapping[str, float]
) -> DevicePeaks:
    """Return `device` with measured ceilings in place of the vendor's: B/s, and FLOP/s of products by dtype. `source`
    says how they were measured."""
    return replace(
        device,
        bandwidth=bandwidth or device.bandwidth,
        matrix={**device.matrix, **products},
        source=f"{device.source}; {source}",
    )


def measured_device(
    name: str, source: str, memory_bytes: int, bandwidth: float, peaks: Mapping[str, float]
) -> DevicePeaks:
    """Return a device that is in no table (a CPU), from measured ceilings: B/s, and FLOP/s by dtype. `source` says how
    they were measured."""
    return DevicePeaks(name, name, "", memory_bytes, bandwidth, dict(peaks), dict(peaks), None, "", source)
