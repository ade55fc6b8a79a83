"""List the chips that can be compiled for, one row each.

An NVIDIA row holds the fields of XLA's `GpuTargetConfigProto`: figures from the vendor's architecture whitepapers, from
the CUDA C++ programming guide's table of technical specifications by compute capability, and, if XLA has the device
among its own targets (`xla/backends/gpu/target_config/specs`, read 2026-11-21), what its driver reports there. A TPU
row names the topology that libtpu knows; libtpu has the figures itself. To add a chip, add a row (and one in
`hlo.analysis.cost.peaks`, which holds the ceilings for the roofline).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from jaxprof.errors import UsageError, unknown_name
from jaxprof.hlo.analysis.cost.peaks import DEVICES, device_name

Vendor = Literal["nvidia", "tpu"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Chip:
    """One accelerator as the compiler sees it. Sizes in bytes, rates in bytes a second, clocks in GHz."""

    name: str
    vendor: Vendor
    device_kind: str
    """JAX's name for the real device."""
    cores: int = 0
    """Number of streaming multiprocessors."""
    fpus_per_core: int = 128
    clock_ghz: float = 0.0
    memory_bytes: int = 0
    memory_bandwidth: int = 0
    l2_bytes: int = 0
    shared_per_core: int = 0
    shared_per_block: int = 0
    """Largest shared memory that one block can opt in to."""
    threads_per_core: int = 2048
    capability: tuple[int, int] = (0, 0)
    accelerated: bool = False
    """Whether XLA compiles to the architecture's own instructions (`sm_90a`)."""
    topology: str = ""
    """Name of the TPU generation in libtpu, to which the shape is added; empty for a GPU."""
    default_shape: str = ""
    """Smallest TPU slice that libtpu accepts; empty for a GPU."""
    devices: int = 1
    """Number of devices that JAX makes of one chip: for some TPUs one for each TensorCore."""
    chip_config: str = ""
    """libtpu's name for how a TPU chip's cores are combined, if libtpu's default differs from JAX's on the real
    chip."""


# fmt: off
_NVIDIA: Final = (
    # name      device kind                SMs  FPUs    GHz              GiB     GB/s     L2   SM  opt  thr.    cap.
    ("v100",    "Tesla V100-SXM2-32GB",     80,   64,  1.53,            31.7,     897,     6,  96,  96, 2048,   "7.0"),
    ("t4",      "Tesla T4",                 40,   64,  1.59,            14.7,     320,     4,  64,  64, 1024,   "7.5"),
    ("a100",    "NVIDIA A100-SXM4-80GB",   108,   64,  1.41,            79.1,    2039,    40, 164, 163, 2048,   "8.0"),
    ("a10",     "NVIDIA A10",               72,  128, 1.695,            22.0,     600,     6, 100,  99, 1536,   "8.6"),
    ("rtx3090", "NVIDIA GeForce RTX 3090",  82,  128, 1.695,            23.6,     936,     6, 100,  99, 1536,   "8.6"),
    ("rtx4090", "NVIDIA GeForce RTX 4090", 128,  128,  2.52,            23.5,    1008,    72, 100,  99, 1536,   "8.9"),
    ("l4",      "NVIDIA L4",                58,  128,  2.04,            22.0,     300,    48, 100,  99, 1536,   "8.9"),
    ("l40s",    "NVIDIA L40S",             142,  128,  2.52,            44.5,     864,    96, 100,  99, 1536,   "8.9"),
    ("h100",    "NVIDIA H100 80GB HBM3",   132,  128,  1.98, 79.142333984375, 3352.32,    50, 228, 227, 2048,  "9.0a"),
    ("h200",    "NVIDIA H200",             132,  128,  1.98,           139.8,    4800,    60, 228, 227, 2048,  "9.0a"),
    ("b200",    "NVIDIA B200",             148,  128, 1.965,           178.4, 7672.32, 126.5, 228, 227, 2048, "10.0a"),
    ("rtx5090", "NVIDIA GeForce RTX 5090", 170,  128, 2.407,            31.3,    1792,    96, 100,  99, 1536,  "12.0"),
)
"""`GiB`, `GB/s`: the device's memory. `L2`: MiB. `FPUs`, `SM` (KiB of shared memory) and `thr.` (threads): of one
streaming multiprocessor. `opt`: KiB of shared memory that one block can opt in to. `cap.`: the compute capability; an
`a` after it means that XLA compiles to the architecture's own instructions (`sm_90a`)."""
_TPU: Final = (
    # name       device kind    topology  shape    devices  cores combined
    ("tpu-v2",  "TPU v2",      "v2",     "2x2",   2,       ""),
    ("tpu-v3",  "TPU v3",      "v3",     "2x2",   2,       ""),
    ("tpu-v4",  "TPU v4",      "v4",     "2x2x1", 1,       "megacore"),
    ("tpu-v5e", "TPU v5 lite", "v5e",    "2x2",   1,       ""),
    ("tpu-v5p", "TPU v5",      "v5p",    "2x2x1", 1,       ""),
    ("tpu-v6e", "TPU v6 lite", "v6e",    "2x2",   1,       ""),
    ("tpu-v7x", "TPU7x",       "tpu7x",  "2x2x1", 2,       ""),
)
# fmt: on


