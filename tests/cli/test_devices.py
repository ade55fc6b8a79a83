from dataclasses import replace
from unittest.mock import Mock

import pytest

from devices.making import facts, gpu, on_bus, target
from jaxprof.base.errors import UsageError, WorkerError
from jaxprof.cli.output import note
from jaxprof.devices import Device
from jaxprof.devices.inventory.accelerators import AMD, GOOGLE, MachineHardware
from jaxprof.devices.live.nvidia import NvidiaListing, nvml_threads
from jaxprof.runner import device_choice as devices
from jaxprof.runner.device_choice import choose
from jaxprof.runner.interpreter import Interpreter, find_interpreter
from report import sessions

WITHOUT_JAX = Interpreter("/usr/bin/python3", None)
GPUS = (
    Device(id="cuda:0", platform="cuda", kind="NVIDIA H100", uuid="GPU-1", used_by_jax=True),
    Device(id="cpu:0", platform="cpu", used_by_jax=True),
    Device(id="nvidia:1", platform="cuda", used_by_jax=False, reason="no CUDA plugin", hint="pip install jax[cuda12]"),
)


def test_without_jax_the_machine_is_listed_all_the_same(call, monkeypatch):
    monkeypatch.setattr("jaxprof.cli.commands.devices.find_interpreter", lambda path: WITHOUT_JAX)
    said = call("devices")
    assert said.code == 0
    assert "has no jax" in said.err
    assert "cpu:0" in said.out


def test_watch_is_for_a_person(call):
    said = call("devices", "list", "--watch", "--format", "json")
    assert said.code == 2
    assert "--watch" in said.err


@pytest.mark.parametrize(
    ("listing", "said"),
    [
        (NvidiaListing(problem="NVML does not answer", late=True), "is unknown: NVML has not answered in 8 s"),
        (NvidiaListing(), "'5' is not a device"),
    ],
)
def test_gpu_of_a_driver_that_is_late_is_unknown(listing, said, call, monkeypatch):
    monkeypatch.setattr(nvml_threads(), "listing", lambda wait_seconds: listing)
    monkeypatch.setattr("jaxprof.cli.commands.devices.find_all", lambda interpreter: (GPUS[1:2], ""))
    answer = call("devices", "show", "5", "--format", "json")
    assert answer.code == 2
    assert said in answer.err
    assert said in answer.out


def test_a_probe_that_fails_is_told_and_not_raised(monkeypatch):
    monkeypatch.setattr(devices, "jax_devices", Mock(side_effect=WorkerError("the driver hangs")))
    found, problem = devices.find_all(find_interpreter())
    assert problem == "the driver hangs"
    assert "cpu:0" in [device.id for device in found]


def test_gpu_means_cuda_and_an_unused_device_says_why(monkeypatch):
    monkeypatch.setattr(devices, "find_all", lambda interpreter: (GPUS, ""))
    assert choose(["gpu:0", "cuda", "cpu"], WITHOUT_JAX, note) == ["cuda:0", "cpu:0"]
    for word, said in (("nvidia:1", "no CUDA plugin"), ("cuda:7", "unknown device")):
        with pytest.raises(UsageError, match=said):
            choose([word], WITHOUT_JAX, note)
    monkeypatch.setattr(devices, "find_all", None)
    assert choose(["cpu", "cpu:0"], WITHOUT_JAX, note) == ["cpu:0"], "nothing is asked"


def test_a_kind_of_device_that_is_not_there_says_why(monkeypatch):
    _, cpu, unused = GPUS
    monkeypatch.setattr(devices, "find_all", lambda interpreter: ((cpu, unused), ""))
    with pytest.raises(UsageError) as raised:
        choose(["gpu:0"], WITHOUT_JAX, note)
    assert "no gpu that JAX uses: nvidia:1 (cuda): no CUDA plugin" in raised.value.what
    assert raised.value.hint == "pip install jax[cuda12]"
    with pytest.raises(UsageError, match="no tpu: the PCI bus shows none, and the jax of /usr/bin/python3 sees cpu:0"):
        choose(["tpu"], WITHOUT_JAX, note)
    monkeypatch.setattr(devices, "find_all", lambda interpreter: ((cpu,), "/usr/bin/python3 has no jax"))
    for word, said in (
        ("gpu:1", r"this machine has no gpu: .* and /usr/bin/python3 has no jax"),
        ("banana", "unknown"),
    ):
        with pytest.raises(UsageError, match=said):
            choose([word], WITHOUT_JAX, note)


