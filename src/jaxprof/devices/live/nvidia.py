"""Read NVIDIA GPUs through NVML: the only module that uses nvidia-ml-py.

Every query may fail on some machine: no driver, no library, a driver older than the library (a missing symbol), a GPU
that does not support the query, a user who may not make it, a MIG instance, a GPU that fell off the bus. Each failure
makes that one answer None and affects nothing else; one that means that the GPU itself is out of order is its `fault`.
NVML is only read: no setting is changed, no CUDA context is made, no memory of the GPU is taken.

A driver that is busy, resetting a GPU for instance, takes seconds for each answer, so that threads of ours ask,
and `NvmlThreads` hands out what they last heard, with its time.

NVML's names and units: NVIDIA, NVML API Reference Guide. Texts were bytes in older versions of the library.
"""

from __future__ import annotations

import ctypes
import importlib
import os
import re
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any, Generic, TypeVar

import psutil

from jaxprof.base.values import frozen
from jaxprof.devices import HIDDEN, Connection, Device, Wiring
from jaxprof.events import DeviceReading

_LIBRARY = "libnvidia-ml.so.1"
_CLOCK_SM, _CLOCK_MEMORY = 1, 2
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

FAULTS = {
    8: "its power cable is not attached",
    11: "its interrupts do not arrive",
    15: "fell off the bus",
    16: "needs a reset",
    29: "its driver is in an invalid state",
}
"""NVML's errors (nvmlReturn_t) that mean a GPU out of order, not a question without an answer."""
_UNCORRECTED, _SINCE_BOOT = 1, 0
"""nvmlMemoryErrorType_t and nvmlEccCounterType_t: errors that ECC found and could not correct, since the driver's
start."""
_TO_SWITCH = 2
"""nvmlNvLinkDeviceType_t of an NVSwitch."""
_MOST_LINKS = 36
"""NVML_NVLINK_MAX_LINKS."""
_ANCESTORS = {10: "PIX", 20: "PXB", 30: "PHB", 40: "NODE", 50: "SYS"}
"""nvmlGpuTopologyLevel_t, in the words of `nvidia-smi topo -m`."""
_XID = re.compile(r"NVRM: Xid \(PCI:([0-9a-fA-F:.]+)\): (\d+)")
LISTING_SECONDS = 1.5
READING_SECONDS = 0.25
"""Longest that a caller waits for an answer of NVML; the last one, or none, is taken then."""

T = TypeVar("T")


@frozen(kw_only=True)
class NvidiaListing:
    """The GPUs and versions that NVML reports."""

    gpus: tuple[Device, ...] = ()
    driver: str | None = None
    cuda: str | None = None
    """Newest CUDA version that the driver runs: `12.8`."""
    problem: str = ""
    """Why NVML could not be used at all; empty if it could, even if it lists no GPU."""
    late: bool = False
    """Whether NVML has not answered yet, so that the GPUs are unknown."""


