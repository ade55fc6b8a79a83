"""The roofline of a kernel on a device: the least time that it could take, and what bounds it.

Williams, Waterman and Patterson, "Roofline" (CACM 52(4), 2009): a kernel that computes F FLOPs and moves B bytes takes
at least max(F / peak, B / bandwidth). The ceilings are the vendor's (`jaxprof.hlo.analysis.devices`) or those that were
measured on the machine. It is a bound, not a forecast: launch overhead, latency and caches are not in it, and
transcendentals, whose rate no vendor states, take no time in it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from jaxprof.hlo.analysis.devices import Device

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from jaxprof.hlo.analysis.kernels import Kernel


@dataclass(frozen=True, slots=True)
class Roofline:
    """A kernel under a device's ceilings; of one execution."""

    least_seconds: float | None
    """None where neither bytes nor FLOPs say anything."""
    bound: str
    """`memory`, `compute`, or empty where it is not known: FLOPs or the ceiling are unknown."""
    intensity: float | None
    """FLOPs for each byte."""
    ridge: float | None
    """The intensity at which the device's two ceilings meet: below it a kernel is bound by memory."""
    peak: float | None
    """The ceiling in FLOP/s for this kernel's dtype."""
    attainable: float | None
    """FLOP/s that it can reach at the most: the lower ceiling at its intensity."""


def roofline(kernel: Kernel, device: Device) -> Roofline:
    """Places `kernel` under the ceilings of `device`."""
    peak = device.peak(kernel.dtype, matrix=kernel.uses_matrix_units, precision=kernel.precision or "default")
    memory_seconds = kernel.bytes / device.bandwidth
    ridge = peak / device.bandwidth if peak else None
    intensity = kernel.intensity
    if kernel.flops is None or (peak is None and kernel.flops > 0):
        return Roofline(memory_seconds or None, "", intensity, ridge, peak, None)
    compute_seconds = kernel.flops / peak if peak else 0.0
    bound = "compute" if compute_seconds > memory_seconds else "memory"
    attainable = None
    if peak and intensity is not None:
        attainable = min(peak, intensity * device.bandwidth)
    return Roofline(max(compute_seconds, memory_seconds) or None, bound, intensity, ridge, peak, attainable)


def least_seconds(kernels: Iterable[Kernel], device: Device) -> float | None:
    """The least time of all executions together, one after another; None where a trip count is not known.

    Collectives and what overlaps are counted by what they move in memory: links are not in it
    (`jaxprof.hlo.analysis.collectives`). Conditional kernels count as if their branch were taken.
    """
    total = 0.0
    for kernel in kernels:
        if kernel.count is None:
            return None
        total += (roofline(kernel, device).least_seconds or 0.0) * kernel.count
    return total


def with_measured(
    device: Device,
    *,
    bandwidth: float | None = None,
    matrix: Mapping[str, float] | None = None,
    vector: Mapping[str, float] | None = None,
) -> Device:
    """`device` with the ceilings that were measured in place of the vendor's: B/s and FLOP/s by dtype."""
    return replace(
        device,
        bandwidth=bandwidth or device.bandwidth,
        matrix={**device.matrix, **(matrix or {})},
        vector={**device.vector, **(vector or {})},
        source=f"{device.source}; measured on this machine" if bandwidth or matrix or vector else device.source,
    )


def measured_device(name: str, memory_bytes: int, bandwidth: float, peaks: Mapping[str, float]) -> Device:
    """A device that is in no table (a CPU), from what was measured: B/s, and FLOP/s by dtype."""
    return Device(
        name, name, "", memory_bytes, bandwidth, dict(peaks), dict(peaks), None, "", "measured on this machine"
    )
