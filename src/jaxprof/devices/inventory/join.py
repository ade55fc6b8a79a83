"""Join JAX's devices and the machine's into one list: by UUID or PCI address, never by NVML's number.

JAX often reports neither. Then its device is CUDA's ordinal, which `visible` has already resolved to a GPU from the
user's environment; or, if CUDA's order cannot be known, a product name that only one GPU has. A device that none of
these joins stays separate: a wrong join would show another program's temperature and power.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from jaxprof.devices import HIDDEN, Device
from jaxprof.devices.inventory.machine import free_id, in_order
from jaxprof.devices.live.nvidia import normal_pci_bus_id


def merge(local: Sequence[Device], answer: Mapping[str, Any]) -> tuple[Device, ...]:
    """Return `local` with the engine's answer to a `DevicesRequest` laid over it.

    `answer` holds `devices` (one mapping each: id, platform, kind, process, core_count, ...), `errors` (platform →
    JAX's error when it could not start it), `default` (an id) and `process_index`. Missing keys are unknown. A device
    that JAX lists gets JAX's id; one that JAX does not list gets `used_by_jax=False` with the reason.
    """
    rest = list(local)
    joined: list[Device] = []
    own_process = answer.get("process_index") or 0
    for described in answer.get("devices") or []:
        theirs = _jax_device(described)
        here = theirs.process in (None, own_process)
        match = _match(theirs, rest, described.get("local_hardware_id")) if here else None
        if match is not None:
            rest.remove(match)
        elif here and theirs.platform == "cpu":  # several CPU devices on one machine share the same cores
            match = next((device for device in joined if device.platform == "cpu"), None)
        is_default = theirs.id == answer.get("default")
        joined.append(replace(_joined(match, theirs), is_default=is_default))
    taken = {device.id for device in joined}
    rest = _not_counted(rest, joined, own_process)
    errors = answer.get("errors") or {}
    return in_order([*joined, *_unused(rest, taken, errors)])


def _not_counted(rest: Sequence[Device], joined: Sequence[Device], own_process: int) -> list[Device]:
    """Return `rest` without the TPUs and AMD GPUs that correspond to JAX's devices without a match.

    JAX reports no address for them, so they are only counted: if it lists fewer than the machine has, that many are
    unused, and which ones is unknown.
    """
    kept = []
    for platform in dict.fromkeys(device.platform for device in rest):
        ours = [device for device in rest if device.platform == platform]
        theirs = [device for device in joined if device.platform == platform and device.process in (None, own_process)]
        if platform not in ("cpu", "cuda") and theirs:
            alone = [device for device in theirs if device.pci_bus_id is None]
            reason = f"JAX lists {len(theirs)} of the {len(ours) + len(theirs) - len(alone)} that the machine has"
            ours = [replace(device, pci_bus_id=None, reason=reason, hint="") for device in ours[len(alone) :]]
        kept += ours
    return kept


def _jax_device(reported: Mapping[str, Any]) -> Device:
    identifier = str(reported["id"])
    platform = str(reported.get("platform") or identifier.partition(":")[0])
    return Device(
        id=identifier,
        platform=platform,
        kind=_known(reported, "kind", str),
        process=_known(reported, "process", int),
        memory_used_bytes=_known(reported, "memory_in_use_bytes", int),
        allocator_limit_bytes=_known(reported, "memory_limit_bytes", int),
        core_count=_known(reported, "core_count", float),
        compute_capability=_known(reported, "compute_capability", str),
        uuid=_known(reported, "uuid", str),
        pci_bus_id=normal_pci_bus_id(_known(reported, "pci_bus_id", str)),
        used_by_jax=True,
    )


def _match(theirs: Device, rest: Sequence[Device], ordinal: int | None) -> Device | None:
    candidates = [device for device in rest if device.platform == theirs.platform]
    if theirs.platform == "cpu":
        return candidates[0] if candidates else None
    if theirs.uuid is not None:
        return _only([device for device in candidates if _same_uuid(device.uuid, theirs.uuid)])
    if theirs.pci_bus_id is not None:
        return _only([device for device in candidates if device.pci_bus_id == theirs.pci_bus_id])
    if theirs.platform != "cuda":
        return None
    number = theirs.number if ordinal is None else ordinal
    of_kind = [device for device in candidates if device.kind == theirs.kind] or candidates
    placed = _only([device for device in of_kind if device.cuda_ordinal == number])
    return placed or _only([device for device in of_kind if device.cuda_ordinal is None and device.id[:5] == "cuda:"])


def _joined(ours: Device | None, theirs: Device) -> Device:
    """Return one device with JAX's description of itself, and the machine's description of the hardware."""
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


def _unused(rest: Sequence[Device], taken: set[str], errors: Mapping[str, Any]) -> list[Device]:
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
    return unused


def _only(devices: Sequence[Device]) -> Device | None:
    return devices[0] if len(devices) == 1 else None


def _same_uuid(ours: str | None, theirs: str) -> bool:
    """Return whether two UUIDs are the same: CUDA writes them with or without `GPU-`."""
    return ours is not None and ours.lower().removeprefix("gpu-") == theirs.lower().removeprefix("gpu-")


def _known(reported: Mapping[str, Any], key: str, kind: type[Any]) -> Any:
    """Return the value as `kind`; None if it is missing or has another type."""
    value = reported.get(key)
    if value is None:
        return None
    try:
        return kind(value)
    except (TypeError, ValueError):
        return None
