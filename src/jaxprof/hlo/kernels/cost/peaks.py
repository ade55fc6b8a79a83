"""Limits of devices (memory, bandwidth, peak rates, links) from their vendors' figures, and what they allow a kernel.

A device is what JAX calls one: a GPU, a TPU chip, or, for TPUs that JAX sees as two devices per chip (v2, v3, TPU7x), a
TensorCore with its half of the chip. `jaxprof.devices.absent` describes how devices are connected.

Rates are dense (no structured sparsity), at boost clock, as the vendor states them; a device never exceeds them and
rarely reaches them. `matrix` rates are those of matrix units (tensor cores, MFMA, MXU), `vector` rates those of
everything else. A rate that the vendor does not publish is absent, never guessed. `devices.json` beside this
file has the figures of each chip: memory in GiB (which vendors write as GB), bandwidths in GB/s (of all links to
neighbours, in one direction), rates in TFLOP/s, other names for the command line, a pattern for the names that drivers
and JAX report (`device_kind`), which fits no other row, and the number of multiprocessors or compute units of a GPU. To
add a device, add an entry.

The roofline is that of Williams, Waterman and Patterson (CACM 52(4), 2009): a kernel that computes F FLOPs and moves B
bytes takes at least max(F / peak, B / bandwidth), by the vendor's ceilings or those measured on the machine. It is a
bound, not a forecast: it ignores launch overhead, latency, caches, and transcendentals, whose rate no vendor states.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jaxprof.base.errors import unknown_name
from jaxprof.base.values import frozen

if TYPE_CHECKING:
    from jaxprof.hlo.kernels.kernels import Kernel

_GB = 1e9
_T = 1e12


@frozen
class DevicePeaks:
    """One accelerator, as JAX sees it."""

    name: str
    """Name on the command line: `h100`, `tpu-v5e`."""
    title: str
    vendor: str
    memory_bytes: int
    """What its driver reports if that is known, which is less than the vendor's figure."""
    bandwidth: float
    """Bytes per second between the chip and its main memory."""
    matrix: Mapping[str, float]
    """Dense FLOP/s of the matrix units by dtype; `tf32` is float32 at the reduced default precision."""
    vector: Mapping[str, float]
    """FLOP/s outside the matrix units by dtype."""
    link_bandwidth: float | None
    """Bytes per second that the device can send to its neighbours, in one direction over all links; None if it has no
    such link."""
    link: str
    source: str
    """The vendor's document that the figures come from, and its date."""
    devices_per_chip: int = 1
    """Number of devices that share a chip and its links."""

    def peak(self, dtype: str, *, matrix: bool, precision: str = "default") -> float | None:
        """Return the ceiling in FLOP/s for a kernel that computes with `dtype`; None if no figure is known."""
        if matrix:
            rate = self.matrix.get(self.rate(dtype, precision))
            if rate is not None:
                return rate
            passes = _BF16_PASSES.get(precision, 1) if dtype in ("f32", "c64") else 1
            if self.vendor == "Google" and "bf16" in self.matrix:
                return self.matrix["bf16"] / passes
        for key in ("f64",) if dtype in ("f64", "c128") else (dtype, "f32"):
            if key in self.vector:
                return self.vector[key]
        return None

    def rate(self, dtype: str, precision: str = "default") -> str:
        """Return the name of the matrix-unit rate that products of `dtype` are compared with: `tf32` for `f32`. `dtype`
        itself if none is known."""
        return next((key for key in _matrix_keys(dtype, precision) if key in self.matrix), dtype)


_BF16_PASSES = {"high": 3, "highest": 6}
"""Number of bfloat16 products that a TPU adds up for one float32 product, by the requested precision."""


def _matrix_keys(dtype: str, precision: str) -> tuple[str, ...]:
    """Return the rates that apply to a dtype, the best first: narrower formats run as the next wider format of the
    device."""
    if dtype in ("f32", "c64"):
        return ("f32",) if precision in ("high", "highest", "dot_f32_f32_f32") else ("tf32", "f32")
    if dtype in ("f64", "c128"):
        return ("f64",)
    if dtype.startswith(("s", "u")):
        return ("s8",)
    if dtype.startswith("f4"):
        return ("f4", "f8", "bf16", "f16")
    if dtype.startswith(("f8", "f6")):
        return ("f8", "bf16", "f16")
    return (dtype,)


