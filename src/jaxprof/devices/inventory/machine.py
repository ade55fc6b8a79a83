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
from dataclasses import replace

from jaxprof.devices import HIDDEN, Device
from jaxprof.devices.inventory.accelerators import bus_accelerators, cuda_obstacle, gpu_obstacle, hindered
from jaxprof.devices.inventory.hardware import MachineHardware, TargetInterpreter, read_machine, read_target
from jaxprof.devices.inventory.visible import settled_order, visible_gpus
from jaxprof.devices.live.host import CpuFacts, read_cpu
from jaxprof.devices.live.nvidia import NvidiaListing, Nvml
from jaxprof.errors import UsageError, unknown_name
from jaxprof.light_dataclass import dataclass

_GPU_PLATFORMS = ("cuda", "rocm")
_DEVICE = re.compile(r"([a-z][a-z_]*)(?::(\d{1,9}))?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """Everything from which the list is made; collected by `gather`, invented in tests."""

    cpu: CpuFacts
    nvidia: NvidiaListing
    machine: MachineHardware
    target: TargetInterpreter
    environment: Mapping[str, str]


def gather(python: str | None = sys.executable) -> Facts:
    """Read the machine. `python` is the interpreter that runs the engine; no process is started in it. With None, what
    is installed there remains unknown: to find that out takes longer than all the rest."""
    return Facts(
        cpu=read_cpu(),
        nvidia=Nvml().listing(),
        machine=read_machine(),
        target=read_target(python) if python is not None else TargetInterpreter(packages=None),
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
        identifier = free_id(extra.id.partition(":")[0], taken)
        taken.append(identifier)
        devices.append(replace(extra, id=identifier))
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
        ordinal = visible.gpus.index(gpu) if gpu in visible.gpus else None
        placed = replace(
            gpu,
            id=f"{HIDDEN}:{position}" if ordinal is None else f"cuda:{ordinal}",
            cuda_ordinal=ordinal if visible.certain else None,
        )
        devices.append(hindered(placed, own if gpu.mig_enabled else general or own))
    return devices


def free_id(platform: str, taken: Container[str], number: int = 0) -> str:
    """Return the first id of the platform, from `number` on, that is not taken."""
    while f"{platform}:{number}" in taken:
        number += 1
    return f"{platform}:{number}"
