"""Find accelerators that the machine has and JAX does not use: the reason, and the command that fixes it.

What the machine and the target interpreter have is read from files: PCI devices, device nodes, installed packages. No
process is started and nothing is imported in the target interpreter, so the answer is immediate. What follows from it
are pure functions, which cover what can be known without starting JAX: a missing or unfitting plugin, a driver that is
missing or too old, a variable that hides the device. If none of these applies they return nothing, and JAX's own answer
decides.

Least drivers: JAX installation guide (CUDA 12 from 525.60.13, CUDA 13 from 580, both on Linux; CUDA 13 needs compute
capability 7.5). PCI numbers: the PCI ID Repository; those of TPUs are also in JAX's own hardware detection.
"""

from __future__ import annotations

import platform
import re
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from jaxprof.base.operating_system import text_at
from jaxprof.base.values import field, frozen
from jaxprof.devices import HIDDEN, Device
from jaxprof.devices.inventory.placement import VARIABLE, hides_all, visible_gpus
from jaxprof.devices.live.nvidia import NvidiaListing, normal_pci_bus_id

NVIDIA, AMD, GOOGLE = 0x10DE, 0x1002, 0x1AE0

_CANDIDATES = (
    "jax",
    "jaxlib",
    "libtpu",
    "jax-metal",
    *(f"jax-{kit}-{part}" for kit in ("cuda12", "cuda13", "rocm60", "rocm7") for part in ("plugin", "pjrt")),
)


@frozen
class PciDevice:
    """One entry of `/sys/bus/pci/devices`."""

    address: str
    vendor: int
    device: int
    class_code: int
    """Class, subclass and programming interface: `0x030200` is a 3D controller."""
    product: str = ""
    """Name that AMD's driver gives the card, `AMD Instinct MI300X OAM`; empty if it has none."""

    @property
    def is_display(self) -> bool:
        """Whether the class is 0x03: GPUs, including those without an output."""
        return self.class_code >> 16 == 0x03

    @property
    def is_accelerator(self) -> bool:
        """Whether it is a GPU, or of class 0x12, a processing accelerator, as AMD Instinct cards are."""
        return self.class_code >> 16 in (0x03, 0x12)  # 0x03: a display controller


@frozen(kw_only=True)
class MachineHardware:
    """The hardware, as far as files describe it."""

    system: str = "Linux"
    processor: str = "x86_64"
    pci: tuple[PciDevice, ...] = ()
    nvidia_driver: str | None = None
    """Version of the loaded kernel driver, from `/proc/driver/nvidia/version`."""
    nvidia_proc_gpus: int = 0
    """Number of entries of `/proc/driver/nvidia/gpus`."""
    tpu_nodes: tuple[str, ...] = ()
    """Device nodes `/dev/accel*`. Newer TPUs are under `/dev/vfio`, as any device may be: they are identified by their
    PCI number."""


@frozen(kw_only=True)
class TargetInterpreter:
    """The interpreter that runs the engine, and what is installed for it."""

    python: str = sys.executable
    packages: Mapping[str, str] | None = field(default_factory=dict)
    """Version by name, of jax and its plugins; None if the interpreter's packages could not be found. The version is
    empty for a plugin that is present without being a package of its own, as in conda builds."""
    jax_extras: tuple[str, ...] = ()
    """Extras that its jax offers: `cuda12`, `cuda13`, `tpu`, ..."""


def read_machine(root: Path = Path("/")) -> MachineHardware:
    """Return the hardware according to `root` (the file system, or a copy of it for tests)."""
    folder = root / "sys/bus/pci/devices"
    pci = []
    for name in _names(folder, re.compile(r"[\da-fA-F:.]+")):
        values = [_hex(folder / name / part) for part in ("vendor", "device", "class")]
        if None not in values:
            vendor, device, class_code = (value or 0 for value in values)
            product = text_at(folder / name / "product_name").strip() if vendor == AMD else ""
            pci.append(PciDevice(name.lower(), vendor, device, class_code, product))
    # such as `NVRM version: NVIDIA UNIX x86_64 Kernel Module  570.86.15  Thu ...`; the open module words it differently
    match = re.search(r"\s(\d{3,}(?:\.\d+)+)\s", text_at(root / "proc/driver/nvidia/version"))
    return MachineHardware(
        system=platform.system(),
        processor=platform.machine(),
        pci=tuple(pci),
        nvidia_driver=match.group(1) if match else None,
        nvidia_proc_gpus=len(_names(root / "proc/driver/nvidia/gpus", re.compile(r".+"))),
        tpu_nodes=tuple(f"/dev/{name}" for name in _names(root / "dev", re.compile(r"accel\d+"))),
    )