def test_missing_devices_of_a_setting_are_reported(monkeypatch, tmp_path, capsys):
    _, cpu, _ = GPUS
    monkeypatch.setattr(devices, "find_all", lambda interpreter: ((cpu,), ""))
    own = tmp_path / "config.toml"
    monkeypatch.setenv("JAXPROF_CONFIG", str(own))
    own.write_text('devices = ["tpu:0", "cpu:0"]\n')
    assert choose([], WITHOUT_JAX, note) == ["cpu:0"]
    assert capsys.readouterr().err.startswith(f"note: this runs on cpu:0. {own}: this machine has no tpu: ")
    own.write_text('devices = ["tpu:0"]\n')
    with pytest.raises(UsageError) as refused:
        choose([], WITHOUT_JAX, note)
    assert refused.value.what.startswith(f"{own}: this machine has no tpu: ")
    with pytest.raises(UsageError) as refused:
        choose(["tpu:0"], WITHOUT_JAX, note)
    assert refused.value.what.startswith("this machine has no tpu: ")


CPU = {"id": "cpu:0", "platform": "cpu"}
CUDA = {"id": "cuda:0", "platform": "cuda", "kind": "NVIDIA H200", "local_hardware_id": 0}
TPU = {"id": "tpu:0", "platform": "tpu"}
NOTE = "note: this runs on cpu:0, because "


@pytest.fixture
def machine(monkeypatch):
    """Chooses the default device on a machine, whose facts are given, and whose JAX `tells` this if it is asked."""
    monkeypatch.delenv("JAX_PLATFORMS", raising=False)

    def chosen(*gpus, tells=None, variables=None, **more):
        fails = isinstance(tells, Exception)
        asked = Mock(side_effect=tells if fails else None, return_value=tells)
        monkeypatch.setattr(devices, "gather", lambda python: facts(*gpus, **more))
        monkeypatch.setattr(devices, "jax_devices", asked)
        (device,) = choose([], Interpreter("/usr/bin/python3", "0.10.2"), note, variables)
        assert asked.called == (tells is not None)
        return device

    return chosen


def test_without_a_word_it_is_the_device_that_jax_uses(machine, capsys):
    both = [CUDA, CPU]
    assert machine(gpu(0), tells={"devices": both, "default": "cuda:0"}) == "cuda:0"
    assert machine(gpu(0), tells={"devices": both, "default": "cpu:0"}) == "cpu:0", "the user chose so for JAX"
    tpu = MachineHardware(pci=(on_bus(GOOGLE, 0x63, 0x088000),))
    told = {"devices": [TPU, CPU], "default": "tpu:0"}
    assert machine(machine=tpu, installed=target(libtpu="0.0.42"), tells=told) == "tpu:0"
    unknown = replace(target(), packages=None)  # its packages are where they are not looked for: JAX decides
    assert machine(gpu(0), installed=unknown, tells={"devices": both, "default": "cuda:0"}) == "cuda:0"
    assert capsys.readouterr().err == ""


