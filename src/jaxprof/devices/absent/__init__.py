"""Devices that are not here: what XLA must know to compile for them, the wheels that enable it, and a lower bound of a
program's time there.

No jax is imported here: this package decides what to install and what to request; the engine's child compiles.

The chips that can be compiled for are those with a `target` in `hlo/kernels/cost/devices.json`. Here: how they are
connected, hosts and the network between them, with the sources of all figures.

The target of an NVIDIA GPU holds the fields of XLA's `GpuDeviceInfoProto` in which GPUs differ: figures from the
vendor's architecture whitepapers, from the CUDA C++ programming guide's table of technical specifications by compute
capability, and, if XLA has the device among its own targets (`xla/backends/gpu/target_config/specs`, read 2026-11-21),
what its driver reports there. That of a TPU names the topology that libtpu knows; libtpu has the figures itself.

A machine is a list of levels, the innermost first. A level has units of some devices (a device, a chip of two, a host
of eight), and the bytes per second that one unit can send to the others, in one direction. The bytes that a collective
moves over each level follow from its groups (`jaxprof.devices.absent.least_time`).

The figures are those of reference designs, because a program does not contain those of its cluster. Figures without a
source are left out.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import field
from typing import Literal

from jaxprof.base.errors import UsageError, unknown_name
from jaxprof.base.values import frozen
from jaxprof.hlo.kernels.cost.peaks import DEVICES, ROWS, DevicePeaks, device, device_name

Vendor = Literal["nvidia", "tpu"]


@frozen(kw_only=True)
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


CHIPS = tuple(
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


_OF_EVERY_GPU = {
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
    """Return XLA's text form of a `GpuTargetConfigProto` for an NVIDIA chip. Only fields that every supported jaxlib
    knows: XLA rejects an unknown one (FAILED_PRECONDITION). Source of the names:
    xla/stream_executor/device_description.proto. Raises ValueError for a TPU."""
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


_SPEC = re.compile(r"(?:(?P<hosts>\d{1,9})x)?(?P<name>[A-Za-z][\w-]*?)(?::(?P<count>\d{1,9}(?:x\d{1,9}){0,3}))?$")
_MOST_DEVICES = 16_384  # the largest pod has 9 216 chips (TPU v7)


@frozen
class AbsentDevices:
    """A number of devices of one kind."""

    chip: Chip
    hosts: int
    shape: tuple[int, ...]
    """Devices of one host for NVIDIA, such as (8,); chips of the slice for TPU, such as (16, 16)."""
    single: bool = False
    """Whether no count was given, so that the program is compiled for one device of that shape."""

    @property
    def devices(self) -> int:
        """Number of devices, as JAX counts them, for which the program is compiled: for some TPUs two for each chip."""
        return 1 if self.single else self.hosts * math.prod(self.shape) * self.chip.devices

    @property
    def topology(self) -> str:
        """Topology in the form of JAX's `get_topology_desc`: hosts × 1 × devices for CUDA, `v6e:16x16` for TPU."""
        if self.chip.vendor == "tpu":
            return f"{self.chip.topology}:{'x'.join(map(str, self.shape))}"
        return f"{self.hosts}x1x{self.shape[0]}"

    @property
    def label(self) -> str:
        """The target as the user writes it: `4xh100:8`."""
        if self.single:
            return self.chip.name
        hosts = f"{self.hosts}x" if self.hosts > 1 else ""
        if self.chip.vendor == "tpu":
            return f"{self.chip.name}:{'x'.join(map(str, self.shape))}"
        return f"{hosts}{self.chip.name}:{self.shape[0]}"


