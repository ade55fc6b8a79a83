"""Read the CPU: what it is, which part of it this process may use, and how busy that part is; and all devices live.

Cores are those of the affinity and the cgroup quota; memory is the cgroup's if that is less: a container that may use
two cores of a machine with 128 has two. A value that the system does not report (in a container without `/proc`
entries, or a virtual machine without frequencies) is None, and nothing here raises for it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import psutil

from jaxprof.base.operating_system import Limits, cpu_model, read_limits, text_at
from jaxprof.base.values import frozen
from jaxprof.devices import Device
from jaxprof.devices.live.nvidia import READING_SECONDS, NvmlThreads, nvml_threads
from jaxprof.events import DeviceReading

T = TypeVar("T")

PCI_DEVICES = Path("/sys/bus/pci/devices")
_IDLE = ("idle", "iowait")
_COUNTED_TWICE = ("guest", "guest_nice")
"""Linux counts the time of guests in `user` and `nice` as well."""

_FREQUENCY_SHARE = 0.005
"""Largest share of time spent on reading frequencies, which may query every core's driver and takes milliseconds for
each on some machines."""


@frozen(kw_only=True)
class CpuFacts:
    """Facts about the CPU that do not change while the process runs."""

    model: str | None
    cores: tuple[int, ...]
    """Numbers of the logical cores in the affinity of this process."""
    quota_cores: float | None
    """CPU time that the cgroup allows, in cores; None if it sets no limit."""
    machine_cores: int | None
    memory_bytes: int | None
    """Memory of the machine, or the cgroup's limit if that is less."""
    frequency_limit_hertz: float | None

    @property
    def usable_cores(self) -> float | None:
        """CPU time that this process can get, in cores; a fraction under a quota. None if unknown."""
        if not self.cores:
            return self.quota_cores
        return min(float(len(self.cores)), self.quota_cores or float("inf"))


def read_cpu(limits: Limits | None = None) -> CpuFacts:
    """Return the facts about this machine's CPU. Takes a few milliseconds; starts a process only on macOS."""
    limits = read_limits() if limits is None else limits
    machine_cores = _ask(psutil.cpu_count)
    frequency = _ask(psutil.cpu_freq)
    memory = _ask(psutil.virtual_memory)
    total = memory.total if memory is not None else None
    if limits.memory is not None:
        total = min(total or limits.memory.limit_bytes, limits.memory.limit_bytes)
    usable: Collection[int] = range(machine_cores or 0)
    if hasattr(os, "sched_getaffinity"):
        with suppress(OSError):  # a sandbox may forbid the question; then every core counts as ours
            usable = os.sched_getaffinity(0)
    return CpuFacts(
        model=cpu_model(),
        cores=tuple(sorted(usable)),
        quota_cores=limits.cores,
        machine_cores=machine_cores,
        memory_bytes=total,
        frequency_limit_hertz=frequency.max * 1e6 if frequency is not None and frequency.max else None,
    )


class HostSampler:
    """Live readings of the CPU. Use is measured between two readings, so this keeps the counters of the last one.

    The first counters are taken when it is made, so no call waits for an interval to pass. Not thread-safe.
    """

    def __init__(self, facts: CpuFacts | None = None, limits: Limits | None = None) -> None:
        self._limits = read_limits() if limits is None else limits
        self.facts = read_cpu(self._limits) if facts is None else facts
        self._before = _core_seconds()
        self._frequency_hertz: float | None = None
        self._frequency_due_seconds = 0.0

    def read(self, device: str = "cpu:0") -> DeviceReading:
        """Return how busy the usable cores were since the last reading (None: no counter moved), and the rest."""
        now = _core_seconds()
        cores = _shares(self._before, now, self.facts.cores)
        if cores or len(now) != len(self._before):
            self._before = now
        group = self._limits.memory
        memory = _ask(psutil.virtual_memory)
        used: int | None = None
        limit: int | None = None
        if group is not None and (memory is None or group.limit_bytes < memory.total):
            used, limit = group.used_bytes(), group.limit_bytes
        elif memory is not None:
            used, limit = memory.total - memory.available, memory.total
        started = time.monotonic()
        if started >= self._frequency_due_seconds:
            frequency = _ask(psutil.cpu_freq)
            self._frequency_hertz = frequency.current * 1e6 if frequency is not None and frequency.current else None
            ended = time.monotonic()
            self._frequency_due_seconds = ended + (ended - started) / _FREQUENCY_SHARE
        return DeviceReading(
            device=device,
            monotonic_seconds=time.monotonic(),
            utilisation=sum(cores) / len(cores) if cores else None,
            core_utilisation=cores,
            memory_used_bytes=used,
            memory_limit_bytes=limit,
            load_average=round(loads[0], 2) if (loads := _ask(psutil.getloadavg)) else None,
            clock_hertz=self._frequency_hertz,
            clock_limit_hertz=self.facts.frequency_limit_hertz,
        )


