"""Facts of machines that are not here. A pynvml to hold against the adapter: answers from a table, errors where a test
wants them."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any

from jaxprof.devices import Device
from jaxprof.devices.inventory.accelerators import MachineHardware, PciDevice, TargetInterpreter
from jaxprof.devices.inventory.machine import Facts
from jaxprof.devices.live.host import CpuFacts
from jaxprof.devices.live.nvidia import NvidiaListing

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


def gpu(index, name="NVIDIA H200", free=130 * GIB, capability="9.0"):
    letter = "abcdefgh"[index]
    return Device(
        id=f"nvidia:{index}",
        platform="cuda",
        nvml_key=(index, None),
        kind=name,
        uuid=f"GPU-{letter}{letter}{letter}{letter}",
        pci_bus_id=f"0000:{index + 1:02x}:00.0",
        memory_limit_bytes=140 * GIB,
        memory_used_bytes=140 * GIB - free,
        memory_free_bytes=free,
        compute_capability=capability,
        mig_enabled=False,
    )


def split(index, instances):
    whole = gpu(index)
    parts = tuple(
        replace(whole, nvml_key=(index, n), uuid=f"MIG-{n}", kind=f"{whole.kind} MIG 1g.18gb", mig_enabled=None)
        for n in range(instances)
    )
    return replace(whole, mig_enabled=True, mig=parts)


def target(jax="0.10.2", python=PYTHON, extras=EXTRAS, **plugins):
    """An interpreter with jax; `cuda12="0.10.2"` is the plugin of that name, `libtpu="0.0.42"` the package."""
    packages = {"jax": jax, "jaxlib": jax}
    for name, version in plugins.items():
        packages["libtpu" if name == "libtpu" else f"jax-{name}-plugin"] = version
    return TargetInterpreter(python=python, packages=packages, jax_extras=extras)


def facts(*gpus, driver="580.65.06", environment=None, installed=None, machine=None):
    return Facts(
        cpu=CPU,
        nvidia=NvidiaListing(gpus=gpus, driver=driver),
        machine=machine or MachineHardware(),
        target=installed or target(cuda13="0.10.2"),
        environment=environment or {},
    )


def on_bus(vendor, device=0x2335, class_code=0x030200, bus=1):
    return PciDevice(f"0000:{bus:02x}:00.0", vendor, device, class_code)


UUID_A = "GPU-aaaaaaaa-0000-0000-0000-000000000000"
UUID_B = "GPU-bbbbbbbb-0000-0000-0000-000000000000"


class NVMLError(Exception):
    """As pynvml's: one class, with the meaning in its value."""


NOT_SUPPORTED = NVMLError("Not Supported")
NO_PERMISSION = NVMLError("Insufficient Permissions")
GPU_IS_LOST = NVMLError("GPU is lost")
FUNCTION_NOT_FOUND = NVMLError("Function Not Found")


@dataclass
class Chip:
    """What NVML answers about one GPU or instance; an exception is raised, anything else returned."""

    name: Any = "NVIDIA H200"
    uuid: Any = UUID_A
    bus: Any = b"00000000:1B:00.0"
    used: int = 10 * GIB
    total: int = 140 * GIB
    mig: list[Any] = field(default_factory=list)
    nvlink_peers: list[bytes] = field(default_factory=list)
    """PCI addresses at the other ends of its links that are up; two more are down if there are any."""
    answers: dict[str, Any] = field(default_factory=dict)


class FakeNvml:
    """The functions that the adapter asks for. Those in `broken` raise."""

    NVMLError = NVMLError

    def __init__(self, *chips, broken=None):
        self.chips = chips
        self.broken = broken or {}
        self.asked: list[str] = []

    def __getattr__(self, name):
        if not name.startswith("nvml"):
            raise AttributeError(name)

        def call(*arguments):
            self.asked.append(name)
            if name in self.broken:
                raise self.broken[name]
            if name in _OF_THE_SYSTEM:
                return _OF_THE_SYSTEM[name](self.chips, *arguments)
            answer = _answer(name, *arguments)
            if isinstance(answer, Exception):
                raise answer
            return answer

        return call


_OF_THE_SYSTEM: dict[str, Callable[..., Any]] = {
    "nvmlInit": lambda chips: None,
    "nvmlShutdown": lambda chips: None,
    "nvmlDeviceGetCount": len,
    "nvmlDeviceGetHandleByIndex": lambda chips, index: chips[index],
    "nvmlSystemGetDriverVersion": lambda chips: b"570.86.15",
    "nvmlSystemGetCudaDriverVersion": lambda chips: 12080,
}


_OF_A_LINK: dict[str, Callable[[Chip, int], Any]] = {
    "nvmlDeviceGetNvLinkState": lambda chip, link: int(link < len(chip.nvlink_peers)),
    "nvmlDeviceGetNvLinkRemotePciInfo": lambda chip, link: SimpleNamespace(busId=chip.nvlink_peers[link]),
    "nvmlDeviceGetNvLinkRemoteDeviceType": lambda chip, link: 0,
}
_WIRING: dict[str, Any] = {
    "nvmlDeviceGetPerformanceState": 0,
    "nvmlDeviceGetCurrPcieLinkGeneration": 1,
    "nvmlDeviceGetMaxPcieLinkGeneration": 5,
    "nvmlDeviceGetCurrPcieLinkWidth": 16,
    "nvmlDeviceGetMaxPcieLinkWidth": 16,
    "nvmlDeviceGetPcieReplayCounter": 0,
    "nvmlDeviceGetTopologyCommonAncestor": 50,
}
WIRING_QUESTIONS = (*_OF_A_LINK, *_WIRING, "nvmlDeviceGetClockInfo", "nvmlDeviceGetMaxClockInfo")


def _answer(name, chip, *arguments):
    if name in chip.answers:
        return chip.answers[name]
    if name in _OF_A_LINK:
        there = chip.nvlink_peers and arguments[0] < len(chip.nvlink_peers) + 2
        return _OF_A_LINK[name](chip, arguments[0]) if there else NOT_SUPPORTED
    if name == "nvmlDeviceGetMigDeviceHandleByIndex":
        return chip.mig[arguments[0]] if arguments[0] < len(chip.mig) else NVMLError("Not Found")
    table = {
        **_WIRING,
        "nvmlDeviceGetMigMode": [1, 1] if chip.mig else [0, 0],
        "nvmlDeviceGetName": chip.name,
        "nvmlDeviceGetUUID": chip.uuid,
        "nvmlDeviceGetPciInfo": SimpleNamespace(busId=chip.bus),
        "nvmlDeviceGetMemoryInfo": SimpleNamespace(used=chip.used, total=chip.total, free=chip.total - chip.used),
        "nvmlDeviceGetCudaComputeCapability": (9, 0),
        "nvmlDeviceGetMaxMigDeviceCount": 7,
        "nvmlDeviceGetUtilizationRates": SimpleNamespace(gpu=87, memory=12),
        "nvmlDeviceGetPowerUsage": 612_500,
        "nvmlDeviceGetEnforcedPowerLimit": 700_000,
        "nvmlDeviceGetTemperature": 64,
        "nvmlDeviceGetClockInfo": 1980,
        "nvmlDeviceGetMaxClockInfo": 1980,
        "nvmlDeviceGetCurrentClocksEventReasons": 0x4 | 0x40,
        "nvmlDeviceGetComputeRunningProcesses": [],
        "nvmlDeviceGetGraphicsRunningProcesses": [],
    }
    return table.get(name, FUNCTION_NOT_FOUND)