def read_target(python: str = sys.executable) -> TargetInterpreter:
    """Find jax and its plugins in the environment of `python`, in its folders, without starting it."""
    from importlib.metadata import distributions  # takes 20 ms: imported only if it is needed

    if python == sys.executable:
        folders = [entry or "." for entry in sys.path]
    else:
        prefix = Path(python).parent.parent  # not resolved: in a virtual environment `python` is a link elsewhere
        found = [path for name in ("site", "dist") for path in sorted(prefix.glob(f"lib/python3*/{name}-packages"))]
        if not found and (windows := prefix / "Lib/site-packages").is_dir():
            found = [windows]
        folders = [str(path) for path in found]
    if not folders:
        return TargetInterpreter(python=python, packages=None)
    packages: dict[str, str] = {}
    extras: tuple[str, ...] = ()
    for name in _CANDIDATES:
        for package in distributions(name=name, path=folders):
            packages.setdefault(name, package.version)
            if name == "jax" and not extras:
                extras = tuple(package.metadata.get_all("Provides-Extra") or ())
    for folder in folders:
        for plugin in _names(Path(folder, "jax_plugins"), re.compile(r"xla_(?:cuda|rocm)\d+")):
            packages.setdefault(f"jax-{plugin.removeprefix('xla_')}-plugin", "")
    return TargetInterpreter(python=python, packages=packages, jax_extras=extras)


def _names(folder: Path, wanted: re.Pattern[str]) -> list[str]:
    try:
        return sorted(entry.name for entry in folder.iterdir() if wanted.fullmatch(entry.name))
    except OSError:
        return []


def _hex(path: Path) -> int | None:
    try:
        return int(text_at(path), 16)
    except ValueError:
        return None


CUDA_12_DRIVER = (525, 60, 13)  # the oldest that runs it, like the next (CUDA's release notes)
CUDA_13_DRIVER = (580,)
CUDA_13_CAPABILITY = (7, 5)

TPU_KINDS = {
    0x0027: "TPU v2 or v3",
    0x0056: "TPU v4",
    0x005E: "TPU v4",
    0x0062: "TPU v5p",
    0x0063: "TPU v5e",
    0x006F: "TPU v6e",
    0x0076: "TPU7x",
}
"""TPUs by PCI device number; Google's other PCI devices are network cards and disks of its cloud, without any TPU."""

_PLATFORM_NAMES = {"cuda": ("cuda", "gpu"), "rocm": ("rocm", "gpu"), "tpu": ("tpu",), "metal": ("metal", "mps")}


class Obstacle(NamedTuple):
    """Why JAX does not use a device, and what fixes that (a command if there is one)."""

    reason: str
    hint: str = ""


def with_obstacle(device: Device, obstacle: Obstacle | None) -> Device:
    """Return the device with what keeps JAX from it; unchanged if nothing known does: JAX decides then."""
    if obstacle is None:
        return device
    return replace(device, used_by_jax=False, reason=obstacle.reason, hint=obstacle.hint)


def _on_bus(platform: str, kind: str, pci_bus_id: str | None, obstacle: Obstacle | None) -> Device:
    """Return a device that NVML does not list, found only on the bus. Its number is not known yet."""
    name = HIDDEN if platform == "cuda" else platform
    return with_obstacle(Device(id=f"{name}:0", platform=platform, kind=kind, pci_bus_id=pci_bus_id), obstacle)


def cuda_obstacle(listing: NvidiaListing, target: TargetInterpreter, environment: Mapping[str, str]) -> Obstacle | None:
    """Return what keeps JAX from every NVIDIA GPU; None if nothing that can be known does."""
    if hidden := _platform_hidden("cuda", environment):
        return hidden
    if hides_all(environment):
        value = environment[VARIABLE]
        return Obstacle(f"{VARIABLE}={value!r} hides all GPUs", f"unset {VARIABLE}")
    driver = _version(listing.driver)
    if driver and driver < CUDA_12_DRIVER:
        least = ".".join(map(str, CUDA_12_DRIVER))
        return Obstacle(
            f"the NVIDIA driver {listing.driver} is too old for JAX's CUDA 12, which needs {least}",
            f"Update the driver to {least} or newer; 580 or newer also runs CUDA 13.",
        )
    return _plugin_obstacle("cuda", target, driver, listing.gpus)


