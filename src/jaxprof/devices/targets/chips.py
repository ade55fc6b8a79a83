"""List the chips that can be compiled for, those with a `target` in `hlo/analysis/cost/devices.json`.

The target of an NVIDIA GPU holds the fields of XLA's `GpuDeviceInfoProto` in which GPUs differ: figures from the
vendor's architecture whitepapers, from the CUDA C++ programming guide's table of technical specifications by compute
capability, and, if XLA has the device among its own targets (`xla/backends/gpu/target_config/specs`, read 2026-11-21),
what its driver reports there. That of a TPU names the topology that libtpu knows; libtpu has the figures itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from jaxprof.errors import UsageError, unknown_name
from jaxprof.hlo.analysis.cost.peaks import DEVICES, ROWS, device_name

Vendor = Literal["nvidia", "tpu"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Chip:
    """One accelerator as the compiler sees it."""

    name: str
    vendor: Vendor
    device_kind: str
    """JAX's name for the real device."""
    capability: str = ""
    """Compute capability, with an `a` if XLA compiles to the architecture's own instructions (`sm_90a`)."""
    config: Mapping[str, float] = field(default_factory=dict)
    """Fields of XLA's `GpuDeviceInfoProto`, sizes in bytes and rates in bytes a second; none for a TPU."""
    topology: str = ""
    """Name of the TPU generation in libtpu, to which the shape is added; empty for a GPU."""
    default_shape: str = ""
    """Smallest TPU slice that libtpu accepts; empty for a GPU."""
    devices: int = 1
    """Number of devices that JAX makes of one chip: for some TPUs one for each TensorCore."""
    chip_config: str = ""
    """libtpu's name for how a TPU chip's cores are combined, if libtpu's default differs from JAX's on the real
    chip."""


CHIPS: Final = tuple(
    Chip(name=name, devices=row.get("devices", 1), **row["target"]) for name, row in ROWS.items() if "target" in row
)


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
    "Its ceilings are known: Kernels in the app compares any module with them. `jaxprof devices target list` names "
    "the devices that can be compiled for."
)


_OF_EVERY_GPU: Final = {
    "threads_per_block_limit": 1024,
    "threads_per_warp": 32,
    "shared_memory_per_block": 49_152,
    "block_dim_limit_x": 2_147_483_647,
    "block_dim_limit_y": 65_535,
    "block_dim_limit_z": 65_535,
    "registers_per_core_limit": 65_536,
    "registers_per_block_limit": 65_536,
}


def target_config(row: Chip) -> str:
    """Return XLA's text form of a `GpuTargetConfigProto` for an NVIDIA chip.

    Only fields that every supported jaxlib knows: XLA rejects an unknown one (FAILED_PRECONDITION). Source of the
    names: xla/stream_executor/device_description.proto. Raises ValueError for a TPU.
    """
    if row.vendor != "nvidia":
        raise ValueError(f"{row.name} has no GPU target configuration")
    major, minor = row.capability.removesuffix("a").split(".")
    feature = " feature_extension: ACCELERATED_FEATURES" if row.capability.endswith("a") else ""
    info = {**_OF_EVERY_GPU, **row.config}
    fields = " ".join(f"{name}: {value}" for name, value in info.items())
    return (
        f"gpu_device_info {{ {fields} cuda_compute_capability {{ major: {major} minor: {minor}{feature} }} }} "
        f'platform_name: "CUDA" dnn_version_info {{ major: 9 minor: 8 }} device_description_str: "{row.device_kind}"'
    )