def test_jax_is_not_started_on_a_machine_with_cpu_only(machine, monkeypatch, capsys):
    machines = (
        MachineHardware(),
        MachineHardware(system="Darwin", processor="arm64"),
        MachineHardware(pci=(on_bus(AMD),)),
    )
    assert [machine(machine=each) for each in machines] == ["cpu:0"] * 3
    assert machine(gpu(0), variables={"JAX_PLATFORMS": "CPU,cuda"}) == "cpu:0"
    monkeypatch.setenv("JAX_PLATFORMS", "cpu")
    assert machine(gpu(0)) == "cpu:0"
    monkeypatch.setattr(devices, "gather", None)
    assert choose((), Interpreter("/usr/bin/python3", "0.10.2"), note) == ["cpu:0"], "nothing is looked for"
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"installed": target()}, "JAX does not use cuda:0 (NVIDIA H200): jax-cuda13-plugin is not installed for "),
        ({"installed": target()}, '; /home/me/venv/bin/python -m pip install "jax[cuda13]==0.10.2"'),
        ({"environment": {"CUDA_VISIBLE_DEVICES": ""}}, "CUDA_VISIBLE_DEVICES='' hides all GPUs; unset CUDA_VISIBLE"),
        ({"tells": {"devices": [CPU], "errors": {"cuda": "no\n  device"}, "default": "cpu:0"}}, "start it: no device"),
        ({"tells": WorkerError("the driver hangs")}, f"{NOTE}JAX could not list its devices: the driver hangs"),
    ],
)
def test_unused_gpu_has_a_line_with_its_fix(machine, capsys, more, said):
    assert machine(gpu(0), **more) == "cpu:0"
    noted = capsys.readouterr().err
    assert noted.startswith(NOTE)
    assert noted.count("\n") == 1
    assert said in noted


def test_variables_that_ask_for_what_is_not_there_are_named(machine, capsys):
    assert machine(variables={"JAX_PLATFORMS": "cuda"}) == "cpu:0"
    assert capsys.readouterr().err == f"{NOTE}JAX_PLATFORMS='cuda' names no other device of this machine\n"


MEASURING = (
    ("run", "selu"),
    ("compare", "selu:numpy", "selu:jit"),
    ("hlo", "selu"),
    ("hlo", "selu", "--diff", "selu:jax"),
    ("gate", "selu", "--base", "selu:jax", "--fail-on", "kernels"),
)


@pytest.mark.parametrize("words", MEASURING)
def test_every_command_that_measures_or_compiles_has_one_rule(call, monkeypatch, words):
    wanted = []

    def asked(given, *_):
        wanted.append([*given])
        raise UsageError("asked")

    monkeypatch.setattr(devices, "choose", asked)
    assert "asked" in call(*words).err
    assert "asked" in call(*words, "--device", "cuda:1").err
    monkeypatch.setenv("JAXPROF_DEVICES", "tpu:0")
    assert "asked" in call(*words).err
    assert wanted == [[], ["cuda:1"], []]
    if words[0] != "run":
        assert "--device" in call(*words, "--device", "cuda:1", "--for", "h100").err
        assert len(wanted) == 3


def test_a_file_has_been_compiled_already(call, monkeypatch, tmp_path):
    monkeypatch.setattr(devices, "choose", None)
    (tmp_path / "a.hlo").write_text(sessions.HLO)
    assert call("hlo", tmp_path / "a.hlo").code == 0
    assert "already compiled" in call("hlo", tmp_path / "a.hlo", "--device", "cpu:0").err


def test_one_folder_that_is_removed_is_no_folders(call, monkeypatch):
    monkeypatch.setattr("jaxprof.devices.absent.wheels.remove", lambda vendor: ["kit"])
    assert call("devices", "target", "remove", "tpu").err == "removed 1 folder\n"


@pytest.mark.parametrize(
    ("word", "vendor"), [("tpu", "tpu"), ("NVIDIA", "nvidia"), ("h100", "nvidia"), ("tpu-v5e", "tpu")]
)
def test_a_compiler_is_named_by_its_vendor_or_a_device(call, monkeypatch, word, vendor):
    removed = []
    monkeypatch.setattr("jaxprof.devices.absent.wheels.remove", lambda vendor: removed.append(vendor) or [])
    assert call("devices", "target", "remove", word).err == "nothing was installed\n"
    assert removed == [vendor]
    assert "cannot be compiled for" in call("devices", "target", "remove", "mi300x").err
