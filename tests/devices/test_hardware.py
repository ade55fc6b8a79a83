"""What files tell of the machine and of an interpreter, from copies made here."""

from __future__ import annotations

from pathlib import Path

import pytest

from jaxprof.devices.inventory.hardware import PciDevice, read_machine, read_target


def write(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def test_the_bus_the_driver_and_the_nodes_are_read(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "sys/bus/pci/devices/0000:1B:00.0/vendor": "0x10de\n",
            "sys/bus/pci/devices/0000:1B:00.0/device": "0x2335\n",
            "sys/bus/pci/devices/0000:1B:00.0/class": "0x030200\n",
            "sys/bus/pci/devices/0000:1c:00.0/vendor": "broken\n",
            "proc/driver/nvidia/version": "NVRM version: NVIDIA UNIX x86_64 Kernel Module  570.86.15  Thu Jan 1\n",
            "proc/driver/nvidia/gpus/0000:1b:00.0/information": "",
            "dev/accel0": "",
            "dev/accelerate": "",
        },
    )
    machine = read_machine(tmp_path)
    assert machine.pci == (PciDevice("0000:1b:00.0", 0x10DE, 0x2335, 0x030200),)
    assert machine.pci[0].is_display
    assert (machine.nvidia_driver, machine.nvidia_proc_gpus, machine.tpu_nodes) == ("570.86.15", 1, ("/dev/accel0",))


@pytest.fixture
def venv(tmp_path: Path) -> Path:
    site = "lib/python3.12/site-packages"
    write(
        tmp_path,
        {
            "bin/python": "",
            f"{site}/jax-0.9.1.dist-info/METADATA": "Metadata-Version: 2.1\nName: jax\nVersion: 0.9.1\n"
            "Provides-Extra: cuda12\nProvides-Extra: tpu\n",
            f"{site}/jax_cuda12_plugin-0.9.1.dist-info/METADATA": "Name: jax-cuda12-plugin\nVersion: 0.9.1\n",
        },
    )
    return tmp_path


def test_another_interpreter_is_read_without_being_started(venv: Path) -> None:
    found = read_target(str(venv / "bin/python"))
    assert found.packages == {"jax": "0.9.1", "jax-cuda12-plugin": "0.9.1"}
    assert found.jax_extras == ("cuda12", "tpu")
