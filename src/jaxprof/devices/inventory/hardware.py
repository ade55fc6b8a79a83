"""Read what the machine and the target interpreter have from files: PCI devices, device nodes, installed packages.

No process is started and nothing is imported in the target interpreter, so the answer is immediate. `accelerators`
draws the conclusions.
"""

from __future__ import annotations

import platform
import re
import sys
from collections.abc import Mapping
from pathlib import Path

from jaxprof.light_dataclass import dataclass, field

NVIDIA, AMD, GOOGLE = 0x10DE, 0x1002, 0x1AE0

_CANDIDATES = (
    "jax",
    "jaxlib",
    "libtpu",
    "jax-metal",
    *(f"jax-{kit}-{part}" for kit in ("cuda12", "cuda13", "rocm60", "rocm7") for part in ("plugin", "pjrt")),
)


@dataclass(frozen=True, slots=True)
class PciDevice:
    """One entry of `/sys/bus/pci/devices`."""

    address: str
    vendor: int
    device: int
    class_code: int
    """Class, subclass and programming interface: `0x030200` is a 3D controller."""

    @property
    def is_display(self) -> bool:
        """Whether the class is 0x03: GPUs, including those without an output."""
        return self.class_code >> 16 == 0x03

    @property
    def is_accelerator(self) -> bool:
        """Whether it is a GPU, or of class 0x12, a processing accelerator, as AMD Instinct cards are."""
        return self.class_code >> 16 in (0x03, 0x12)


@dataclass(frozen=True, slots=True, kw_only=True)
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


@dataclass(frozen=True, slots=True, kw_only=True)
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
    pci = tuple(_pci_devices(root / "sys/bus/pci/devices"))
    return MachineHardware(
        system=platform.system(),
        processor=platform.machine(),
        pci=pci,
        nvidia_driver=_nvidia_driver(root / "proc/driver/nvidia/version"),
        nvidia_proc_gpus=len(_names(root / "proc/driver/nvidia/gpus", re.compile(r".+"))),
        tpu_nodes=tuple(f"/dev/{name}" for name in _names(root / "dev", re.compile(r"accel\d+"))),
    )


def read_target(python: str = sys.executable) -> TargetInterpreter:
    """Find jax and its plugins in the environment of `python`, in its folders, without starting it."""
    from importlib.metadata import distributions  # takes 20 ms: imported only if it is needed

    folders = [str(folder) for folder in _site_packages(python)]
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


def _site_packages(python: str) -> list[Path]:
    if python == sys.executable:
        return [Path(entry or ".") for entry in sys.path]
    prefix = Path(python).parent.parent  # not resolved: in a virtual environment `python` is a link to another place
    folders = sorted(prefix.glob("lib/python3*/site-packages")) + sorted(prefix.glob("lib/python3*/dist-packages"))
    if not folders and (windows := prefix / "Lib/site-packages").is_dir():
        folders = [windows]
    return folders


def _pci_devices(folder: Path) -> list[PciDevice]:
    devices = []
    for name in _names(folder, re.compile(r"[\da-fA-F:.]+")):
        values = [_hex(folder / name / part) for part in ("vendor", "device", "class")]
        if None not in values:
            vendor, device, class_code = (value or 0 for value in values)
            devices.append(PciDevice(name.lower(), vendor, device, class_code))
    return devices


def _nvidia_driver(path: Path) -> str | None:
    """Read the version in a line such as `NVRM version: NVIDIA UNIX x86_64 Kernel Module  570.86.15  Thu ...`; the open
    module words it differently."""
    try:
        match = re.search(r"\s(\d{3,}(?:\.\d+)+)\s", path.read_text(encoding="utf-8", errors="replace"))
    except OSError:
        return None
    return match.group(1) if match else None


def _names(folder: Path, wanted: re.Pattern[str]) -> list[str]:
    try:
        return sorted(entry.name for entry in folder.iterdir() if wanted.fullmatch(entry.name))
    except OSError:
        return []


def _hex(path: Path) -> int | None:
    try:
        return int(path.read_text(encoding="utf-8").strip(), 16)
    except (OSError, ValueError):
        return None
