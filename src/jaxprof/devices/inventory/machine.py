"""List the devices of this machine: the CPU, NVML's GPUs, and what else the PCI bus has.

There are two steps, so that a screen has something to show at once: `local_devices` asks psutil, NVML and the file
system (milliseconds, no child process), and `merge` adds what JAX reported in a child. Numbers: `cuda:N` is JAX's name
for the device in the user's environment; an NVIDIA GPU that JAX cannot see there is `nvidia:N`, in NVML's order.

JAX's devices are joined with the machine's by UUID or PCI address, never by NVML's number. JAX often reports neither.
Then its device is CUDA's ordinal, which `placement` has already resolved to a GPU from the user's environment; or, if
CUDA's order cannot be known, a product name that only one GPU has. A device that none of these joins stays separate: a
wrong join would show another program's temperature and power.
"""

from __future__ import annotations

import os
import platform
import re
import sys
from collections.abc import Container, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from jaxprof.base.errors import UsageError, unknown_name
from jaxprof.base.private import safe_variables
from jaxprof.base.values import frozen
from jaxprof.devices import HIDDEN, Device
from jaxprof.devices.inventory.accelerators import (
    MachineHardware,
    TargetInterpreter,
    bus_accelerators,
    cuda_obstacle,
    gpu_obstacle,
    read_machine,
    read_target,
    with_obstacle,
)
from jaxprof.devices.inventory.placement import order_variables, visible_gpus
from jaxprof.devices.live.host import CpuFacts, read_cpu
from jaxprof.devices.live.nvidia import NvidiaListing, normal_pci_bus_id, nvml_threads
from jaxprof.events import Scalar

_GPU_PLATFORMS = ("cuda", "rocm")
_DEVICE = re.compile(r"([a-z][a-z_]*)(?::(\d{1,9}))?")


@frozen(kw_only=True)
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
        nvidia=nvml_threads().listing(),
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
    listing = facts.nvidia
    environment = {**facts.environment, **order_variables(facts.environment)}
    general = cuda_obstacle(listing, facts.target, environment)
    visible = visible_gpus(listing.gpus, environment)
    every = [part for gpu in listing.gpus for part in (gpu, *gpu.mig)]
    gpus = []
    taken = [f"{HIDDEN}:{gpu.number}" for gpu in listing.gpus]
    for gpu in every:
        own = gpu_obstacle(gpu, listing, environment)
        ordinal = visible.gpus.index(gpu) if gpu in visible.gpus else None
        if ordinal is not None:
            identifier = f"cuda:{ordinal}"
        else:  # a whole GPU has NVML's number, an instance one that no GPU has
            identifier = gpu.id if gpu in listing.gpus else free_id(HIDDEN, taken)
            taken.append(identifier)
        placed = replace(gpu, id=identifier, cuda_ordinal=ordinal if visible.certain else None)
        gpus.append(with_obstacle(placed, own if gpu.mig_enabled or gpu.fault else general or own))
    devices = [cpu, *gpus]
    taken += [device.id for device in devices]
    for extra in bus_accelerators(facts.machine, facts.nvidia, facts.target, facts.environment):
        identifier = free_id(extra.id.partition(":")[0], taken)
        taken.append(identifier)
        devices.append(replace(extra, id=identifier))
    return in_order(devices)


def in_order(devices: Iterable[Device]) -> tuple[Device, ...]:
    """Return NVIDIA's GPUs as nvidia-smi numbers them, each with its MIG instances; other accelerators, those that JAX
    does not use last; then the CPU."""

    def order(device: Device) -> tuple[object, ...]:
        index, instance = device.nvml_key or (0, None)
        return (
            device.platform == "cpu",
            device.nvml_key is None,
            (index, -1 if instance is None else instance),
            device.used_by_jax is False,
            (device.platform, device.number),
        )

    return tuple(sorted(devices, key=order))


def parse_device(text: str, known: Iterable[str] | None = None) -> str:
    """Return the canonical id for what a user wrote: `gpu:0` is `cuda:0`, `cpu` is `cpu:0`. With the ids that are
    `known`, `gpu` means the kind of GPU that exists, and an id that is not among them raises UsageError naming similar
    ones. Text that is not a device at all raises UsageError in any case."""
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


