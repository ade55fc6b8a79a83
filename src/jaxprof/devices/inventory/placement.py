"""Say which GPUs CUDA shows to a process, and set the environment of a worker: its one device, the others left alone,
and no more of a GPU's memory than is free.

`CUDA_VISIBLE_DEVICES` is read as the CUDA driver does. JAX's `cuda:0` is the first GPU of that list, not NVML's number
0. Entries are NVML-like indices, UUIDs or beginnings of UUIDs (`GPU-8932f937`), and MIG instances (`MIG-<uuid>`, or the
older `MIG-GPU-<uuid>/<gpu instance>/<compute instance>`). The first entry that names nothing ends the list. Rules:
NVIDIA, CUDA Programming Guide, "CUDA Environment Variables", and the MIG User Guide, "Device Enumeration".

JAX takes 75 % of a GPU's memory at the first use, and a process that prefers the CPU still takes some on every GPU that
it sees. Both are controlled by variables that must be set before jax is imported. Names and defaults: JAX
documentation, "GPU memory allocation".
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence

from jaxprof.base import units
from jaxprof.base.errors import UsageError, unknown_name
from jaxprof.base.text import number
from jaxprof.base.values import frozen
from jaxprof.devices import Device

VARIABLE = "CUDA_VISIBLE_DEVICES"
ORDER_VARIABLE = "CUDA_DEVICE_ORDER"


@frozen
class Visible:
    """GPUs and MIG instances in CUDA's order."""

    gpus: tuple[Device, ...]
    certain: bool = True
    """False if CUDA numbers by speed and the GPUs differ: then only CUDA knows which GPU is its number 0."""


def visible_gpus(gpus: Sequence[Device], environment: Mapping[str, str]) -> Visible:
    """Return the GPUs of `gpus` (in NVML's order) that a process with `environment` would see."""
    by_bus = environment.get(ORDER_VARIABLE, "") == "PCI_BUS_ID"
    alike = len({gpu.kind for gpu in gpus}) <= 1
    value = environment.get(VARIABLE)
    if value is None:
        whole = tuple(gpu for gpu in gpus if not gpu.mig_enabled and not gpu.fault)
        if whole:
            return Visible(whole, by_bus or alike)
        instances = [instance for gpu in gpus for instance in gpu.mig]
        return Visible(tuple(instances[:1]), certain=len(instances) <= 1)  # CUDA takes one instance without being asked
    visible: list[Device] = []
    certain = True
    for entry in value.split(","):
        gpu = _find(entry.strip(), gpus)
        if gpu is not None and gpu.mig_enabled:  # CUDA takes an instance of it without being asked
            certain = certain and len(gpu.mig) == 1
            gpu = gpu.mig[0] if gpu.mig else None
        if gpu is None or gpu in visible:
            break
        certain = certain and (by_bus or alike or not entry.strip().isdigit())
        visible.append(gpu)
    return Visible(tuple(visible), certain)


def order_variables(environment: Mapping[str, str]) -> dict[str, str]:
    """Return variables to add to `environment` so that CUDA numbers by PCI address, as nvidia-smi does, not by speed.
    Empty if the user chose: indices in `CUDA_VISIBLE_DEVICES` would mean other GPUs in another order."""
    chosen = ORDER_VARIABLE in environment or VARIABLE in environment
    return {} if chosen else {ORDER_VARIABLE: "PCI_BUS_ID"}


def hides_all(environment: Mapping[str, str]) -> bool:
    """Return whether the variable hides all GPUs: empty, `-1` or `NoDevFiles`."""
    value = environment.get(VARIABLE)
    return value is not None and value.split(",")[0].strip() in ("", "-1", "NoDevFiles")


def _find(entry: str, gpus: Sequence[Device]) -> Device | None:
    """Return the device that an entry of `CUDA_VISIBLE_DEVICES` names: a number, or the beginning of a UUID. None if it
    names none, or several."""
    if entry.isdigit():
        return gpus[int(entry)] if int(entry) < len(gpus) else None
    lower = entry.lower()
    if lower.startswith("gpu-"):
        candidates = list(gpus)
    elif lower.startswith("mig-"):
        candidates = [instance for gpu in gpus for instance in gpu.mig]
    else:
        return None
    matches = [gpu for gpu in candidates if gpu.uuid is not None and gpu.uuid.lower().startswith(lower)]
    exact = [gpu for gpu in matches if gpu.uuid is not None and gpu.uuid.lower() == lower]
    chosen = exact or matches
    return chosen[0] if len(chosen) == 1 else None


