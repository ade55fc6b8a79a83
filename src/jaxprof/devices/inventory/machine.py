"""List the devices of this machine: the CPU, NVML's GPUs, and what else the PCI bus has.

There are two steps, so that a screen has something to show at once: `local_devices` asks psutil, NVML and the file
system (milliseconds, no child process), and `join.merge` adds what JAX reported in a child. Numbers: `cuda:N` is JAX's
name for the device in the user's environment; an NVIDIA GPU that JAX cannot see there is `nvidia:N`, in NVML's order.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Container, Iterable, Mapping

from jaxprof.devices.inventory.accelerators import Obstacle, bus_accelerators, cuda_obstacle, gpu_obstacle
from jaxprof.devices.inventory.hardware import MachineHardware, TargetInterpreter, read_machine, read_target
from jaxprof.devices.inventory.visible import settled_order, visible_gpus
from jaxprof.devices.live.host import CpuFacts, read_cpu
from jaxprof.devices.live.nvidia import Gpu, NvidiaListing, Nvml
from jaxprof.errors import UsageError, unknown_name
from jaxprof.light_dataclass import dataclass

HIDDEN = "nvidia"
"""Platform in the id of an NVIDIA GPU that has no number in JAX."""

_GPU_PLATFORMS = ("cuda", "rocm")
_DEVICE = re.compile(r"([a-z][a-z_]*)(?::(\d{1,9}))?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """One device. A field is None if it is unknown, or does not apply."""

    id: str
    """Id of the device: `platform:number`."""
    platform: str
    """Platform: `cpu`, `cuda`, `rocm`, `tpu`, `metal`."""
    kind: str | None = None
    """Product name: `NVIDIA H200`, `AMD EPYC 9654`."""
    process: int | None = None
    """JAX's process index, in a program of several processes."""
    memory_used_bytes: int | None = None
    memory_limit_bytes: int | None = None
    """All of the device's memory (for the CPU: the machine's, or the cgroup's limit)."""
    memory_free_bytes: int | None = None
    allocator_limit_bytes: int | None = None
    """Largest amount of memory that JAX's allocator would take."""
    core_count: float | None = None
    """For a CPU, cores that this process may use, a fraction under a quota; for an accelerator, as JAX reports."""
    compute_capability: str | None = None
    uuid: str | None = None
    pci_bus_id: str | None = None
    nvml_key: tuple[int, int | None] | None = None
    """Key by which NVML finds the device."""
    cuda_ordinal: int | None = None
    """CUDA's number for the device in the user's environment, if that can be known."""
    used_by_jax: bool | None = None
    """Whether JAX uses the device; None until JAX was asked, unless something already rules it out."""
    reason: str = ""
    """Why JAX does not use it."""
    hint: str = ""
    """What fixes that: a command, or a sentence."""

    @property
    def number(self) -> int:
        """Number in its id."""
        return int(self.id.rpartition(":")[2])


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """Everything from which the list is made; collected by `gather`, invented in tests."""

    cpu: CpuFacts
    nvidia: NvidiaListing
    machine: MachineHardware
    target: TargetInterpreter
    environment: Mapping[str, str]


def gather(python: str = sys.executable, nvml: Nvml | None = None) -> Facts:
    """Read the machine. `python` is the interpreter that runs the engine; no process is started in it."""
    return Facts(
        cpu=read_cpu(),
        nvidia=(nvml or Nvml()).listing(),
        machine=read_machine(),
        target=read_target(python),
        environment=dict(os.environ),
    )