def free_id(platform: str, taken: Container[str], number: int = 0) -> str:
    """Return the first id of the platform, from `number` on, that is not taken."""
    while f"{platform}:{number}" in taken:
        number += 1
    return f"{platform}:{number}"


Value = Scalar | None | list[dict[str, Scalar | None]] | dict[str, str]

_CONTAINERS = (("/.dockerenv", "docker"), ("/run/.containerenv", "podman"), ("/.singularity.d", "apptainer"))


def environment_facts(facts: Facts | None = None) -> dict[str, Value]:
    """Return the machine's description for a session's header; JSON-ready, None is unknown. Takes as long as `gather`.
    Nothing in it could be a secret or name a person: no user or home folder, no host's address, no path.
    `jaxprof.base.private` decides which environment variables may be kept."""
    facts = gather(python=None) if facts is None else facts
    distribution = None
    with suppress(OSError):  # a system that does not say
        distribution = platform.freedesktop_os_release().get("PRETTY_NAME")
    gpus: list[dict[str, Scalar | None]] = [
        {"name": gpu.kind, "uuid": gpu.uuid, "memory_bytes": gpu.memory_limit_bytes, "mig_enabled": gpu.mig_enabled}
        for gpu in facts.nvidia.gpus
    ]
    return {
        "system": platform.system(),
        "kernel": platform.release(),
        "machine": platform.machine(),
        "distribution": distribution,
        "container": container_hint(facts.environment),
        "python": platform.python_version(),
        "cpu_model": facts.cpu.model,
        "cores": facts.cpu.usable_cores,
        "machine_cores": facts.cpu.machine_cores,
        "memory_bytes": facts.cpu.memory_bytes,
        "gpus": None if facts.nvidia.late else gpus,
        "nvidia_driver": facts.nvidia.driver or facts.machine.nvidia_driver,
        "cuda_driver": facts.nvidia.cuda,
        "variables": safe_variables(facts.environment),
    }


def container_hint(environment: Mapping[str, str]) -> str | None:
    """Return `docker`, `podman`, `apptainer` or `kubernetes`; None if nothing indicates a container."""
    if "KUBERNETES_SERVICE_HOST" in environment:
        return "kubernetes"
    for path, name in _CONTAINERS:
        if Path(path).exists():
            return name
    return None


def merge(local: Sequence[Device], answer: Mapping[str, Any]) -> tuple[Device, ...]:
    """Return `local` with the engine's answer to a `DevicesRequest` laid over it.

    `answer` holds `devices` (one mapping each: id, platform, kind, process, core_count, ...), `errors` (platform →
    JAX's error when it could not start it), `default` (an id) and `process_index`. Missing keys are unknown. A device
    that JAX lists gets JAX's id; one that JAX does not list gets `used_by_jax=False` with the reason.
    """
    rest = list(local)
    joined: list[Device] = []
    own_process = answer.get("process_index") or 0
    reported = [_jax_device(described) for described in answer.get("devices") or []]
    platforms = [device.platform for device in reported]
    for theirs, described in zip(reported, answer.get("devices") or [], strict=True):
        here = theirs.process in (None, own_process)
        match = _match(theirs, rest, described.get("local_hardware_id")) if here else None
        if (
            theirs.platform == "rocm" and platforms.count("rocm") == 1
        ):  # JAX reports nothing that would distinguish several
            match = _only([device for device in rest if device.platform == "rocm"])
        if match is not None:
            rest.remove(match)
        elif here and theirs.platform == "cpu":  # several CPU devices on one machine share the same cores
            match = next((device for device in joined if device.platform == "cpu"), None)
        is_default = theirs.id == answer.get("default")
        joined.append(replace(_combine(match, theirs), is_default=is_default))
    taken = {device.id for device in joined}
    # JAX reports no address of TPUs and AMD GPUs, so they are only counted: if it lists fewer than the machine has,
    # that many are unused, and which ones is unknown.
    kept = []
    for name in dict.fromkeys(device.platform for device in rest):
        unmatched = [device for device in rest if device.platform == name]
        listed = [device for device in joined if device.platform == name and device.process in (None, own_process)]
        if name not in ("cpu", "cuda") and listed:
            alone = [device for device in listed if device.pci_bus_id is None]
            reason = f"JAX lists {len(listed)} of the {len(unmatched) + len(listed) - len(alone)} that the machine has"
            unmatched = [replace(device, pci_bus_id=None, reason=reason, hint="") for device in unmatched[len(alone) :]]
        kept += unmatched
    rest = kept
    errors = answer.get("errors") or {}
    unused = []
    unjoined = any(name.startswith("cuda:") for name in taken)
    for device in rest:
        error = str(errors.get(device.platform) or "").strip()
        reason = device.reason or (f"JAX could not start it: {error}" if error else "JAX does not list it")
        if not device.reason and not error and unjoined and device.cuda_ordinal is None and device.platform == "cuda":
            reason = "JAX does not report enough to match this device"
        identifier = device.id
        if identifier in taken:  # its number was a forecast, and JAX gave that number to another one
            platform = HIDDEN if device.platform == "cuda" else device.platform
            identifier = free_id(platform, taken, device.nvml_key[0] if device.nvml_key is not None else 0)
        taken.add(identifier)
        unused.append(replace(device, id=identifier, used_by_jax=False, reason=reason))
    return in_order([*joined, *unused])