def _nvidia(
    name: str, kind: str, cores: int, fpus: int, ghz: float, gib: float, gb_per_second: float, l2_mib: float,
    core_kib: int, block_kib: int, threads: int, capability: str,
) -> Chip:  # fmt: skip
    major, minor = capability.removesuffix("a").split(".")
    return Chip(
        name=name,
        vendor="nvidia",
        device_kind=kind,
        cores=cores,
        fpus_per_core=fpus,
        clock_ghz=ghz,
        memory_bytes=int(gib * 1024**3),
        memory_bandwidth=round(gb_per_second * 1e9),
        l2_bytes=int(l2_mib * 1024**2),
        shared_per_core=core_kib * 1024,
        shared_per_block=block_kib * 1024,
        threads_per_core=threads,
        capability=(int(major), int(minor)),
        accelerated=capability.endswith("a"),
    )


CHIPS: Final = (
    *(_nvidia(*row) for row in _NVIDIA),
    *(
        Chip(name=name, vendor="tpu", device_kind=kind, topology=topology, default_shape=shape, devices=devices,
             chip_config=config)
        for name, kind, topology, shape, devices, config in _TPU
    ),
)  # fmt: skip


def chip(name: str) -> Chip:
    """Return the chip of that name, by any of the names in the table of ceilings. Raises UsageError, with the reason if
    the device is known but cannot be compiled for, and with similar names otherwise."""
    wanted = device_name(name)
    row = next((row for row in CHIPS if row.name == wanted), None)
    if row is not None:
        return row
    listed = DEVICES.get(wanted)
    if listed is not None:
        raise UsageError(f"{listed.title} cannot be compiled for: {_WHY_NOT[listed.vendor]}", _CEILINGS_ONLY)
    raise unknown_name("device to compile for", name, [row.name for row in CHIPS])


_WHY_NOT = {
    "AMD": "JAX's ROCm plugin needs an installed ROCm, and jaxprof installs none",
    "NVIDIA": "jaxprof lacks the figures that XLA's compiler needs for it",
}
_CEILINGS_ONLY = (
    "Its ceilings are known: the app's HLO screen compares any module with them. `jaxprof devices target list` names "
    "the devices that can be compiled for."
)


def target_config(row: Chip) -> str:
    """Return XLA's text form of a `GpuTargetConfigProto` for an NVIDIA chip.

    Only fields that every supported jaxlib knows: XLA rejects an unknown one (FAILED_PRECONDITION). Source of the
    names: xla/stream_executor/device_description.proto. Raises ValueError for a TPU.
    """
    if row.vendor != "nvidia":
        raise ValueError(f"{row.name} has no GPU target configuration")
    major, minor = row.capability
    feature = " feature_extension: ACCELERATED_FEATURES" if row.accelerated else ""
    info = {
        "threads_per_block_limit": 1024,
        "threads_per_warp": 32,
        "shared_memory_per_block": 49_152,
        "shared_memory_per_core": row.shared_per_core,
        "threads_per_core_limit": row.threads_per_core,
        "core_count": row.cores,
        "fpus_per_core": row.fpus_per_core,
        "block_dim_limit_x": 2_147_483_647,
        "block_dim_limit_y": 65_535,
        "block_dim_limit_z": 65_535,
        "memory_bandwidth": row.memory_bandwidth,
        "l2_cache_size": row.l2_bytes,
        "clock_rate_ghz": row.clock_ghz,
        "device_memory_size": row.memory_bytes,
        "shared_memory_per_block_optin": row.shared_per_block,
        "registers_per_core_limit": 65_536,
        "registers_per_block_limit": 65_536,
    }
    fields = " ".join(f"{name}: {value}" for name, value in info.items())
    return (
        f"gpu_device_info {{ {fields} cuda_compute_capability {{ major: {major} minor: {minor}{feature} }} }} "
        f'platform_name: "CUDA" dnn_version_info {{ major: 9 minor: 8 }} device_description_str: "{row.device_kind}"'
    )