def _read(name: str, row: Mapping[str, Any]) -> DevicePeaks:
    """Return the device of a section of `devices.json`, whose figures are those of the chip."""
    devices = row.get("devices", 1)
    link = row.get("link_bandwidth")
    reported = row.get("target", {}).get("config", {}).get("device_memory_size")
    return DevicePeaks(
        name,
        row["title"],
        row["vendor"],
        reported or int(row["memory"] / devices * (1 << 30)),
        row["bandwidth"] / devices * _GB,
        {dtype: rate / devices * _T for dtype, rate in row["matrix"].items()},
        {dtype: rate / devices * _T for dtype, rate in row["vector"].items()},
        link / devices * _GB if link else None,
        row.get("link", ""),
        row["source"],
        devices,
    )


ROWS: Mapping[str, Mapping[str, Any]] = json.loads(Path(__file__).with_name("devices.json").read_text("utf-8"))
"""Rows of `devices.json` by the name of the device; devices that can be compiled for have a `target`."""
DEVICES: Mapping[str, DevicePeaks] = {name: _read(name, row) for name, row in ROWS.items()}
"""Every device of the table, by its name on the command line."""
_ALIASES = {alias: name for name, row in ROWS.items() for alias in row.get("aliases", ())}


def device_name(name: str) -> str:
    """Return the table's name for `name` in any case (`H100`, `v5e`, `trillium`); `name` itself if there is none."""
    key = name.strip().lower().replace("_", "-")
    key = _ALIASES.get(key, key)
    return f"tpu-{key}" if f"tpu-{key}" in DEVICES else key


def device(name: str) -> DevicePeaks:
    """Return the device of that name in any case (`h100`, `TPU-v5e`, `v5e`). Raises UsageError for an unknown one."""
    peaks = DEVICES.get(device_name(name))
    if peaks is None:
        raise unknown_name("device", name, DEVICES)
    return peaks


def device_of_kind(kind: str) -> DevicePeaks | None:
    """Return the row for JAX's `device_kind` (`NVIDIA H100 80GB HBM3`, `TPU v5 lite`); None if the table has none."""
    named = (name for name, row in ROWS.items() if re.search(row["reported"], kind, re.IGNORECASE))
    return next((DEVICES[name] for name in named), None)


def device_of_figures(
    vendor: str, core_count: int, memory_bytes: int, bandwidth: int = 0, clock_hertz: int = 0
) -> DevicePeaks | None:
    """Return the one GPU with these figures, which XLA's profiler writes also where it writes no name: multiprocessors,
    bytes, bytes per second, and the highest clock; the last two are 0 if unknown. None if no row has them, or several.
    """
    fitting = [
        DEVICES[name]
        for name, row in ROWS.items()
        if row["vendor"].casefold() == vendor.casefold()
        and core_count == (row.get("core_count") or row.get("target", {}).get("config", {}).get("core_count"))
        and _is_near(memory_bytes, DEVICES[name].memory_bytes)
        # the profiler counts two transfers for each clock of a memory, and that of AMD's MI300 makes four
        and (not bandwidth or any(_is_near(bandwidth * factor, row["bandwidth"] * _GB) for factor in (1, 2)))
        and ("clock_rate_ghz" not in row or _is_near(clock_hertz, row["clock_rate_ghz"] * 1e9))
    ]
    return fitting[0] if len(fitting) == 1 else None


def _is_near(figure: float, stated: float) -> bool:
    """Return whether a device's own figure is the vendor's: an H200 says 4.92 of 4.8 TB/s, and of two devices with as
    many multiprocessors and bytes, an A100 on PCIe and one on SXM, the bandwidths differ by 5 %."""
    return abs(figure / stated - 1) < 0.03


@frozen
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


def device_from_ceilings(
    name: str, source: str, memory_bytes: int, bandwidth: float, peaks: Mapping[str, float]
) -> DevicePeaks:
    """Return a device that is in no table (a CPU), from measured ceilings: B/s, and FLOP/s by dtype. `source` says how
    they were measured."""
    return DevicePeaks(name, name, "", memory_bytes, bandwidth, dict(peaks), dict(peaks), None, "", source)
