"""Facts of the devices of this machine, with their readings, and of devices to compile for."""

from __future__ import annotations

import getpass
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING, Any, Literal

from jaxprof.base import units
from jaxprof.base.grouping import grouped
from jaxprof.base.values import frozen
from jaxprof.devices import Connection, Device, Wiring
from jaxprof.events import DeviceReading
from jaxprof.facts import Fact, Facts, column, optional, within
from jaxprof.facts.sessions import READING
from jaxprof.facts.units import BYTES, COUNT, INDEX, NUMBER, NUMBERS, OBJECT, ROWS, TEXT, TRUTH

if TYPE_CHECKING:
    from jaxprof.devices.absent import Chip

Severity = Literal["error", "warning", "note"]


@frozen
class ListedDevice:
    device: Device
    reading: DeviceReading | None
    titled: bool = False
    """Whether the title of the list has its name."""
    wiring: Wiring | None = None
    """How it is connected, for one device that is shown alone."""

    @property
    def memory_used_bytes(self) -> int | None:
        """Memory in use, from the reading if it has it, otherwise from the listing of the devices."""
        used = self.reading.memory_used_bytes if self.reading is not None else None
        return used if used is not None else self.device.memory_used_bytes

    @property
    def memory_limit_bytes(self) -> int | None:
        """Memory of the device, from the reading if it has it, otherwise from the listing of the devices."""
        limit = self.reading.memory_limit_bytes if self.reading is not None else None
        return limit if limit is not None else self.device.memory_limit_bytes


def list_devices(devices: Sequence[Device], readings: Sequence[DeviceReading]) -> list[ListedDevice]:
    """Return the devices in order, each with its reading if there is one."""
    by_device = {reading.device: reading for reading in readings}
    titled = bool(title_of(devices))
    return [
        ListedDevice(device, by_device.get(device.id), titled=titled and device.platform in ("cuda", "cpu"))
        for device in devices
    ]


def memory_text(used: float | None, limit: float | None) -> str:
    """Return `98.2 / 139.8 GiB`, in the unit of the limit; a dash for what is unknown."""
    if limit is None and used is None:
        return units.UNKNOWN
    if limit is None or used is None:
        return f"{units.bytes_(used)} / {units.bytes_(limit)}"
    unit = units.bytes_(limit).rpartition(" ")[2]
    scale = 1024 ** ("B", "KiB", "MiB", "GiB", "TiB", "PiB").index(unit)
    return f"{used / scale:.1f} / {limit / scale:.1f} {unit}"


_SHORT = {
    "software power cap": "power cap",
    "software thermal slowdown": "heat",
    "hardware thermal slowdown": "heat",
    "hardware slowdown": "hardware",
    "hardware power brake": "power brake",
}


def state_words(device: Device, reading: DeviceReading | None, now: float) -> list[tuple[str, Severity]]:
    """Return what its operator has to know of a device besides its figures, the worst first: that it is lost, errors of
    its memory, what holds it back, who uses it. `now` is the monotonic time, for the age of the reading."""
    fault = (reading.fault if reading is not None else "") or device.fault
    if fault:
        return [(f"LOST: {fault}", "error")]
    words: list[tuple[str, Severity]] = [(f"Xid {number}", "error") for number in device.xids[-1:]]
    if device.nvml_key is not None and device.nvml_key[1] is not None and device.kind is not None:
        words.append((short_kind(device.kind), "note"))
    if device.mig_enabled:
        words.append((f"MIG: {units.counted(len(device.mig), 'instance')}", "note"))
    if reading is None:
        return words
    if reading.ecc_errors:
        words.append((f"ECC {units.integer(reading.ecc_errors)}", "error"))
    words += [(word, "warning") for word in dict.fromkeys(_SHORT.get(each, each) for each in reading.throttle_reasons)]
    # The driver is slow to answer: the app waits for less than this between two readings.
    if reading.monotonic_seconds and now - reading.monotonic_seconds >= 12.0:
        words.append((f"{now - reading.monotonic_seconds:.0f} s old", "warning"))
    users = [str(process.get("user") or process.get("name") or process.get("pid")) for process in reading.processes]
    if users:
        more = f" +{len(users) - 1}" if len(users) > 1 else ""
        words.append((f"{'you' if users[0] == _own_name() else users[0]}{more}", "note"))
    return words