def local_devices(facts: Facts | None = None) -> tuple[Device, ...]:
    """Return the devices of this machine, without asking JAX: accelerators, the CPU, then what JAX cannot use."""
    facts = gather() if facts is None else facts
    cpu = Device(
        id="cpu:0",
        platform="cpu",
        kind=facts.cpu.model,
        memory_limit_bytes=facts.cpu.memory_bytes,
        core_count=facts.cpu.usable_cores,
    )
    devices = [cpu, *_nvidia_devices(facts)]
    taken = [device.id for device in devices]
    for extra in bus_accelerators(facts.machine, facts.nvidia, facts.target, facts.environment):
        name = HIDDEN if extra.platform == "cuda" else extra.platform
        identifier = free_id(name, taken)
        taken.append(identifier)
        devices.append(
            Device(
                id=identifier,
                platform=extra.platform,
                kind=extra.kind,
                pci_bus_id=extra.pci_bus_id,
                **Obstacle.facts(extra.obstacle),
            )
        )
    return in_order(devices)


def in_order(devices: Iterable[Device]) -> tuple[Device, ...]:
    """Return accelerators first, then the CPU, then what JAX does not use."""
    return tuple(
        sorted(
            devices,
            key=lambda device: (device.used_by_jax is False, device.platform == "cpu", device.platform, device.number),
        )
    )


def parse_device(text: str, known: Iterable[str] | None = None) -> str:
    """Return the canonical id for what a user wrote: `gpu:0` is `cuda:0`, `cpu` is `cpu:0`.

    With the ids that are `known`, `gpu` means the kind of GPU that exists, and an id that is not among them raises
    UsageError naming similar ones. Text that is not a device at all raises UsageError in any case.
    """
    choices = None if known is None else list(known)
    match = _DEVICE.fullmatch(text.strip().lower())
    if match is None:
        hint = f"Known: {', '.join(choices)}." if choices else "A device is written platform:number, such as cpu:0."
        raise UsageError(f"{text!r} is not a device", hint)
    number = int(match.group(2) or 0)
    candidates = [f"{candidate}:{number}" for candidate in platforms_of(text)]
    if choices is None:
        return candidates[0]
    for candidate in candidates:
        if candidate in choices:
            return candidate
    present = {choice.partition(":")[0] for choice in choices}
    meant = next((candidate for candidate in candidates if candidate.partition(":")[0] in present), candidates[0])
    raise UsageError(f"unknown device {text!r}", unknown_name("device", meant, choices).hint)


def platforms_of(text: str) -> tuple[str, ...]:
    """Return the platforms that a device written by a user may belong to: `gpu:0` may be any kind of GPU."""
    platform = text.strip().lower().partition(":")[0]
    return _GPU_PLATFORMS if platform == "gpu" else (platform,)


def _nvidia_devices(facts: Facts) -> list[Device]:
    listing = facts.nvidia
    environment = {**facts.environment, **settled_order(facts.environment)}
    general = cuda_obstacle(listing, facts.target, environment)
    visible = visible_gpus(listing.gpus, environment)
    every = [part for gpu in listing.gpus for part in (gpu, *gpu.mig)]
    devices = []
    for position, gpu in enumerate(every):
        own = gpu_obstacle(gpu, listing, environment)
        obstacle = own if gpu.mig_enabled else general or own
        ordinal = visible.gpus.index(gpu) if gpu in visible.gpus else None
        devices.append(_nvidia_device(gpu, position, ordinal, visible.certain, obstacle))
    return devices


def _nvidia_device(gpu: Gpu, position: int, ordinal: int | None, certain: bool, obstacle: Obstacle | None) -> Device:
    return Device(
        id=f"{HIDDEN}:{position}" if ordinal is None else f"cuda:{ordinal}",
        platform="cuda",
        kind=gpu.name,
        memory_used_bytes=gpu.memory_used_bytes,
        memory_limit_bytes=gpu.memory_bytes,
        memory_free_bytes=gpu.memory_free_bytes,
        compute_capability=gpu.compute_capability,
        uuid=gpu.uuid,
        pci_bus_id=gpu.pci_bus_id,
        nvml_key=gpu.key,
        cuda_ordinal=ordinal if certain else None,
        **Obstacle.facts(obstacle),
    )


def free_id(platform: str, taken: Container[str], number: int = 0) -> str:
    """Return the first id of the platform, from `number` on, that is not taken."""
    while f"{platform}:{number}" in taken:
        number += 1
    return f"{platform}:{number}"
