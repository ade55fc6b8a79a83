"""The chips that can be compiled for: one row each.

An NVIDIA row holds what XLA's `GpuTargetConfigProto` wants: figures from the vendor's architecture whitepapers and the
CUDA C++ programming guide's table of technical specifications by compute capability. A TPU row names the topology that
libtpu knows; libtpu has the figures itself. Adding a chip is adding a row (and one in `hlo.analysis.devices`, which
holds the ceilings for the roofline).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from jaxprof.errors import unknown_name

Vendor = Literal["nvidia", "tpu"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Chip:
    """One accelerator as the compiler sees it. Sizes in bytes, rates in bytes a second, clocks in GHz."""

    name: str
    vendor: Vendor
    device_kind: str
    """As JAX names it on the real thing."""
    cores: int = 0
    """Streaming multiprocessors."""
    fpus_per_core: int = 128
    clock_ghz: float = 0.0
    memory_bytes: int = 0
    memory_bandwidth: int = 0
    l2_bytes: int = 0
    shared_per_core: int = 0
    shared_per_block: int = 0
    """The opt-in limit of one block."""
    threads_per_core: int = 2048
    capability: tuple[int, int] = (0, 0)
    accelerated: bool = False
    """Whether XLA builds for the architecture's own instructions (`sm_90a`)."""
    topology: str = ""
    """TPU: the generation's name in libtpu, to which the shape is added."""
    default_shape: str = ""
    """TPU: the smallest slice that libtpu accepts."""


def _gib(value: float) -> int:
    return int(value * 1024**3)


def _kib(value: float) -> int:
    return int(value * 1024)