def parse_target(text: str) -> AbsentDevices:
    """Parse one target. Raises UsageError with similar names, or with the expected form."""
    match = _SPEC.match(text.strip())
    if match is None:
        raise UsageError(f"cannot read the device {text!r}", "Write h100, h100:8, 4xh100:8 or tpu-v6e:16x16.")
    row = chip(match["name"])
    hosts = int(match["hosts"] or 1)
    count = match["count"]
    if row.vendor == "tpu":
        if match["hosts"]:
            raise UsageError(f"{text}: the shape of a TPU slice determines its hosts", f"Write {row.name}:4x4.")
        shape = tuple(int(size) for size in (count or row.default_shape).split("x"))
        dimensions = row.default_shape.count("x") + 1
        if len(shape) == 1 and count:
            raise UsageError(
                f"{text}: a TPU slice has a shape", f"Write {row.name}:{row.default_shape}, with {dimensions} sizes."
            )
        if len(shape) != dimensions:
            raise UsageError(f"{text}: {row.name} slices have {dimensions} dimensions", f"As {row.default_shape} has.")
    else:
        if count and "x" in count:
            raise UsageError(f"{text}: GPUs are counted", f"Write {row.name}:8, or 4x{row.name}:8 for four hosts.")
        shape = (int(count or 1),)
    target = AbsentDevices(row, hosts, shape, single=not count and hosts == 1)
    if not 1 <= target.devices <= _MOST_DEVICES:
        raise UsageError(
            f"{text}: {target.devices} devices", f"The number of devices must be from 1 to {_MOST_DEVICES}."
        )
    return target


def parse_targets(text: str) -> list[AbsentDevices]:
    """Parse targets separated by commas, each returned once. Raises UsageError."""
    targets = {target.label: target for part in text.split(",") if part.strip() for target in [parse_target(part)]}
    if not targets:
        raise UsageError("no device to compile for", "Write --for h100, or --for h100,a100,tpu-v5e.")
    return list(targets.values())


def parse_mesh(text: str) -> dict[str, int]:
    """Parse the axes of a mesh, `data=4,model=2`, the slowest first as in `jax.make_mesh`. Raises UsageError."""
    axes: dict[str, int] = {}
    for part in text.split(","):
        name, equals, size = (piece.strip() for piece in part.partition("="))
        if not equals or not name.isidentifier() or not size.isdecimal() or len(size) > 6 or int(size) < 1:
            raise UsageError(
                f"cannot read the mesh {text!r}", "Give names and sizes of its axes, as in data=4,model=2."
            )
        if name in axes:
            raise UsageError(f"the mesh {text} has the axis {name} twice", "Give each axis a name of its own.")
        axes[name] = int(size)
    return axes


@frozen(kw_only=True)
class Level:
    """One kind of link between devices."""

    name: str
    """Label of the link: `NVLink 4, 18 links`."""
    devices: int
    bandwidth: float
    """Bytes per second that a unit can send to the others over all its links, and receive at the same time."""
    reduces: bool = False
    """Whether its switches can add what they pass on: an all-reduce then sends an array once instead of twice."""
    document: str


@frozen
class Machine:
    """Devices of one kind, and how they are connected."""

    device: DevicePeaks
    levels: tuple[Level, ...]
    """Levels of links, the innermost first; empty if the devices have no link, or if it is unknown."""


def machine_of(known: DevicePeaks) -> Machine:
    """Return the machine if only the kind of device is known: any number of devices, each one link away."""
    return Machine(known, _links(known))


def machine_for(target: AbsentDevices) -> Machine:
    """Return the machine of a target. Raises UsageError for a device without a row in the table of ceilings."""
    peaks = device(target.chip.name)
    levels = _links(peaks)
    host = ROWS[peaks.name].get("host")
    if target.hosts > 1 and host is not None:
        network = Level(
            name=f"network, {host['nics']} × {host['gigabits']} Gb/s a host",
            devices=target.shape[0],
            bandwidth=host["nics"] * host["gigabits"] * 1e9 / 8,
            document=host["source"],
        )
        levels = (*levels, network)
    return Machine(peaks, levels)


def _links(known: DevicePeaks) -> tuple[Level, ...]:
    """Return the links of a device, or of its chip; none if it has none, or if they are unknown."""
    if known.link_bandwidth is None:
        return ()
    switch = ROWS.get(known.name, {}).get("reducing_switch")
    return (
        Level(
            name=known.link,
            devices=known.devices_per_chip,
            bandwidth=known.link_bandwidth * known.devices_per_chip,
            reduces=switch is not None,
            document=f"{known.source}; {switch}" if switch else known.source,
        ),
    )
