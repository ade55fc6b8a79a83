"""Facts of machines that are not here."""

from __future__ import annotations

from dataclasses import replace

from jaxprof.devices.inventory.hardware import MachineHardware, PciDevice, TargetInterpreter
from jaxprof.devices.inventory.machine import Facts
from jaxprof.devices.live.host import CpuFacts
from jaxprof.devices.live.nvidia import Gpu, NvidiaListing

GIB = 1024**3
PYTHON = "/home/me/venv/bin/python"
EXTRAS = ("tpu", "cuda", "cuda12", "cuda13", "rocm7-local")
CPU = CpuFacts(
    model="AMD EPYC 9654",
    cores=tuple(range(16)),
    quota_cores=None,
    machine_cores=16,
    memory_bytes=128 * GIB,
    frequency_limit_hertz=3.7e9,
)


def gpu(index: int, name: str = "NVIDIA H200", free: int = 130 * GIB, capability: str = "9.0") -> Gpu:
    letter = "abcdefgh"[index]
    return Gpu(
        index=index,
        name=name,
        uuid=f"GPU-{letter}{letter}{letter}{letter}",
        pci_bus_id=f"0000:{index + 1:02x}:00.0",
        memory_bytes=140 * GIB,
        memory_used_bytes=140 * GIB - free,
        memory_free_bytes=free,
        compute_capability=capability,
        mig_enabled=False,
    )


def split(index: int, instances: int) -> Gpu:
    whole = gpu(index)
    parts = tuple(
        replace(whole, mig_index=n, uuid=f"MIG-{n}", name=f"{whole.name} MIG 1g.18gb", mig_enabled=None)
        for n in range(instances)
    )
    return replace(whole, mig_enabled=True, mig=parts)


def target(
    jax: str = "0.10.2", python: str = PYTHON, extras: tuple[str, ...] = EXTRAS, **plugins: str
) -> TargetInterpreter:
    """An interpreter with jax; `cuda12="0.10.2"` is the plugin of that name, `libtpu="0.0.42"` the package."""
    packages = {"jax": jax, "jaxlib": jax}
    for name, version in plugins.items():
        packages["libtpu" if name == "libtpu" else f"jax-{name}-plugin"] = version
    return TargetInterpreter(python=python, packages=packages, jax_extras=extras)


def facts(
    *gpus: Gpu,
    driver: str | None = "580.65.06",
    environment: dict[str, str] | None = None,
    installed: TargetInterpreter | None = None,
    machine: MachineHardware | None = None,
) -> Facts:
    return Facts(
        cpu=CPU,
        nvidia=NvidiaListing(gpus=gpus, driver=driver),
        machine=machine or MachineHardware(),
        target=installed or target(cuda13="0.10.2"),
        environment=environment or {},
    )


def on_bus(vendor: int, device: int = 0x2335, class_code: int = 0x030200, bus: int = 1) -> PciDevice:
    return PciDevice(f"0000:{bus:02x}:00.0", vendor, device, class_code)