class Nvml:
    """NVML, opened at the first query. Its methods never raise, and may block for as long as the driver does. Several
    threads may read different GPUs.

    `module` is nvidia-ml-py or an object with its functions; by default it is imported at the first query.
    """

    def __init__(self, module: Any = None) -> None:
        self._module = module
        self._handles: dict[tuple[int, int | None], Any] = {}
        self._opened = False
        self._opening = threading.Lock()
        self._asking = threading.local()
        """Its `fault` is that of the GPU about which this thread asks."""
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
        gpus = [Question(partial(self._gpu, index)) for index in range(count)]
        for question in gpus:  # beside each other: a slow driver answers for all in the time of one
            question.start()
        xids = read_xids() if count else {}
        listed = [question.last(None) for question in gpus]
        return NvidiaListing(
            gpus=tuple(replace(gpu, xids=xids.get(gpu.pci_bus_id, ())) for gpu in listed if gpu is not None),
            driver=_text(self._ask("nvmlSystemGetDriverVersion")),
            cuda=f"{whole // 1000}.{whole % 1000 // 10}" if whole else None,
        )

    def read(self, key: tuple[int, int | None], device: str) -> DeviceReading:
        """Return a live reading of the GPU with that `Device.nvml_key`, under the name `device`. A MIG instance has its
        own memory and processes; temperature and clocks are those of its chip. Utilisation and power are reported for
        whole GPUs only, so an instance has none."""
        self._asking.fault = ""
        handle = self._handle(key)
        chip = self._handle((key[0], None)) if key[1] is not None else handle
        whole = handle if key[1] is None else None
        memory = self._ask_of(handle, "nvmlDeviceGetMemoryInfo")
        use = self._ask_of(whole, "nvmlDeviceGetUtilizationRates")
        # NVML lists a process that computes and draws twice, with the same memory.
        memory_bytes: dict[int, int | None] = {}
        for question in ("nvmlDeviceGetComputeRunningProcesses", "nvmlDeviceGetGraphicsRunningProcesses"):
            for process in self._ask_of(handle, question) or []:
                pid = _integer(getattr(process, "pid", None))
                if pid is None:
                    continue
                held = _integer(getattr(process, "usedGpuMemory", None))
                memory_bytes[pid] = max(memory_bytes.get(pid) or 0, held) if held is not None else memory_bytes.get(pid)
        before = self._who.get(key, {})
        who = self._who[key] = {pid: before.get(pid) or _who(pid) for pid in memory_bytes}
        old = self._ask_of(chip, "nvmlDeviceGetTemperature", _TEMPERATURE_GPU)  # to be removed in CUDA 14
        bits = self._ask_of(chip, "nvmlDeviceGetCurrentClocksEventReasons")
        if bits is None:  # the name before driver 535
            bits = self._ask_of(chip, "nvmlDeviceGetCurrentClocksThrottleReasons")
        ecc = self._ask_of(chip, "nvmlDeviceGetTotalEccErrors", _UNCORRECTED, _SINCE_BOOT)
        return DeviceReading(
            device=device,
            monotonic_seconds=time.monotonic(),
            fault=self._asking.fault,
            ecc_errors=_integer(ecc),
            utilisation=_in_unit(getattr(use, "gpu", None), 0.01),
            memory_used_bytes=_integer(getattr(memory, "used", None)),
            memory_limit_bytes=_integer(getattr(memory, "total", None)),
            power_watts=_in_unit(self._ask_of(whole, "nvmlDeviceGetPowerUsage"), 1e-3),
            power_limit_watts=_in_unit(self._ask_of(whole, "nvmlDeviceGetEnforcedPowerLimit"), 1e-3),
            temperature_celsius=_in_unit(
                old if old is not None else self._ask_of(chip, "nvmlDeviceGetTemperatureV", _TEMPERATURE_GPU), 1.0
            ),
            clock_hertz=_in_unit(self._ask_of(chip, "nvmlDeviceGetClockInfo", _CLOCK_SM), 1e6),
            clock_limit_hertz=_in_unit(self._ask_of(chip, "nvmlDeviceGetMaxClockInfo", _CLOCK_SM), 1e6),
            throttle_reasons=throttle_words(bits) if isinstance(bits, int) else [],
            processes=[  # the largest memory first
                {"pid": pid, "name": who[pid][0], "user": who[pid][1], "memory_bytes": memory_bytes[pid]}
                for pid in sorted(memory_bytes, key=lambda pid: (-(memory_bytes[pid] or 0), pid))
            ],
        )

    def wiring(self, index: int) -> Wiring:
        """Return how the GPU with that number in nvidia-smi is connected. Asks up to a hundred questions."""
        gpu = self._handle((index, None))

        def number(question: str, *arguments: Any) -> int | None:
            return _integer(self._ask_of(gpu, f"nvmlDeviceGet{question}", *arguments))

        others = [other for other in range(self._ask("nvmlDeviceGetCount") or 0) if other != index]
        address = {other: self._pci_address(self._handle((other, None))) for other in others}
        links = [number("NvLinkState", link) for link in range(_MOST_LINKS)]
        up = [link for link, state in enumerate(links) if state == 1]
        peers = [
            normal_pci_bus_id(
                _text(getattr(self._ask_of(gpu, "nvmlDeviceGetNvLinkRemotePciInfo", link), "busId", None))
            )
            for link in up
        ]
        connections = []
        for other in others:
            direct = sum(peer is not None and peer == address[other] for peer in peers)
            level = number("TopologyCommonAncestor", self._handle((other, None)))
            over = f"NV{direct}" if direct else _ANCESTORS.get(level if level is not None else -1, "")
            connections += [Connection(gpu=f"{other}", over=over)] if over else []
        return Wiring(
            performance_state=number("PerformanceState"),
            memory_clock_hertz=_in_unit(number("ClockInfo", _CLOCK_MEMORY), 1e6),
            memory_clock_limit_hertz=_in_unit(number("MaxClockInfo", _CLOCK_MEMORY), 1e6),
            pcie_generation=number("CurrPcieLinkGeneration"),
            pcie_generation_limit=number("MaxPcieLinkGeneration"),
            pcie_lanes=number("CurrPcieLinkWidth"),
            pcie_lanes_limit=number("MaxPcieLinkWidth"),
            pcie_replays=number("PcieReplayCounter"),
            numa_node=number("NumaNodeId"),
            nvlinks_up=len(up),
            nvlinks_down=links.count(0),
            nvlinks_to_switch=sum(number("NvLinkRemoteDeviceType", link) == _TO_SWITCH for link in up),
            connections=tuple(connections),
        )

    def _pci_address(self, handle: Any) -> str | None:
        return normal_pci_bus_id(_text(getattr(self._ask_of(handle, "nvmlDeviceGetPciInfo"), "busId", None)))

    def _open(self) -> bool:
        with self._opening:
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
        self._asking.fault = ""
        handle = self._handle((index, None))
        mode = self._ask_of(handle, "nvmlDeviceGetMigMode")
        enabled = bool(mode[0]) if isinstance(mode, list | tuple) and mode else None
        capability = self._ask_of(handle, "nvmlDeviceGetCudaComputeCapability")
        known = isinstance(capability, list | tuple) and len(capability) == 2
        gpu = replace(
            self._describe((index, None), handle),
            pci_bus_id=self._pci_address(handle),
            compute_capability=f"{capability[0]}.{capability[1]}" if known else None,
            mig_enabled=enabled,
            fault=self._asking.fault,
        )
        instances = []
        for number in range((self._ask_of(handle, "nvmlDeviceGetMaxMigDeviceCount") or 0) if enabled else 0):
            key = (gpu.number, number)
            instance = self._handle(key)
            if instance is None:  # instances may be numbered with gaps
                continue
            described = self._describe(key, instance)
            instances.append(
                replace(
                    described,
                    kind=described.kind or gpu.kind,
                    pci_bus_id=gpu.pci_bus_id,
                    compute_capability=gpu.compute_capability,
                )
            )
        return replace(gpu, mig=tuple(instances))

    def _describe(self, key: tuple[int, int | None], handle: Any) -> Device:
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

    def _ask_of(self, handle: Any, question: str, *arguments: Any) -> Any:
        return None if handle is None else self._ask(question, handle, *arguments)

    def _ask(self, question: str, *arguments: Any) -> Any:
        """Return the answer, or None whatever prevented it. AttributeError: a library without that function.
        ValueError: a text that is not UTF-8. TypeError and OSError: from ctypes, for a library that does not fit the
        driver."""
        try:
            return getattr(self._module, question)(*arguments)
        except (self._module.NVMLError, AttributeError, ValueError, TypeError, OSError) as error:
            self._asking.fault = FAULTS.get(getattr(error, "value", 0)) or getattr(self._asking, "fault", "")
            return None