def process_words(reading: DeviceReading) -> list[tuple[str, Severity]]:
    """Return the processes that use a device, the largest first: `python 24612 23.9GiB`."""
    rows = ((each.get("name"), each.get("pid"), each.get("memory_bytes")) for each in reading.processes)
    words = ((name, pid, f"{float(held) / 2**30:.1f}GiB" if held else None) for name, pid, held in rows)
    return [(" ".join(str(word) for word in each if word is not None), "note") for each in words]


@cache
def _own_name() -> str:
    """Return the name of this process's user; empty for one without a name, as in many a container."""
    with suppress(OSError, KeyError, ImportError):
        return getpass.getuser()
    return ""


def unused_groups(devices: Iterable[Device]) -> dict[tuple[str, str], list[Device]]:
    """Return the devices that JAX does not use by reason and what mends it, each said once. What is its own state, lost
    or split into instances, stands with the device."""
    return grouped(
        ((device.reason or "the reason is not known", device.hint), device)
        for device in devices
        if device.used_by_jax is False and not device.fault and not (device.mig_enabled and device.mig)
    )


def title_of(devices: Sequence[Device], driver: str | None = None) -> str:
    """Return `8 × H100 80GB HBM3 · driver 580.95.05 · JAX uses 6` for GPUs of one kind; empty for any other machine."""
    # GPUs that NVML lists, not MIG instances of one
    gpus = [device for device in devices if device.nvml_key is not None and device.nvml_key[1] is None]
    kinds = {gpu.kind for gpu in gpus if gpu.kind is not None}
    if len(gpus) < 2 or len(kinds) != 1:  # the name of a lost one is unknown
        return ""
    known = [device for device in devices if device.platform == "cuda" and device.used_by_jax is not None]
    used = f"JAX uses {sum(bool(device.used_by_jax) for device in known) or 'none'}" if known else ""
    parts = (f"{len(gpus)} × {short_kind(kinds.pop())}", f"driver {driver}" if driver else "", used)
    return " · ".join(filter(None, parts))


def short_kind(kind: str) -> str:
    """Return the name of a device without its maker's, `H100 80GB HBM3`; for a MIG instance its profile."""
    return kind[kind.index("MIG ") :] if "MIG " in kind else kind.removeprefix("NVIDIA ")