def gpu_obstacle(gpu: Device, listing: NvidiaListing, environment: Mapping[str, str]) -> Obstacle | None:
    """Return what keeps JAX from this one GPU or MIG instance, although it may use others."""
    if gpu.fault:
        return Obstacle(
            f"LOST: {gpu.fault}", f"Reset it (as root: nvidia-smi --gpu-reset -i {gpu.machine_index}), or reboot."
        )
    if gpu.mig_enabled:
        if gpu.mig:
            return Obstacle("it is split into MIG instances, which are listed separately")
        return Obstacle("MIG is on, but it has no instance", "Make one as root: nvidia-smi mig -cgi 0 -C")
    visible = visible_gpus(listing.gpus, environment)
    if not visible.certain or gpu in visible.gpus:
        return None
    value = environment.get(VARIABLE)
    reason = f"without {VARIABLE}, CUDA uses another device" if value is None else f"{VARIABLE}={value} hides it"
    return Obstacle(reason, f"export {VARIABLE}={gpu.uuid or gpu.number}")


def bus_accelerators(
    machine: MachineHardware, listing: NvidiaListing, target: TargetInterpreter, environment: Mapping[str, str]
) -> tuple[Device, ...]:
    """Return accelerators on the PCI bus (and Apple's GPU), other than those that NVML lists."""
    amd_obstacle = _platform_hidden("rocm", environment) or _plugin_obstacle("rocm", target)
    cards = [device for device in machine.pci if device.vendor == AMD and device.is_accelerator]
    accelerators = [
        *_nvidia_on_bus(machine, listing, target),
        *(_on_bus("rocm", card.product or "AMD GPU", card.address, amd_obstacle) for card in cards),
    ]
    tpu_obstacle = _platform_hidden("tpu", environment)
    if tpu_obstacle is None and target.packages is not None and not _has(target, "libtpu"):
        tpu_obstacle = Obstacle(f"libtpu is not installed for {target.python}", install_command("tpu", target))
    tpus = [device for device in machine.pci if device.vendor == GOOGLE and device.device in TPU_KINDS]
    chips: list[tuple[str, str | None]] = [(TPU_KINDS[device.device], device.address) for device in tpus]
    if not chips:
        accel = [node for node in machine.tpu_nodes if node.startswith("/dev/accel")]
        # Class 0x12 are processing accelerators: `/dev/accel*` may then be those of another vendor.
        named_otherwise = any(device.class_code >> 16 == 0x12 and device.vendor != GOOGLE for device in machine.pci)
        chips = [] if named_otherwise else [(f"TPU at {node}", None) for node in accel]
    accelerators += [_on_bus("tpu", kind, address, tpu_obstacle) for kind, address in chips]
    if machine.system == "Darwin" and machine.processor == "arm64" and not _has(target, "jax-metal"):
        obstacle = Obstacle(
            "JAX has no Metal plugin of its own; Apple's jax-metal is experimental, needs older jax versions than "
            "jaxprof does, and lacks many operations: the CPU is used",
            f"{_pip(target)} jax-metal   (in an environment of its own)",
        )
        accelerators.append(_on_bus("metal", "Apple GPU", None, obstacle))
    return tuple(accelerators)


def install_command(
    platform: str, target: TargetInterpreter, driver: tuple[int, ...] = (), gpus: Sequence[Device] = ()
) -> str:
    """Return the pip command that installs JAX for `platform` in `target`, at the version of its jax. Pinning jax keeps
    a training environment as it is: only what is missing is added."""
    extra = _extra(platform, target, driver, gpus)
    version = (target.packages or {}).get("jax")
    pin = f"=={version}" if version else ""
    upgrade = "" if version else "-U "
    return f'{_pip(target)} {upgrade}"jax[{extra}]{pin}"'


def _extra(platform: str, target: TargetInterpreter, driver: tuple[int, ...], gpus: Sequence[Device]) -> str:
    if platform == "rocm":
        return next((extra for extra in target.jax_extras if extra.startswith("rocm")), "rocm7-local")
    if platform != "cuda":
        return platform
    capabilities = [_version(gpu.compute_capability) for gpu in gpus if gpu.compute_capability]
    offered = not target.jax_extras or "cuda13" in target.jax_extras
    new_enough = driver >= CUDA_13_DRIVER and all(found >= CUDA_13_CAPABILITY for found in capabilities)
    return "cuda13" if offered and driver and new_enough else "cuda12"