CHIPS: tuple[Chip, ...] = (
    Chip(
        name="v100",
        vendor="nvidia",
        device_kind="Tesla V100-SXM2-32GB",
        cores=80,
        fpus_per_core=64,
        clock_ghz=1.53,
        memory_bytes=_gib(31.7),
        memory_bandwidth=897_000_000_000,
        l2_bytes=_kib(6 * 1024),
        shared_per_core=_kib(96),
        shared_per_block=_kib(96),
        capability=(7, 0),
    ),
    Chip(
        name="t4",
        vendor="nvidia",
        device_kind="Tesla T4",
        cores=40,
        fpus_per_core=64,
        clock_ghz=1.59,
        memory_bytes=_gib(14.7),
        memory_bandwidth=320_000_000_000,
        l2_bytes=_kib(4 * 1024),
        shared_per_core=_kib(64),
        shared_per_block=_kib(64),
        threads_per_core=1024,
        capability=(7, 5),
    ),
    Chip(
        name="a100",
        vendor="nvidia",
        device_kind="NVIDIA A100-SXM4-80GB",
        cores=108,
        fpus_per_core=64,
        clock_ghz=1.41,
        memory_bytes=_gib(79.1),
        memory_bandwidth=2_039_000_000_000,
        l2_bytes=_kib(40 * 1024),
        shared_per_core=_kib(164),
        shared_per_block=_kib(163),
        capability=(8, 0),
    ),
    Chip(
        name="a10",
        vendor="nvidia",
        device_kind="NVIDIA A10",
        cores=72,
        clock_ghz=1.695,
        memory_bytes=_gib(22.0),
        memory_bandwidth=600_000_000_000,
        l2_bytes=_kib(6 * 1024),
        shared_per_core=_kib(100),
        shared_per_block=_kib(99),
        threads_per_core=1536,
        capability=(8, 6),
    ),
    Chip(
        name="rtx3090",
        vendor="nvidia",
        device_kind="NVIDIA GeForce RTX 3090",
        cores=82,
        clock_ghz=1.695,
        memory_bytes=_gib(23.6),
        memory_bandwidth=936_000_000_000,
        l2_bytes=_kib(6 * 1024),
        shared_per_core=_kib(100),
        shared_per_block=_kib(99),
        threads_per_core=1536,
        capability=(8, 6),
    ),
    Chip(
        name="rtx4090",
        vendor="nvidia",
        device_kind="NVIDIA GeForce RTX 4090",
        cores=128,
        clock_ghz=2.52,
        memory_bytes=_gib(23.5),
        memory_bandwidth=1_008_000_000_000,
        l2_bytes=_kib(72 * 1024),
        shared_per_core=_kib(100),
        shared_per_block=_kib(99),
        threads_per_core=1536,
        capability=(8, 9),
    ),
    Chip(
        name="l4",
        vendor="nvidia",
        device_kind="NVIDIA L4",
        cores=58,
        clock_ghz=2.04,
        memory_bytes=_gib(22.0),
        memory_bandwidth=300_000_000_000,
        l2_bytes=_kib(48 * 1024),
        shared_per_core=_kib(100),
        shared_per_block=_kib(99),
        threads_per_core=1536,
        capability=(8, 9),
    ),
    Chip(
        name="l40s",
        vendor="nvidia",
        device_kind="NVIDIA L40S",
        cores=142,
        clock_ghz=2.52,
        memory_bytes=_gib(44.5),
        memory_bandwidth=864_000_000_000,
        l2_bytes=_kib(96 * 1024),
        shared_per_core=_kib(100),
        shared_per_block=_kib(99),
        threads_per_core=1536,
        capability=(8, 9),
    ),
    Chip(
        name="h100",
        vendor="nvidia",
        device_kind="NVIDIA H100 80GB HBM3",
        cores=132,
        clock_ghz=1.98,
        memory_bytes=84_978_434_048,
        memory_bandwidth=3_352_320_000_000,
        l2_bytes=52_428_800,
        shared_per_core=233_472,
        shared_per_block=232_448,
        capability=(9, 0),
        accelerated=True,
    ),
    Chip(
        name="h200",
        vendor="nvidia",
        device_kind="NVIDIA H200",
        cores=132,
        clock_ghz=1.98,
        memory_bytes=_gib(139.8),
        memory_bandwidth=4_800_000_000_000,
        l2_bytes=62_914_560,
        shared_per_core=233_472,
        shared_per_block=232_448,
        capability=(9, 0),
        accelerated=True,
    ),
    Chip(
        name="b200",
        vendor="nvidia",
        device_kind="NVIDIA B200",
        cores=148,
        clock_ghz=1.965,
        memory_bytes=_gib(178.4),
        memory_bandwidth=8_000_000_000_000,
        l2_bytes=_kib(126 * 1024),
        shared_per_core=233_472,
        shared_per_block=232_448,
        capability=(10, 0),
        accelerated=True,
    ),
    Chip(
        name="rtx5090",
        vendor="nvidia",
        device_kind="NVIDIA GeForce RTX 5090",
        cores=170,
        clock_ghz=2.407,
        memory_bytes=_gib(31.3),
        memory_bandwidth=1_792_000_000_000,
        l2_bytes=_kib(96 * 1024),
        shared_per_core=_kib(100),
        shared_per_block=_kib(99),
        threads_per_core=1536,
        capability=(12, 0),
    ),
    Chip(name="tpu-v4", vendor="tpu", device_kind="TPU v4", topology="v4", default_shape="2x2x1"),
    Chip(name="tpu-v5e", vendor="tpu", device_kind="TPU v5 lite", topology="v5e", default_shape="2x2"),
    Chip(name="tpu-v5p", vendor="tpu", device_kind="TPU v5", topology="v5p", default_shape="2x2x1"),
    Chip(name="tpu-v6e", vendor="tpu", device_kind="TPU v6 lite", topology="v6e", default_shape="2x2"),
    Chip(name="tpu-v7", vendor="tpu", device_kind="TPU7x", topology="tpu7x", default_shape="2x2x1"),
)


def chip(name: str) -> Chip:
    """The chip of that name (case and a missing `tpu-` do not matter). Raises UsageError naming the near ones."""
    wanted = name.lower().strip()
    for row in CHIPS:
        if wanted in (row.name, row.name.removeprefix("tpu-")):
            return row
    raise unknown_name("device to compile for", name, [row.name for row in CHIPS])


def target_config(row: Chip) -> str:
    """XLA's text form of a `GpuTargetConfigProto` for an NVIDIA chip.

    Only fields that every supported jaxlib knows: an unknown one is refused (FAILED_PRECONDITION). Source of the
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