PROCESSES: Facts[Mapping[str, Any]] = (
    Fact("pid", INDEX, "Id of the process", lambda process: process.get("pid"), "pid"),
    Fact("user", TEXT, "Its user", lambda process: process.get("user"), "user"),
    Fact("memory_bytes", BYTES, "Memory that it holds", lambda process: process.get("memory_bytes"), "memory"),
    Fact("name", TEXT, "Its name", lambda process: process.get("name"), "process"),
)
_READING: Facts[DeviceReading] = (
    *READING,
    Fact("ecc_errors", COUNT, "Errors in its memory that ECC could not correct since the driver was loaded"),
    Fact("fault", TEXT, "Why it does not work at all"),
    Fact("core_utilisation", NUMBERS, "Share of the time in which each core was busy, in 0..1"),
    Fact("power_limit_watts", NUMBER, "The most that it may draw"),
    Fact("clock_limit_hertz", NUMBER, "The highest clock"),
    Fact("processes", ROWS, "Who uses it", inside=PROCESSES),
)
_CONNECTIONS: Facts[Connection] = (
    Fact("gpu", TEXT, "The other GPU's number in nvidia-smi", title="to GPU"),
    Fact("over", TEXT, "What is between them, as `nvidia-smi topo -m` names it", title="over"),
)
_WIRING: Facts[Wiring] = (
    Fact("performance_state", INDEX, "Performance state: 0 is the fastest, 15 the slowest"),
    Fact("memory_clock_hertz", NUMBER, "Clock of its memory"),
    Fact("memory_clock_limit_hertz", NUMBER, "Highest clock of its memory"),
    Fact("pcie_generation", COUNT, "Generation of its PCIe link now: an idle GPU may lower it"),
    Fact("pcie_generation_limit", COUNT, "Highest generation that both ends support"),
    Fact("pcie_lanes", COUNT, "Lanes of its PCIe link now"),
    Fact("pcie_lanes_limit", COUNT, "Most lanes that both ends support"),
    Fact("pcie_replays", COUNT, "Packets sent again because they arrived damaged, since the driver was loaded"),
    Fact("numa_node", INDEX, "NUMA node that it is nearest to"),
    Fact("nvlinks_up", COUNT, "NVLinks that are up"),
    Fact("nvlinks_down", COUNT, "NVLinks that are down"),
    Fact("nvlinks_to_switch", COUNT, "NVLinks that are up and lead to an NVSwitch"),
    Fact("connections", ROWS, "The way to each other GPU", inside=_CONNECTIONS),
)
DEVICES: Facts[ListedDevice] = (
    column("", "device.machine_index"),
    Fact("id", TEXT, "cpu:0, cuda:0", "device.id", "device", widest=9),
    *within("device", (
        Fact("platform", TEXT, "cpu, cuda, rocm, tpu"),
        Fact("kind", TEXT, "NVIDIA H100 80GB HBM3, cpu"),
        Fact("process", INDEX, "Index of the process that it belongs to"),
    )),
    column("kind", lambda row: "" if row.titled else short_kind(row.device.kind or row.device.platform), widest=18),
    column("use", "reading.utilisation", units.percent),
    Fact("memory_used_bytes", BYTES, "Memory in use"),
    Fact("memory_limit_bytes", BYTES, "Memory that there is"),
    column("memory", lambda row: memory_text(row.memory_used_bytes, row.memory_limit_bytes).replace(" / ", "/")),
    column("power", "reading.power_watts", lambda watts: units.UNKNOWN if watts is None else f"{watts:.0f} W"),
    column("temp", "reading.temperature_celsius",
           lambda degrees: units.UNKNOWN if degrees is None else f"{degrees:.0f} °C"),
    column("GHz", "reading.clock_hertz", lambda rate: units.UNKNOWN if rate is None else f"{rate / 1e9:.2f}"),
    column("state", lambda row: ", ".join(word for word, _ in state_words(row.device, row.reading, time.monotonic())),
           gives_way=True),
    *within("device", (
        Fact("allocator_limit_bytes", BYTES, "What JAX's allocator may take"),
        Fact("core_count", NUMBER, "Cores or multiprocessors"),
        Fact("compute_capability", TEXT, "Compute capability of an NVIDIA GPU"),
        Fact("uuid", TEXT, "Its UUID"),
        Fact("pci_bus_id", TEXT, "Its address on the bus"),
        Fact("machine_index", TEXT, "Its number in nvidia-smi; 3.0 is a MIG instance of GPU 3"),
        Fact("fault", TEXT, "Why it does not work at all"),
        Fact("xids", NUMBERS, "Numbers of the errors that NVIDIA's driver wrote into the kernel's log since boot"),
        Fact("used_by_jax", TRUTH, "Whether JAX uses it; null if JAX was not asked"),
        Fact("reason", TEXT, "Why JAX does not use it"),
        Fact("hint", TEXT, "What makes JAX use it"),
    )),
    Fact("reading", OBJECT, "A live reading", inside=_READING),
    optional("wiring", OBJECT, "How it is connected; of a device that is shown alone", inside=_WIRING),
)  # fmt: skip


def _memory(chip: Chip) -> int:
    from jaxprof.hlo.kernels.cost.peaks import device  # reads the table of all devices

    return device(chip.name).memory_bytes


TARGETS: Facts[Chip] = (
    Fact("name", TEXT, "Its name, as --for takes it", title="device"),
    Fact("device_kind", TEXT, "Kind of the device, as JAX names it", title="as JAX names it"),
    Fact("memory_bytes", BYTES, "Its memory", _memory, "memory"),
    Fact("devices", COUNT, "Devices of a chip", title="a chip", show=lambda count: units.counted(count, "device"),
         right=False),
    Fact("vendor", TEXT, "Whose compiler it needs", title="needs",
         show=lambda vendor: f"jaxprof devices target install {vendor}", right=False),
)  # fmt: skip
