from unittest.mock import Mock

import pytest

from jaxprof.cli import selection as devices
from jaxprof.devices import Device
from jaxprof.errors import UsageError, WorkerError
from jaxprof.runner.interpreter import Interpreter, find_interpreter

WITHOUT_JAX = Interpreter("/usr/bin/python3", None)
GPUS = (
    Device(id="cuda:0", platform="cuda", kind="NVIDIA H100", uuid="GPU-1", used_by_jax=True),
    Device(id="cpu:0", platform="cpu", used_by_jax=True),
    Device(id="nvidia:1", platform="cuda", used_by_jax=False, reason="no CUDA plugin", hint="pip install jax[cuda12]"),
)


def test_without_jax_the_machine_is_listed_all_the_same(call, monkeypatch):
    monkeypatch.setattr("jaxprof.runner.interpreter.find_interpreter", lambda path: WITHOUT_JAX)
    said = call("devices")
    assert said.code == 0
    assert "has no jax" in said.err
    assert "cpu:0" in said.out


def test_a_probe_that_fails_is_told_and_not_raised(monkeypatch):
    monkeypatch.setattr(devices, "jax_devices", Mock(side_effect=WorkerError("the driver hangs")))
    found, problem = devices.find_all(find_interpreter())
    assert problem == "the driver hangs"
    assert "cpu:0" in [device.id for device in found]


def test_gpu_means_cuda_and_an_unused_device_says_why(monkeypatch):
    monkeypatch.setattr(devices, "find_all", lambda interpreter: (GPUS, ""))
    assert devices.choose(["gpu:0", "cuda", "cpu"], WITHOUT_JAX) == ["cuda:0", "cpu:0"]
    for word, said in (("nvidia:1", "no CUDA plugin"), ("cuda:7", "unknown device")):
        with pytest.raises(UsageError, match=said):
            devices.choose([word], WITHOUT_JAX)
    monkeypatch.setattr(devices, "find_all", None)
    assert devices.choose(["cpu", "cpu:0"], WITHOUT_JAX) == ["cpu:0"], "nothing is asked"


def test_a_kind_of_device_that_is_not_there_says_why(monkeypatch):
    _, cpu, unused = GPUS
    monkeypatch.setattr(devices, "find_all", lambda interpreter: ((cpu, unused), ""))
    with pytest.raises(UsageError) as raised:
        devices.choose(["gpu:0"], WITHOUT_JAX)
    assert "no gpu that JAX uses: nvidia:1 (cuda): no CUDA plugin" in raised.value.what
    assert raised.value.hint == "pip install jax[cuda12]"
    with pytest.raises(UsageError, match="no tpu: the PCI bus shows none, and the jax of /usr/bin/python3 sees cpu:0"):
        devices.choose(["tpu"], WITHOUT_JAX)
    monkeypatch.setattr(devices, "find_all", lambda interpreter: ((cpu,), "/usr/bin/python3 has no jax"))
    for word, said in (
        ("gpu:1", r"this machine has no gpu: .* and /usr/bin/python3 has no jax"),
        ("banana", "unknown"),
    ):
        with pytest.raises(UsageError, match=said):
            devices.choose([word], WITHOUT_JAX)


def test_one_folder_that_is_removed_is_no_folders(call, monkeypatch):
    monkeypatch.setattr("jaxprof.devices.targets.wheels.remove", lambda vendor: ["kit"])
    assert call("devices", "target", "remove", "tpu").err == "removed 1 folder\n"