PREALLOCATE = "XLA_PYTHON_CLIENT_PREALLOCATE"
FRACTIONS = ("XLA_CLIENT_MEM_FRACTION", "XLA_PYTHON_CLIENT_MEM_FRACTION")
"""Variables that hold the share of memory to preallocate, the newer name first."""
ALLOCATOR = "XLA_PYTHON_CLIENT_ALLOCATOR"
DEFAULT_FRACTION = 0.75  # JAX documentation, "GPU memory allocation"
OF_A_DEVICE = frozenset({"JAX_PLATFORMS", VARIABLE, ORDER_VARIABLE})
"""Variables that leave a worker its one device."""


@frozen(kw_only=True)
class WorkerEnvironment:
    """Environment of one worker: variables laid over ours, the device as JAX names it there, and notes about it."""

    environment: dict[str, str]
    device: str
    notes: tuple[str, ...] = ()


def worker_environment(
    device: str, devices: Iterable[Device], environment: Mapping[str, str] | None = None
) -> WorkerEnvironment:
    """Return the variables for a worker on the device with that id, from `devices`. Raises UsageError for a device that
    is not listed (naming similar ones) or that JAX does not use (with what fixes that)."""
    ours = os.environ if environment is None else environment
    by_id = {candidate.id: candidate for candidate in devices}
    chosen = by_id.get(device)
    if chosen is None:
        raise unknown_name("device", device, by_id)
    if chosen.platform == "cpu":
        return WorkerEnvironment(environment={"JAX_PLATFORMS": "cpu"}, device=device)
    if chosen.used_by_jax is False:
        raise UsageError(f"JAX does not use {device}: {chosen.reason}", chosen.hint)
    # The CPU stays visible beside the accelerator: that costs nothing, and programs use it (host callbacks, checks).
    variables = {"JAX_PLATFORMS": f"{chosen.platform},cpu"}
    if chosen.platform not in ("cuda", "rocm"):
        return WorkerEnvironment(environment=variables, device=device)
    name = device
    if chosen.platform == "cuda":
        variables |= _only_this(chosen, ours)
        name = "cuda:0"  # the only GPU of a process is always the first
    note = preallocation_note(chosen, ours)
    if note:
        variables[PREALLOCATE] = "false"
    return WorkerEnvironment(environment=variables, device=name, notes=(note,) if note else ())


def preallocation_note(device: Device, environment: Mapping[str, str]) -> str:
    """Return why preallocation must be off on `device`, as a sentence; empty if it may stay on, or is unknown."""
    total, free = device.memory_limit_bytes, device.memory_free_bytes
    off = environment.get(PREALLOCATE, "").strip().lower() in ("0", "false")
    off = off or environment.get(ALLOCATOR, "").strip().lower() == "platform"
    if total is None or free is None or off:
        return ""
    fraction = DEFAULT_FRACTION
    for name in FRACTIONS:
        # Text that is not a share leaves the default: JAX rejects it.
        if (stated := number(environment.get(name, ""))) is not None and stated > 0:
            fraction = stated
            break
    if fraction * total <= free:
        return ""
    return (
        f"{device.id} has {units.bytes_(free)} free of {units.bytes_(total)}, and JAX would take "
        f"{units.bytes_(fraction * total)} ({units.percent(fraction)}) at its first use: "
        f"preallocation is off for this run ({PREALLOCATE}=false)."
    )


def _only_this(device: Device, environment: Mapping[str, str]) -> dict[str, str]:
    """Return CUDA's variables that leave only this GPU visible: by UUID, if known, which no renumbering affects. If JAX
    was not asked and CUDA's order is unknown, the number is the user's, and so the user's entry stays."""
    settled = device.used_by_jax is True or device.cuda_ordinal is not None
    if not settled:
        return _users_entry(device.number, environment)
    if device.uuid is not None and device.uuid.upper().startswith(("GPU-", "MIG-")):
        return {VARIABLE: device.uuid}
    if device.uuid is not None:
        return {VARIABLE: f"GPU-{device.uuid}"}
    if device.nvml_key is not None and device.nvml_key[1] is None:
        return {VARIABLE: str(device.nvml_key[0]), ORDER_VARIABLE: "PCI_BUS_ID"}
    return _users_entry(device.number, environment)


def _users_entry(number: int, environment: Mapping[str, str]) -> dict[str, str]:
    entries = [entry.strip() for entry in environment.get(VARIABLE, "").split(",") if entry.strip()]
    entry = entries[number] if number < len(entries) else str(number)
    return {VARIABLE: entry, **order_variables(environment)}
