"""Describe how devices are connected: chips, hosts, and the network between them, with the sources of all figures.

A machine is a list of levels, the innermost first. A level has units of some devices (a device, a chip of two, a host
of eight), and the bytes per second that one unit can send to the others, in one direction. The bytes that a collective
moves over each level follow from its groups (`jaxprof.devices.targets.exchange`).

The figures are those of reference designs, because a program does not contain those of its cluster. Figures without a
source are left out.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from jaxprof.devices.targets.chips import Chip, chip
from jaxprof.errors import UsageError
from jaxprof.hlo.analysis.cost.peaks import DevicePeaks, device

if TYPE_CHECKING:
    from collections.abc import Mapping

_SPEC = re.compile(r"(?:(?P<hosts>\d{1,9})x)?(?P<name>[A-Za-z][\w-]*?)(?::(?P<count>\d{1,9}(?:x\d{1,9}){0,3}))?$")
_MOST_DEVICES = 16_384


@dataclass(frozen=True, slots=True)
class Target:
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


def parse_target(text: str) -> Target:
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
    target = Target(row, hosts, shape, single=not count and hosts == 1)
    if not 1 <= target.devices <= _MOST_DEVICES:
        raise UsageError(
            f"{text}: {target.devices} devices", f"The number of devices must be from 1 to {_MOST_DEVICES}."
        )
    return target


def parse_targets(text: str) -> list[Target]:
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


_GB: Final = 1e9
_READ: Final = "read 2026-11-21"


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """One kind of link between devices."""

    name: str
    """Label of the link: `NVLink 4, 18 links`."""
    devices: int
    """Number of devices in one unit."""
    bandwidth: float
    """Bytes per second that the unit with most links can send to the others, and receive at the same time."""
    units: int | None = None
    """Number of units, if they have different numbers of links: the chips of a slice; else None."""
    least: float = 0.0
    """Bandwidth of the unit with the fewest links, if `units` is set."""
    mean: float = 0.0
    """Mean bandwidth of a unit, if `units` is set."""
    reduces: bool = False
    """Whether its switches can add what they pass on: an all-reduce then sends an array once instead of twice."""
    document: str


@dataclass(frozen=True, slots=True)
class Machine:
    """Devices of one kind, and how they are connected."""

    device: DevicePeaks
    levels: tuple[Level, ...]
    """Levels of links, the innermost first; empty if the devices have no link, or if it is unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """A computer with several devices, as its vendor builds it."""

    devices: int
    nics: int
    """Number of interfaces to the compute network."""
    nic_bandwidth: float
    """Bytes per second of one interface, in one direction."""
    document: str

    @property
    def bandwidth(self) -> float:
        """Bytes per second that the host can send."""
        return self.nics * self.nic_bandwidth


_DGX_A100: Final = "NVIDIA DGX A100 System Architecture (whitepaper, 2020): 8 ConnectX-6 of 200 Gb/s"
_DGX_H100: Final = (
    "NVIDIA DGX BasePOD reference architecture, Core Components (docs.nvidia.com/dgx-basepod): 8 ConnectX-7 of "
    f"400 Gb/s; {_READ}"
)
_DGX_1: Final = (
    f"NVIDIA DGX-1 With Tesla V100 System Architecture (whitepaper, 2017): 4 InfiniBand EDR of 100 Gb/s; {_READ}"
)
HOSTS: Final[Mapping[str, Host]] = {
    "v100": Host(devices=8, nics=4, nic_bandwidth=12.5 * _GB, document=_DGX_1),
    "a100": Host(devices=8, nics=8, nic_bandwidth=25 * _GB, document=_DGX_A100),
    "a100-40gb": Host(devices=8, nics=8, nic_bandwidth=25 * _GB, document=_DGX_A100),
    "h100": Host(devices=8, nics=8, nic_bandwidth=50 * _GB, document=_DGX_H100),
    "h200": Host(devices=8, nics=8, nic_bandwidth=50 * _GB, document=_DGX_H100),
    "b200": Host(devices=8, nics=8, nic_bandwidth=50 * _GB, document=_DGX_H100),
}
"""The vendor's own host for each device."""