def _core_seconds() -> list[tuple[float, float]]:
    """Return, for each online core, the busy and the total seconds since boot. Empty if they are not reported."""
    seconds = []
    for times in _ask(lambda: psutil.cpu_times(percpu=True)) or []:
        fields = times._asdict()
        total = sum(value for name, value in fields.items() if name not in _COUNTED_TWICE)
        seconds.append((total - sum(fields.get(name, 0.0) for name in _IDLE), total))
    return seconds


def _shares(before: list[tuple[float, float]], now: list[tuple[float, float]], cores: tuple[int, ...]) -> list[float]:
    """Return the busy share (0..1) of each of `cores` between two counts. Empty if it is not known for all of them."""
    if len(before) != len(now) or not cores or cores[-1] >= len(now):
        return []
    shares = []
    for core in cores:
        busy, total = (after - earlier for after, earlier in zip(now[core], before[core], strict=True))
        if total <= 0:  # counters tick every 10 ms; two readings within one tick show nothing
            return []
        shares.append(round(min(1.0, max(0.0, busy / total)), 4))  # of ticks of 10 ms
    return shares


def _ask(question: Callable[[], T]) -> T | None:
    try:
        return question()
    except (psutil.Error, OSError, RuntimeError, AttributeError, ValueError, IndexError, KeyError):
        return None  # psutil passes on any of these from its platform layer


def read_amd(device: Device, root: Path = PCI_DEVICES) -> DeviceReading:
    """Return a live reading of an AMD GPU; of unknowns for one whose place on the bus is not known.

    It is of the kernel driver's files, each of which may be absent on an older driver, or unreadable in a container.
    Names and units: Linux, GPU Driver Developer's Guide, "GPU Power/Thermal Controls and Monitoring".
    """
    if device.pci_bus_id is None:
        return DeviceReading(device=device.id)
    folder = root / device.pci_bus_id
    sensors = next(iter(sorted(folder.glob("hwmon/hwmon*"))), folder / "hwmon")
    busy = _number(folder / "gpu_busy_percent")
    watts = _number(sensors / "power1_average", 1e-6)
    return DeviceReading(
        device=device.id,
        monotonic_seconds=time.monotonic(),
        utilisation=None if busy is None else min(1.0, busy / 100),
        memory_used_bytes=_bytes(folder / "mem_info_vram_used"),
        memory_limit_bytes=_bytes(folder / "mem_info_vram_total"),
        power_watts=watts if watts is not None else _number(sensors / "power1_input", 1e-6),  # as MI300 has it
        power_limit_watts=_number(sensors / "power1_cap", 1e-6),
        temperature_celsius=_number(sensors / "temp1_input", 1e-3),
        clock_hertz=_number(sensors / "freq1_input"),
    )


def _number(path: Path, scale: float = 1.0) -> float | None:
    try:
        return int(text_at(path)) * scale
    except ValueError:
        return None


def _bytes(path: Path) -> int | None:
    count = _number(path)
    return None if count is None else int(count)


class Monitor:
    """Reads devices; never raises, starts no process. One thread calls `read`.

    A device that nothing here can read (a TPU, another host's GPU) has a reading of unknowns only, so that a
    list of readings always matches the list of devices.
    """

    def __init__(
        self, devices: Sequence[Device], host: HostSampler | None = None, nvml: NvmlThreads | None = None
    ) -> None:
        self._host = host or HostSampler()
        self._nvml = nvml or nvml_threads()
        self.devices = devices

    def read(self, wait_seconds: float = READING_SECONDS) -> list[DeviceReading]:
        """Return a reading of each device, in order. CPU devices of one host share one reading. Waits so long for a
        driver that is slow to answer, and takes its last answer then."""
        readings = self._nvml.read(self.devices, wait_seconds)
        cpu: DeviceReading | None = None
        for position, device in enumerate(self.devices):
            if device.platform == "cpu" and device.core_count is not None:  # the cores that psutil knows
                cpu = self._host.read(device.id) if cpu is None else replace(cpu, device=device.id)
                readings[position] = cpu
            elif device.platform == "rocm":
                readings[position] = read_amd(device)
        return readings
