"""A pynvml to hold against the adapter: answers from a table, errors where a test wants them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

GIB = 1024**3
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
    mig: list[Chip] = field(default_factory=list)
    answers: dict[str, Any] = field(default_factory=dict)


class FakeNvml:
    """The functions that the adapter asks for. Those in `broken` raise, those in `absent` are not there."""

    NVMLError = NVMLError

    def __init__(self, *chips: Chip, broken: dict[str, Exception] | None = None, absent: tuple[str, ...] = ()) -> None:
        self.chips = chips
        self.broken = broken or {}
        self.absent = absent
        self.asked: list[str] = []

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if not name.startswith("nvml") or name in self.absent:
            raise AttributeError(name)

        def call(*arguments: Any) -> Any:
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


def _answer(name: str, chip: Chip, *arguments: Any) -> Any:
    if name in chip.answers:
        return chip.answers[name]
    if name == "nvmlDeviceGetMigDeviceHandleByIndex":
        return chip.mig[arguments[0]] if arguments[0] < len(chip.mig) else NVMLError("Not Found")
    table = {
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
