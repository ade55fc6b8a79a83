"""Find which GPUs CUDA shows to a process, in which order, by reading `CUDA_VISIBLE_DEVICES` as the CUDA driver does.

JAX's `cuda:0` is the first GPU of that list, not NVML's number 0. Entries are NVML-like indices, UUIDs or beginnings of
UUIDs (`GPU-8932f937`), and MIG instances (`MIG-<uuid>`, or the older `MIG-GPU-<uuid>/<gpu instance>/<compute
instance>`). The first entry that names nothing ends the list. Rules: NVIDIA, CUDA Programming Guide, "CUDA Environment
Variables", and the MIG User Guide, "Device Enumeration".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from jaxprof.devices import Device
from jaxprof.light_dataclass import dataclass

VARIABLE = "CUDA_VISIBLE_DEVICES"
ORDER_VARIABLE = "CUDA_DEVICE_ORDER"


@dataclass(frozen=True, slots=True)
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
        whole = tuple(gpu for gpu in gpus if not gpu.mig_enabled)
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


def settled_order(environment: Mapping[str, str]) -> dict[str, str]:
    """Return variables to add to `environment` so that CUDA numbers by PCI address, as nvidia-smi does, not by speed.

    Empty if the user chose: indices in `CUDA_VISIBLE_DEVICES` would mean other GPUs in another order.
    """
    chosen = ORDER_VARIABLE in environment or VARIABLE in environment
    return {} if chosen else {ORDER_VARIABLE: "PCI_BUS_ID"}


def hides_all(environment: Mapping[str, str]) -> bool:
    """Return whether the variable hides all GPUs: empty, `-1` or `NoDevFiles`."""
    value = environment.get(VARIABLE)
    return value is not None and value.split(",")[0].strip() in ("", "-1", "NoDevFiles")


def _find(entry: str, gpus: Sequence[Device]) -> Device | None:
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
