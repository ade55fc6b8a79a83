"""Read NVIDIA GPUs through NVML: the only module that uses nvidia-ml-py.

Every query may fail on some machine: no driver, no library, a driver older than the library (a missing symbol), a GPU
that does not support the query, a user who may not make it, a MIG instance, a GPU that fell off the bus. Each failure
makes that one answer None and affects nothing else. NVML is only read: no setting is changed, no CUDA context is made,
no memory of the GPU is taken.

NVML's names and units: NVIDIA, NVML API Reference Guide. Texts were bytes in older versions of the library.
"""

from __future__ import annotations

import ctypes
import importlib
import sys
import time
from contextlib import suppress
from dataclasses import replace
from typing import Any

import psutil

from jaxprof.base.values import frozen
from jaxprof.devices import HIDDEN, Device
from jaxprof.events import DeviceReading

_LIBRARY = "libnvidia-ml.so.1"
_CLOCK_SM = 1
_TEMPERATURE_GPU = 0
_NOT_AVAILABLE = (0xFFFFFFFF, 0xFFFFFFFFFFFFFFFF)
"""Values that NVML writes into an integer that it cannot fill."""

THROTTLE_REASONS = (
    (0x002, "application clocks are set"),
    (0x004, "software power cap"),
    (0x008, "hardware slowdown"),
    (0x010, "sync boost"),
    (0x020, "software thermal slowdown"),
    (0x040, "hardware thermal slowdown"),
    (0x080, "hardware power brake"),
    (0x100, "display clock setting"),
    (0x200, "board limit"),
    (0x400, "reliability limit"),
)
"""Bits of nvmlClocksEventReasons. Bit 0x001, idle, is left out: an idle GPU is not held back."""


@frozen(kw_only=True)
class NvidiaListing:
    """The GPUs and versions that NVML reports."""

    gpus: tuple[Device, ...] = ()
    driver: str | None = None
    cuda: str | None = None
    """Newest CUDA version that the driver runs: `12.8`."""
    problem: str = ""
    """Why NVML could not be used at all; empty if it could, even if it lists no GPU."""