_NVSWITCH_3: Final = (
    "NVIDIA, Upgrading Multi-GPU Interconnectivity with the Third-Generation NVIDIA NVSwitch (developer.nvidia.com/"
    f"blog, 2022): SHARP in-network reductions; {_READ}"
)
_REDUCING_SWITCH: Final = frozenset({"h100", "h200", "b200", "gb200"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Torus:
    """Wiring of the chips of a TPU generation."""

    dimensions: int
    ports: int
    """Number of links of one chip: two in each dimension."""
    whole: int
    """Size at which a dimension is closed to a ring (2D), or of which all dimensions must be multiples (3D)."""
    document: str

    def links(self, shape: tuple[int, ...]) -> tuple[int, float, int]:
        """Return the fewest, the mean and the largest number of links of a chip of a slice.

        Each neighbour takes one link: in an open dimension, the chips at the ends have one, the others two.
        """
        fewest, mean, most = 0, 0.0, 0
        for size, ring in zip(shape, self.rings(shape), strict=True):
            two = 2 if size > 2 else size - 1
            fewest += two if ring else min(1, two)
            mean += two if ring else 2 * (size - 1) / size
            most += two
        return fewest, mean, most

    def rings(self, shape: tuple[int, ...]) -> tuple[bool, ...]:
        """Return which dimensions of a slice are closed to a ring."""
        if self.dimensions == 2:
            return tuple(size == self.whole for size in shape)
        closed = all(size % self.whole == 0 for size in shape)
        return tuple(closed for _ in shape)


_TPU_PAPER: Final = "Jouppi et al., A Domain-Specific Supercomputer for Training DNNs, CACM 63(7), 2020"
_TPU_V4: Final = (
    f"Google Cloud documentation, TPU v4 (docs.cloud.google.com/tpu/docs/v4), 3D mesh and 3D torus; {_READ}"
)
_TPU_V5P: Final = (
    "Google Cloud documentation, TPU v5p (docs.cloud.google.com/tpu/docs/v5p): 4x4x4 and larger slices are 3D tori; "
    f"{_READ}"
)
_TPU_2D: Final = f"Google Cloud documentation, TPU v5e and v6e (docs.cloud.google.com/tpu/docs/v6e): 2D torus; {_READ}"
_TPU_7X: Final = f"Google Cloud documentation, TPU7x (docs.cloud.google.com/tpu/docs/tpu7x); {_READ}"
TORI: Final[Mapping[str, Torus]] = {
    "tpu-v2": Torus(dimensions=2, ports=4, whole=16, document=_TPU_PAPER),
    "tpu-v3": Torus(dimensions=2, ports=4, whole=32, document=_TPU_PAPER),
    "tpu-v4": Torus(dimensions=3, ports=6, whole=4, document=_TPU_V4),
    "tpu-v5e": Torus(dimensions=2, ports=4, whole=16, document=_TPU_2D),
    "tpu-v5p": Torus(dimensions=3, ports=6, whole=4, document=_TPU_V5P),
    "tpu-v6e": Torus(dimensions=2, ports=4, whole=16, document=_TPU_2D),
    "tpu-v7x": Torus(dimensions=3, ports=6, whole=4, document=_TPU_7X),
}


def machine_of(known: DevicePeaks) -> Machine:
    """Return the machine if only the kind of device is known: any number of devices, each one link away."""
    return Machine(known, _links(known, None))


def machine_for(target: Target) -> Machine:
    """Return the machine of a target. Raises UsageError for a device without a row in the table of ceilings."""
    peaks = device(target.chip.name)
    if target.chip.vendor == "tpu":
        return Machine(peaks, _links(peaks, target.shape))
    levels = _links(peaks, None)
    host = HOSTS.get(peaks.name)
    if target.hosts > 1 and host is not None:
        network = Level(
            name=f"network, {host.nics} × {host.nic_bandwidth * 8 / 1e9:.0f} Gb/s a host",
            devices=target.shape[0],
            bandwidth=host.bandwidth,
            document=host.document,
        )
        levels = (*levels, network)
    return Machine(peaks, levels)


def _links(known: DevicePeaks, shape: tuple[int, ...] | None) -> tuple[Level, ...]:
    """Return the links of a device, or of its chip; for a slice of that shape, those that its chips use."""
    if known.link_bandwidth is None:
        return ()
    torus = TORI.get(known.name)
    if torus is None:
        reduces = known.name in _REDUCING_SWITCH
        document = f"{known.source}; {_NVSWITCH_3}" if reduces else known.source
        return (
            Level(
                name=known.link,
                devices=1,
                bandwidth=known.link_bandwidth,
                reduces=reduces,
                document=document,
            ),
        )
    chip, document = known.link_bandwidth * known.devices_per_chip, f"{known.source}; {torus.document}"
    per_port = chip / torus.ports
    level = Level(
        name=known.link,
        devices=known.devices_per_chip,
        bandwidth=chip,
        document=document,
    )
    if shape is None or math.prod(shape) == 1:
        return (level,)
    fewest, mean, most = torus.links(shape)
    in_slice = replace(
        level,
        name=f"ICI, {fewest if fewest == most else f'{fewest} to {most}'} links of {per_port / 1e9:.0f} GB/s",
        bandwidth=most * per_port,
        units=math.prod(shape),
        least=fewest * per_port,
        mean=mean * per_port,
    )
    return (in_slice,)