class Question(Generic[T]):
    """A question that may be answered late or never: a daemon thread asks it, again whenever its answer is wanted and
    it is not being asked. Such a thread holds up neither a caller nor the end of the process."""

    def __init__(self, ask: Callable[[], T]) -> None:
        self._ask = ask
        self._answered = threading.Condition()
        self._asking = self._late = False
        self._answer: T | None = None

    def start(self) -> None:
        """Ask, unless it is being asked."""
        with self._answered:
            if not self._asking:
                self._asking = True
                threading.Thread(target=self._answer_once, name="jaxprof-nvml", daemon=True).start()

    def last(self, wait_seconds: float | None) -> T | None:
        """Return the last answer, None before the first. Waits for the one that is being given (None: for ever), unless
        it was waited for in vain before."""
        with self._answered:
            answered = self._answered.wait_for(lambda: not self._asking, 0 if self._late else wait_seconds)
            self._late = not answered
            return self._answer

    def _answer_once(self) -> None:
        answer = None
        try:
            answer = self._ask()
        finally:  # whatever it raised, it can be asked again
            with self._answered:
                self._answer, self._asking = answer, False
                self._answered.notify_all()


class NvmlThreads:
    """NVML for callers that must not wait: each gets the last answer."""

    def __init__(self, nvml: Nvml | None = None) -> None:
        self._nvml = nvml or Nvml()
        self._listing = Question(self._nvml.listing)
        self._readings: dict[tuple[int, int | None], Question[DeviceReading]] = {}

    def listing(self, wait_seconds: float = LISTING_SECONDS) -> NvidiaListing:
        """Return all GPUs, with the MIG instances of those that are split, or that NVML is late."""
        self._listing.start()
        late = NvidiaListing(problem="NVML does not answer", late=True)
        return self._listing.last(wait_seconds) or late

    def wiring(self, device: Device, wait_seconds: float) -> Wiring | None:
        """Return how a GPU, or that of a MIG instance, is connected; None for any other device, and for a GPU about
        which NVML has not answered in time."""
        if device.nvml_key is None:
            return None
        question = Question(partial(self._nvml.wiring, device.nvml_key[0]))
        question.start()
        return question.last(wait_seconds)

    def read(self, devices: Sequence[Device], wait_seconds: float = READING_SECONDS) -> list[DeviceReading]:
        """Return the last reading of each GPU; of unknowns before its first one, and of what is no GPU of NVML."""
        for key in filter(None, (device.nvml_key for device in devices)):
            self._readings.setdefault(key, Question(partial(self._nvml.read, key, ""))).start()
        until = time.monotonic() + wait_seconds
        unknown, readings = DeviceReading(device=""), []
        for device in devices:
            question = self._readings[device.nvml_key] if device.nvml_key is not None else None
            last = question.last(max(0.0, until - time.monotonic())) if question is not None else None
            readings.append(replace(last or unknown, device=device.id))
        return readings


@cache
def nvml_threads() -> NvmlThreads:
    """Return the one through which this process asks, so that NVML is waited for once."""
    return NvmlThreads()


def read_xids(kernel_log: Path = Path("/dev/kmsg")) -> dict[str | None, tuple[int, ...]]:
    """Return the driver's error numbers since boot by PCI address, the newest last (NVIDIA, Xid Errors). Empty for a
    user who may not read the kernel's log."""
    found: dict[str | None, tuple[int, ...]] = {}
    with suppress(OSError):
        file = os.open(kernel_log, os.O_RDONLY | os.O_NONBLOCK)
        try:
            while record := os.read(file, 8192):  # of /dev/kmsg one message at a time; BlockingIOError after the last
                for address, number in _XID.findall(record.decode("utf-8", "replace")):
                    key = normal_pci_bus_id(address)
                    found[key] = (*found.get(key, ()), int(number))
        finally:
            os.close(file)
    return found


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


def _in_unit(value: Any, scale: float) -> float | None:
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