class Nvml:
    """NVML, opened at the first query. Its methods never raise, and may be called after NVML has gone.

    `module` is nvidia-ml-py or an object with its functions; by default it is imported at the first query. Not
    thread-safe: one thread owns it.
    """

    def __init__(self, module: Any = None) -> None:
        self._module = module
        self._handles: dict[tuple[int, int | None], Any] = {}
        self._opened = False
        self._who: dict[tuple[int, int | None], dict[int, tuple[str | None, str | None]]] = {}
        """Name and user by pid, by GPU, kept as long as the GPU lists the pid."""
        self.problem = ""

    def listing(self) -> NvidiaListing:
        """Return all GPUs, with the MIG instances of those that are split."""
        if not self._open():
            return NvidiaListing(problem=self.problem)
        count = self._ask("nvmlDeviceGetCount") or 0
        # NVML counts 1000 for a major and 10 for a minor version, so 12080 is 12.8
        whole = _integer(self._ask("nvmlSystemGetCudaDriverVersion"))
        return NvidiaListing(
            gpus=tuple(self._gpu(index) for index in range(count)),
            driver=_text(self._ask("nvmlSystemGetDriverVersion")),
            cuda=f"{whole // 1000}.{whole % 1000 // 10}" if whole else None,
        )

    def read(self, key: tuple[int, int | None], device: str) -> DeviceReading:
        """Return a live reading of the GPU with that `Device.nvml_key`, under the name `device`. A MIG instance has its
        own memory and processes; temperature and clocks are those of its chip. Utilisation and power are reported for
        whole GPUs only, so an instance has none."""
        handle = self._handle(key)
        chip = self._handle((key[0], None)) if key[1] is not None else handle
        whole = handle if key[1] is None else None
        memory = self._ask_of(handle, "nvmlDeviceGetMemoryInfo")
        use = self._ask_of(whole, "nvmlDeviceGetUtilizationRates")
        memory_bytes = self._process_memory(handle)
        before = self._who.get(key, {})
        who = self._who[key] = {pid: before.get(pid) or _who(pid) for pid in memory_bytes}
        old = self._ask_of(chip, "nvmlDeviceGetTemperature", _TEMPERATURE_GPU)  # to be removed in CUDA 14
        bits = self._ask_of(chip, "nvmlDeviceGetCurrentClocksEventReasons")
        if bits is None:  # the name before driver 535
            bits = self._ask_of(chip, "nvmlDeviceGetCurrentClocksThrottleReasons")
        return DeviceReading(
            device=device,
            monotonic_seconds=time.monotonic(),
            utilisation=_scaled(getattr(use, "gpu", None), 0.01),
            memory_used_bytes=_integer(getattr(memory, "used", None)),
            memory_limit_bytes=_integer(getattr(memory, "total", None)),
            power_watts=_scaled(self._ask_of(whole, "nvmlDeviceGetPowerUsage"), 1e-3),
            power_limit_watts=_scaled(self._ask_of(whole, "nvmlDeviceGetEnforcedPowerLimit"), 1e-3),
            temperature_celsius=_scaled(
                old if old is not None else self._ask_of(chip, "nvmlDeviceGetTemperatureV", _TEMPERATURE_GPU), 1.0
            ),
            clock_hertz=_scaled(self._ask_of(chip, "nvmlDeviceGetClockInfo", _CLOCK_SM), 1e6),
            clock_limit_hertz=_scaled(self._ask_of(chip, "nvmlDeviceGetMaxClockInfo", _CLOCK_SM), 1e6),
            throttle_reasons=throttle_words(bits) if isinstance(bits, int) else [],
            processes=[  # the largest memory first
                {"pid": pid, "name": who[pid][0], "user": who[pid][1], "memory_bytes": memory_bytes[pid]}
                for pid in sorted(memory_bytes, key=lambda pid: (-(memory_bytes[pid] or 0), pid))
            ],
        )

    def close(self) -> None:
        """Release NVML. Harmless if it was never opened."""
        if self._handles or self._opened:
            self._ask("nvmlShutdown")
        self._handles.clear()
        self._opened = False

    def _open(self) -> bool:
        if self._opened:
            return True
        if self._module is None and not library_is_there():
            self.problem = f"NVML: there is no {_LIBRARY} (NVIDIA's driver brings it)"
            return False
        try:
            if self._module is None:
                self._module = importlib.import_module("pynvml")
        except (ImportError, OSError, SyntaxError) as error:  # not installed, or broken
            self.problem = f"nvidia-ml-py cannot be imported: {error}"
            return False
        try:
            self._module.nvmlInit()
        except (self._module.NVMLError, OSError, AttributeError) as error:
            self.problem = f"NVML: {error}"
            return False
        self._opened, self.problem = True, ""
        return True

    def _gpu(self, index: int) -> Device:
        handle = self._handle((index, None))
        mode = self._ask_of(handle, "nvmlDeviceGetMigMode")
        enabled = bool(mode[0]) if isinstance(mode, list | tuple) and mode else None
        capability = self._ask_of(handle, "nvmlDeviceGetCudaComputeCapability")
        known = isinstance(capability, list | tuple) and len(capability) == 2
        gpu = replace(
            self._described((index, None), handle),
            pci_bus_id=normal_pci_bus_id(_text(getattr(self._ask_of(handle, "nvmlDeviceGetPciInfo"), "busId", None))),
            compute_capability=f"{capability[0]}.{capability[1]}" if known else None,
            mig_enabled=enabled,
        )
        return replace(gpu, mig=self._instances(gpu, handle)) if enabled else gpu

    def _described(self, key: tuple[int, int | None], handle: Any) -> Device:
        """Return what a GPU and a MIG instance both say: name, UUID and memory."""
        memory = self._ask_of(handle, "nvmlDeviceGetMemoryInfo")
        return Device(
            id=f"{HIDDEN}:{key[0]}",
            platform="cuda",
            nvml_key=key,
            kind=_text(self._ask_of(handle, "nvmlDeviceGetName")),
            uuid=_text(self._ask_of(handle, "nvmlDeviceGetUUID")),
            memory_limit_bytes=_integer(getattr(memory, "total", None)),
            memory_used_bytes=_integer(getattr(memory, "used", None)),
            memory_free_bytes=_integer(getattr(memory, "free", None)),
        )

    def _instances(self, gpu: Device, handle: Any) -> tuple[Device, ...]:
        instances = []
        for number in range(self._ask_of(handle, "nvmlDeviceGetMaxMigDeviceCount") or 0):
            key = (gpu.number, number)
            instance = self._handle(key)
            if instance is None:  # instances may be numbered with gaps
                continue
            described = self._described(key, instance)
            instances.append(
                replace(
                    described,
                    kind=described.kind or gpu.kind,
                    pci_bus_id=gpu.pci_bus_id,
                    compute_capability=gpu.compute_capability,
                )
            )
        return tuple(instances)

    def _handle(self, key: tuple[int, int | None]) -> Any:
        """Return NVML's handle, or None. A failed request is repeated the next time."""
        if not self._open():
            return None
        if key not in self._handles:
            index, instance = key
            if instance is None:
                handle = self._ask("nvmlDeviceGetHandleByIndex", index)
            else:
                handle = self._ask_of(self._handle((index, None)), "nvmlDeviceGetMigDeviceHandleByIndex", instance)
            if handle is None:
                return None
            self._handles[key] = handle
        return self._handles[key]

    def _process_memory(self, handle: Any) -> dict[int, int | None]:
        """Return the memory by pid; NVML lists a process that computes and draws twice, with the same memory."""
        used: dict[int, int | None] = {}
        for question in ("nvmlDeviceGetComputeRunningProcesses", "nvmlDeviceGetGraphicsRunningProcesses"):
            for process in self._ask_of(handle, question) or []:
                pid = _integer(getattr(process, "pid", None))
                if pid is None:
                    continue
                memory = _integer(getattr(process, "usedGpuMemory", None))
                used[pid] = max(used.get(pid) or 0, memory) if memory is not None else used.get(pid)
        return used

    def _ask_of(self, handle: Any, question: str, *arguments: Any) -> Any:
        return None if handle is None else self._ask(question, handle, *arguments)

    def _ask(self, question: str, *arguments: Any) -> Any:
        """Return the answer, or None whatever prevented it. AttributeError: a library without that function.
        ValueError: a text that is not UTF-8. TypeError and OSError: from ctypes, for a library that does not fit the
        driver."""
        try:
            return getattr(self._module, question)(*arguments)
        except (self._module.NVMLError, AttributeError, ValueError, TypeError, OSError):
            return None


