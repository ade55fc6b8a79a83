"""Limits of devices: memory, bandwidth, peak rates and links, from their vendors' figures.

A device is what JAX calls one: a GPU, a TPU chip, or, for TPUs that JAX sees as two devices per chip (v2, v3, TPU7x), a
TensorCore with its half of the chip. `jaxprof.devices.targets.machine` describes how devices are connected.

Rates are dense (no structured sparsity), at boost clock, as the vendor states them; a device never exceeds them and
rarely reaches them. `matrix` rates are those of matrix units (tensor cores, MFMA, MXU), `vector` rates those of
everything else. A rate that the vendor does not publish is absent, never guessed. Memory sizes are in GiB, which
vendors write as GB. To add a device, add a row.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from jaxprof.errors import unknown_name

if TYPE_CHECKING:
    from collections.abc import Mapping

_GB: Final = 1e9
_GIB: Final = 1 << 30
_T: Final = 1e12


@dataclass(frozen=True, slots=True)
class DevicePeaks:
    """One accelerator, as JAX sees it."""

    name: str
    """Name on the command line: `h100`, `tpu-v5e`."""
    title: str
    vendor: str
    memory_bytes: int
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
            for key in _matrix_keys(dtype, precision):
                if key in self.matrix:
                    return self.matrix[key]
            passes = _BF16_PASSES.get(precision, 1) if dtype in ("f32", "c64") else 1
            if self.vendor == "Google" and "bf16" in self.matrix:
                return self.matrix["bf16"] / passes
        for key in ("f64",) if dtype in ("f64", "c128") else (dtype, "f32"):
            if key in self.vector:
                return self.vector[key]
        return None


_BF16_PASSES: Final = {"high": 3, "highest": 6}
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


def _row(
    vendor: str, name: str, title: str, gibibytes: float, bandwidth: float, matrix: Mapping[str, float],
    vector: Mapping[str, float], link: float | None, link_name: str, source: str, devices: int = 1,
) -> DevicePeaks:  # fmt: skip
    """Return a row of the table from figures of the chip (memory in GiB, rates in GB/s and TFLOP/s), which has
    `devices` devices."""
    return DevicePeaks(
        name, title, vendor, int(gibibytes / devices * _GIB), bandwidth / devices * _GB,
        {key: value / devices * _T for key, value in matrix.items()},
        {key: value / devices * _T for key, value in vector.items()},
        link / devices * _GB if link else None, link_name, source, devices,
    )  # fmt: skip


_HOPPER: Final = {"bf16": 989.4, "f16": 989.4, "tf32": 494.7, "f8": 1978.9, "s8": 1978.9, "f64": 66.9}
_HOPPER_VECTOR: Final = {"f32": 66.9, "f64": 33.5}
_CDNA3: Final = {
    "bf16": 1307.4, "f16": 1307.4, "tf32": 653.7, "f8": 2614.9, "s8": 2614.9, "f32": 163.4, "f64": 163.4,
}  # fmt: skip
_N, _A, _G = "NVIDIA", "AMD", "Google"
_TPU_PAPER: Final = "Jouppi et al., A Domain-Specific Supercomputer for Training DNNs, CACM 63(7), 2020, table 3"

# fmt: off
_ROWS: Final = (
    _row(_N, "v100", "Tesla V100 SXM2 32 GB", 32, 900, {"f16": 125}, {"f32": 15.7, "f64": 7.8, "f16": 31.4}, 150,
         "NVLink 2, 6 links", "NVIDIA V100 datasheet, January 2020"),
    _row(_N, "t4", "T4", 16, 320, {"f16": 65, "s8": 130}, {"f32": 8.1}, None, "", "NVIDIA T4 datasheet, 2019"),
    _row(_N, "a100", "A100 SXM 80 GB", 80, 2039, {"bf16": 312, "f16": 312, "tf32": 156, "f64": 19.5, "s8": 624},
         {"f32": 19.5, "f64": 9.7}, 300, "NVLink 3, 12 links", "NVIDIA A100 datasheet, June 2021"),
    _row(_N, "a100-40gb", "A100 SXM 40 GB", 40, 1555, {"bf16": 312, "f16": 312, "tf32": 156, "f64": 19.5, "s8": 624},
         {"f32": 19.5, "f64": 9.7}, 300, "NVLink 3, 12 links", "NVIDIA A100 datasheet, 2020"),
    _row(_N, "a10", "A10", 24, 600, {"bf16": 125, "f16": 125, "tf32": 62.5, "s8": 250}, {"f32": 31.2}, None, "",
         "NVIDIA A10 datasheet, 2021"),
    _row(_N, "l4", "L4", 24, 300, {"bf16": 121, "f16": 121, "tf32": 60, "f8": 242.5, "s8": 242.5}, {"f32": 30.3}, None,
         "", "NVIDIA L4 datasheet, 2023"),
    _row(_N, "l40s", "L40S", 48, 864, {"bf16": 362, "f16": 362, "tf32": 183, "f8": 733, "s8": 733}, {"f32": 91.6},
         None, "", "NVIDIA L40S datasheet, 2023"),
    _row(_N, "rtx3090", "GeForce RTX 3090", 24, 936, {"bf16": 71, "f16": 71, "tf32": 35.6, "s8": 284},
         {"f32": 35.6, "f64": 0.556}, None, "", "NVIDIA Ampere GA102 whitepaper, 2021, table 2"),
    _row(_N, "rtx4090", "GeForce RTX 4090", 24, 1008,
         {"bf16": 165.2, "f16": 165.2, "tf32": 82.6, "f8": 330.3, "s8": 660.6}, {"f32": 82.6, "f64": 1.29}, None, "",
         "NVIDIA Ada GPU architecture whitepaper, 2023, appendix A (float32 accumulation)"),
    _row(_N, "rtx5090", "GeForce RTX 5090", 32, 1792,
         {"bf16": 209.5, "f16": 209.5, "tf32": 104.8, "f8": 419, "f4": 1676, "s8": 838}, {"f32": 104.8, "f64": 1.64},
         None, "", "NVIDIA RTX Blackwell GPU architecture whitepaper, 2025, appendix A (float32 accumulation)"),
    _row(_N, "h100", "H100 SXM", 80, 3352, _HOPPER, _HOPPER_VECTOR, 450, "NVLink 4, 18 links",
         "NVIDIA H100 Tensor Core GPU architecture whitepaper, 2022, table 2"),
    _row(_N, "h100-pcie", "H100 PCIe", 80, 2039,
         {"bf16": 756, "f16": 756, "tf32": 378, "f8": 1513, "s8": 1513, "f64": 51.2}, {"f32": 51.2, "f64": 25.6}, None,
         "", "NVIDIA H100 Tensor Core GPU architecture whitepaper, 2022, table 2"),
    _row(_N, "h200", "H200 SXM", 141, 4800, _HOPPER, _HOPPER_VECTOR, 450, "NVLink 4, 18 links",
         "NVIDIA H200 datasheet, 2024"),
    _row(_N, "b200", "B200 (HGX)", 180, 8000,
         {"bf16": 2250, "f16": 2250, "tf32": 1100, "f8": 4500, "f4": 9000, "s8": 4500, "f64": 37},
         {"f32": 75, "f64": 37}, 900, "NVLink 5, 18 links",
         "NVIDIA HGX platform specifications, 2025, HGX B200, an eighth"),
    _row(_N, "gb200", "GB200 (NVL72, one GPU)", 186, 8000,
         {"bf16": 2500, "f16": 2500, "tf32": 1250, "f8": 5000, "f4": 10000, "s8": 5000, "f64": 40},
         {"f32": 80, "f64": 40}, 900, "NVLink 5, 18 links", "NVIDIA GB200 NVL72 specifications, 2024, one of 72"),
    _row(_A, "mi100", "Instinct MI100", 32, 1228.8, {"f16": 184.6, "bf16": 92.3, "f32": 46.1, "s8": 184.6},
         {"f32": 23.1, "f64": 11.5}, 138, "Infinity Fabric, 3 links", "AMD Instinct MI100 brochure, 2020"),
    _row(_A, "mi210", "Instinct MI210", 64, 1638.4,
         {"f16": 181, "bf16": 181, "f32": 45.3, "f64": 45.3, "s8": 181}, {"f32": 22.6, "f64": 22.6}, 150,
         "Infinity Fabric, 3 links", "AMD Instinct MI210 datasheet, 2022"),
    _row(_A, "mi250x", "Instinct MI250X, one of its two dies", 64, 1638.4,
         {"f16": 191.5, "bf16": 191.5, "f32": 47.9, "f64": 47.9, "s8": 191.5}, {"f32": 23.9, "f64": 23.9}, 200,
         "Infinity Fabric, 4 links", "AMD Instinct MI250X datasheet, 2021, half of the package"),
    _row(_A, "mi300a", "Instinct MI300A", 128, 5300,
         {"f16": 980.6, "bf16": 980.6, "tf32": 490.3, "f8": 1961.2, "s8": 1961.2, "f32": 122.6, "f64": 122.6},
         {"f32": 122.6, "f64": 61.3}, 384, "Infinity Fabric", "AMD Instinct MI300A data sheet, 2023"),
    _row(_A, "mi300x", "Instinct MI300X", 192, 5300, _CDNA3, {"f32": 163.4, "f64": 81.7}, 448,
         "Infinity Fabric, 7 links", "AMD Instinct MI300X data sheet, 2023"),
    _row(_A, "mi325x", "Instinct MI325X", 256, 6000, _CDNA3, {"f32": 163.4, "f64": 81.7}, 448,
         "Infinity Fabric, 7 links", "AMD Instinct MI325X data sheet, 2024"),
    _row(_A, "mi350x", "Instinct MI350X", 288, 8000,
         {"f16": 2306.9, "bf16": 2306.9, "f8": 4613.7, "f4": 9227.5, "s8": 4613.7, "f32": 144.2, "f64": 72.1},
         {"f32": 144.2, "f64": 72.1}, 537.6, "Infinity Fabric, 7 links", "AMD Instinct MI350X data sheet, 2025"),
    _row(_A, "mi355x", "Instinct MI355X", 288, 8000,
         {"f16": 2516.6, "bf16": 2516.6, "f8": 5033.2, "f4": 10066.3, "s8": 5033.2, "f32": 157.3, "f64": 78.6},
         {"f32": 157.3, "f64": 78.6}, 537.6, "Infinity Fabric, 7 links", "AMD Instinct MI355X data sheet, 2025"),
    _row(_G, "tpu-v2", "TPU v2, one of a chip's two cores", 16, 700, {"bf16": 46}, {}, 248, "ICI, 4 links",
         _TPU_PAPER, 2),
    _row(_G, "tpu-v3", "TPU v3, one of a chip's two cores", 32, 900, {"bf16": 123}, {}, 328, "ICI, 4 links",
         _TPU_PAPER, 2),
    _row(_G, "tpu-v4", "TPU v4", 32, 1228, {"bf16": 275, "s8": 275}, {}, 300, "ICI, 6 links",
         "Google Cloud documentation, TPU v4, docs.cloud.google.com/tpu/docs/v4, read 2026-11-21; links: Jouppi et "
         "al., ISCA 2023"),
    _row(_G, "tpu-v5e", "TPU v5e", 16, 819, {"bf16": 197, "s8": 393}, {}, 200, "ICI, 4 links",
         "Google Cloud documentation, TPU v5e, docs.cloud.google.com/tpu/docs/v5e, read 2026-11-21"),
    _row(_G, "tpu-v5p", "TPU v5p", 95, 2765, {"bf16": 459, "s8": 918}, {}, 600, "ICI, 6 links",
         "Google Cloud documentation, TPU v5p, docs.cloud.google.com/tpu/docs/v5p, read 2026-11-21"),
    _row(_G, "tpu-v6e", "TPU v6e (Trillium)", 32, 1638, {"bf16": 918, "s8": 1836}, {}, 400, "ICI, 4 links",
         "Google Cloud documentation, TPU7x, docs.cloud.google.com/tpu/docs/tpu7x, compared with v6e, read 2026-11-21"),
    _row(_G, "tpu-v7x", "TPU7x (Ironwood), one of a chip's two devices", 192, 7380, {"bf16": 2307, "f8": 4614}, {},
         600, "ICI, 6 links",
         "Google Cloud documentation, TPU7x, docs.cloud.google.com/tpu/docs/tpu7x, read 2026-11-21", 2),
)
# fmt: on
DEVICES: Final[Mapping[str, DevicePeaks]] = {device.name: device for device in _ROWS}
"""Every device of the table, by its name on the command line."""
_OTHER_NAMES: Final = {
    "tpu7x": "tpu-v7x", "tpu-7x": "tpu-v7x", "tpu-v7": "tpu-v7x", "v7": "tpu-v7x", "ironwood": "tpu-v7x",
    "trillium": "tpu-v6e", "v5litepod": "tpu-v5e", "a100-80gb": "a100", "a100-sxm": "a100", "a100-sxm4": "a100",
    "h100-80gb": "h100", "h100-sxm": "h100", "h100-sxm5": "h100", "h200-sxm": "h200", "b200-sxm": "b200",
}  # fmt: skip
_REPORTED: Final = (
    (r"H200", "h200"), (r"H100.*PCIe", "h100-pcie"), (r"H100", "h100"), (r"GB200", "gb200"), (r"B200", "b200"),
    (r"A100.*40 ?GB", "a100-40gb"), (r"A100", "a100"), (r"A10\b|A10G", "a10"), (r"V100", "v100"),
    (r"\bT4\b", "t4"), (r"L40S", "l40s"), (r"\bL4\b", "l4"), (r"RTX 3090(?! Ti)", "rtx3090"),
    (r"RTX 4090(?! D)", "rtx4090"), (r"RTX 5090(?! D)", "rtx5090"), (r"MI355X", "mi355x"), (r"MI350X", "mi350x"),
    (r"MI325X", "mi325x"), (r"MI300X", "mi300x"), (r"MI300A", "mi300a"), (r"MI250X?", "mi250x"), (r"MI210", "mi210"),
    (r"MI100", "mi100"), (r"TPU v2", "tpu-v2"), (r"TPU v3", "tpu-v3"), (r"TPU v4(?! ?(lite|i))", "tpu-v4"),
    (r"TPU v5 ?lite|TPU v5e", "tpu-v5e"), (r"TPU v5p?", "tpu-v5p"), (r"TPU v6 ?lite|TPU v6e", "tpu-v6e"),
    (r"TPU ?v?7x?", "tpu-v7x"),
)  # fmt: skip
"""Names that drivers and JAX use for a device (`device_kind`), and its row; the first match counts."""


def device_name(name: str) -> str:
    """Return the table's name for `name` in any case (`H100`, `v5e`, `trillium`); `name` itself if there is none."""
    key = name.strip().lower().replace("_", "-")
    key = _OTHER_NAMES.get(key, key)
    return f"tpu-{key}" if f"tpu-{key}" in DEVICES else key


def device(name: str) -> DevicePeaks:
    """Return the device of that name in any case (`h100`, `TPU-v5e`, `v5e`). Raises UsageError for an unknown one."""
    peaks = DEVICES.get(device_name(name))
    if peaks is None:
        raise unknown_name("device", name, DEVICES)
    return peaks


def device_of_kind(kind: str) -> DevicePeaks | None:
    """Return the row for JAX's `device_kind` (`NVIDIA H100 80GB HBM3`, `TPU v5 lite`); None if the table has none."""
    return next((DEVICES[name] for pattern, name in _REPORTED if re.search(pattern, kind, re.IGNORECASE)), None)