def _jax_device(reported: Mapping[str, Any]) -> Device:
    identifier = str(reported["id"])
    platform = str(reported.get("platform") or identifier.partition(":")[0])
    return Device(
        id=identifier,
        platform=platform,
        kind=_value_of(reported, "kind", str),
        process=_value_of(reported, "process", int),
        memory_used_bytes=_value_of(reported, "memory_in_use_bytes", int),
        allocator_limit_bytes=_value_of(reported, "memory_limit_bytes", int),
        core_count=_value_of(reported, "core_count", float),
        compute_capability=_value_of(reported, "compute_capability", str),
        uuid=_value_of(reported, "uuid", str),
        pci_bus_id=normal_pci_bus_id(_value_of(reported, "pci_bus_id", str)),
        used_by_jax=True,
    )


def _match(theirs: Device, rest: Sequence[Device], ordinal: int | None) -> Device | None:
    """Return the device among `rest`, as the machine describes them, that is JAX's `theirs`; None unless that is
    certain. `ordinal`: CUDA's number for it, if JAX reports that."""
    candidates = [device for device in rest if device.platform == theirs.platform]
    if theirs.platform == "cpu":
        return candidates[0] if candidates else None
    if theirs.uuid is not None:
        uuid = theirs.uuid.lower().removeprefix("gpu-")  # CUDA writes it with or without this
        return _only([each for each in candidates if (each.uuid or "").lower().removeprefix("gpu-") == uuid])
    if theirs.pci_bus_id is not None:
        return _only([device for device in candidates if device.pci_bus_id == theirs.pci_bus_id])
    if theirs.platform != "cuda":
        return None
    number = theirs.number if ordinal is None else ordinal
    of_kind = [device for device in candidates if device.kind == theirs.kind] or candidates
    placed = _only([device for device in of_kind if device.cuda_ordinal == number])
    return placed or _only([device for device in of_kind if device.cuda_ordinal is None and device.id[:5] == "cuda:"])


def _combine(ours: Device | None, theirs: Device) -> Device:
    if ours is None:
        return replace(theirs, memory_limit_bytes=theirs.allocator_limit_bytes)
    cpu = theirs.platform == "cpu"
    return replace(
        ours,
        id=theirs.id,
        kind=ours.kind or theirs.kind,
        process=theirs.process,
        memory_used_bytes=ours.memory_used_bytes if ours.memory_used_bytes is not None else theirs.memory_used_bytes,
        memory_limit_bytes=ours.memory_limit_bytes or theirs.allocator_limit_bytes,
        allocator_limit_bytes=theirs.allocator_limit_bytes,
        core_count=ours.core_count if cpu else theirs.core_count,
        compute_capability=ours.compute_capability or theirs.compute_capability,
        uuid=ours.uuid or theirs.uuid,
        pci_bus_id=ours.pci_bus_id or theirs.pci_bus_id,
        used_by_jax=True,
        reason="",
        hint="",
    )


def _only(devices: Sequence[Device]) -> Device | None:
    return devices[0] if len(devices) == 1 else None


def _value_of(reported: Mapping[str, Any], key: str, kind: type[Any]) -> Any:
    """Return the value as `kind`; None if it is missing or has another type."""
    value = reported.get(key)
    if value is None:
        return None
    try:
        return kind(value)
    except (TypeError, ValueError):
        return None