def _plugin_obstacle(
    platform: str, target: TargetInterpreter, driver: tuple[int, ...] = (), gpus: Sequence[Device] = ()
) -> Obstacle | None:
    """Return the obstacle of a plugin that is missing, or does not fit jaxlib or the driver; else None."""
    if target.packages is None:
        return None
    command = install_command(platform, target, driver, gpus)
    pattern = re.compile(rf"jax-{platform}\d+-plugin")
    plugins = {name: version for name, version in target.packages.items() if pattern.fullmatch(name)}
    if not plugins:
        family = re.sub(r"-local$", "", _extra(platform, target, driver, gpus))
        jax = "" if "jax" in target.packages else ", nor is jax"
        return Obstacle(f"jax-{family}-plugin is not installed for {target.python}{jax}", command)
    jaxlib = target.packages.get("jaxlib")
    releases = {_release(version) for version in plugins.values()}
    if jaxlib is not None and () not in releases and _release(jaxlib) not in releases:
        versions = ", ".join(f"{name} {version}" for name, version in sorted(plugins.items()))
        return Obstacle(f"{versions} does not fit jaxlib {jaxlib}: they must have the same version", command)
    if platform == "cuda" and set(plugins) == {"jax-cuda13-plugin"} and driver and driver < CUDA_13_DRIVER:
        version = ".".join(map(str, driver))
        return Obstacle(f"CUDA 13 needs driver 580 or newer, but this is {version}", command)
    return None


def _nvidia_on_bus(machine: MachineHardware, listing: NvidiaListing, target: TargetInterpreter) -> list[Device]:
    """Return GPUs that NVML does not show: there is no driver, or one that NVML cannot query."""
    listed = {gpu.pci_bus_id for gpu in listing.gpus}
    missing = [device for device in machine.pci if device.vendor == NVIDIA and device.is_display]
    missing = [device for device in missing if normal_pci_bus_id(device.address) not in listed]
    if listing.gpus and None in listed:  # one of those that NVML lists, but without an address
        missing = missing[: max(0, len(missing) - sum(gpu.pci_bus_id is None for gpu in listing.gpus))]
    command = install_command("cuda", target, _version(machine.nvidia_driver))
    if listing.gpus:
        reason = "this container or job has no access to it"
        hint = "Request it when starting the container or job: --gpus all, --gres=gpu:N."
    elif listing.late:
        return [_on_bus("cuda", "NVIDIA GPU", device.address, None) for device in missing]  # JAX may use them
    elif machine.nvidia_driver:
        why = listing.problem or "NVML lists no GPU"
        reason = f"driver {machine.nvidia_driver} is loaded, but {why}"
        hint = f"`nvidia-smi` should list it; in a container, start it with --gpus all. Then: {command}"
    else:
        reason = "the NVIDIA driver is not loaded"
        hint = f"Install NVIDIA's driver (580 or newer runs CUDA 12 and 13), then: {command}"
    obstacle = Obstacle(reason, hint)
    addresses: list[str | None] = [device.address for device in missing]
    if not addresses and not listing.gpus:  # a container without the PCI bus
        addresses = [None] * machine.nvidia_proc_gpus
    return [_on_bus("cuda", "NVIDIA GPU", address, obstacle) for address in addresses]


def _platform_hidden(platform: str, environment: Mapping[str, str]) -> Obstacle | None:
    """Return the obstacle if `JAX_PLATFORMS` names other platforms only; else None."""
    value = environment.get("JAX_PLATFORMS", "").strip()
    wanted = [name.strip().lower() for name in value.split(",")]
    if value and not any(name in wanted for name in _PLATFORM_NAMES[platform]):
        return Obstacle(f"JAX_PLATFORMS={value} excludes it", "unset JAX_PLATFORMS")
    return None


def _pip(target: TargetInterpreter) -> str:
    return f"{shlex.quote(target.python)} -m pip install"


def _has(target: TargetInterpreter, package: str) -> bool:
    return package in (target.packages or {})


def _release(version: str) -> tuple[int, ...]:
    return _version(version)[:3]


def _version(text: str | None) -> tuple[int, ...]:
    """Return the leading numbers of a version; empty if it is unknown."""
    match = re.match(r"\d+(?:\.\d+)*", text or "")
    return tuple(int(part) for part in match.group().split(".")) if match else ()