def library_is_there() -> bool:
    """Return whether the driver's library can be loaded. Checked first, since importing nvidia-ml-py takes 30 ms."""
    if not sys.platform.startswith("linux"):
        return True
    try:
        ctypes.CDLL(_LIBRARY)
    except OSError:
        return False
    return True


def throttle_words(bits: int) -> list[str]:
    """Return NVML's bit mask as text. A bit without a name here is shown by its number."""
    words = [word for bit, word in THROTTLE_REASONS if bits & bit]
    unnamed = bits & ~sum(bit for bit, _ in THROTTLE_REASONS) & ~0x001
    return [*words, f"reason {unnamed:#x}"] if unnamed else words


def normal_pci_bus_id(text: str | None) -> str | None:
    """Normalise a PCI address: NVML writes `00000000:1B:00.0`, sysfs and CUDA `0000:1b:00.0`."""
    if not text:
        return None
    head, _, slot = text.strip().lower().rpartition(":")
    domain, _, bus = head.rpartition(":")
    try:
        return f"{int(domain or '0', 16):04x}:{int(bus, 16):02x}:{slot if '.' in slot else slot + '.0'}"
    except ValueError:
        return None


def _text(value: Any) -> str | None:
    if isinstance(value, bytes):
        value = value.decode("utf-8", "replace")
    return value.strip("\x00 ") or None if isinstance(value, str) else None


def _integer(value: Any) -> int | None:
    value = getattr(value, "value", value)  # some versions return ctypes integers
    if isinstance(value, bool) or not isinstance(value, int) or value < 0 or value in _NOT_AVAILABLE:
        return None
    return value


def _scaled(value: Any, scale: float) -> float | None:
    whole = _integer(value)
    return None if whole is None else whole * scale


def _who(pid: int) -> tuple[str | None, str | None]:
    """Return name and user of a process; None for what one of another user or container hides."""
    name = user = None
    with suppress(psutil.Error, OSError, ValueError, KeyError, OverflowError):  # gone, hidden, or a user without a name
        process = psutil.Process(pid)
        name = process.name() or None
        user = process.username() or None
    return name, user
