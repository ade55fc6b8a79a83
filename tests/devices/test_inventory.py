"""The list of devices: without JAX, with its answer joined, and the ids that people type. What a worker's environment
is, so that it uses its one device and no more memory than there is; CUDA_VISIBLE_DEVICES as CUDA reads it. Why JAX does
not use an accelerator, and the command that mends it."""

from dataclasses import replace

import pytest

from devices.making import GIB, PYTHON, facts, gpu, on_bus, split, target
from jaxprof.base.errors import UsageError
from jaxprof.devices import Device, default_device
from jaxprof.devices.inventory.accelerators import (
    AMD,
    GOOGLE,
    NVIDIA,
    MachineHardware,
    bus_accelerators,
    cuda_obstacle,
    gpu_obstacle,
)
from jaxprof.devices.inventory.machine import local_devices, merge, parse_device
from jaxprof.devices.inventory.placement import order_variables, visible_gpus, worker_environment
from jaxprof.devices.live.nvidia import NvidiaListing
from tables import rows


def uuids(devices):
    return {device.id: device.uuid for device in devices}


def jax_gpu(number, **told):
    known = {"id": f"cuda:{number}", "platform": "cuda", "kind": "NVIDIA H200", "local_hardware_id": number}
    return {**known, "memory_limit_bytes": 105 * GIB, "core_count": 132, **told}


JAX_CPU = {"id": "cpu:0", "platform": "cpu", "kind": "cpu", "process": 0}


def test_without_jax_the_cpu_and_the_gpus_are_there():
    devices = local_devices(facts(gpu(0), gpu(1)))
    assert uuids(devices) == {"cuda:0": "GPU-aaaa", "cuda:1": "GPU-bbbb", "cpu:0": None}
    first, cpu = devices[0], devices[2]
    assert (first.kind, first.memory_limit_bytes) == ("NVIDIA H200", 140 * GIB)
    assert (cpu.kind, cpu.core_count, cpu.memory_limit_bytes) == ("AMD EPYC 9654", 16.0, 128 * GIB)
    assert {device.used_by_jax for device in devices} == {None}
    unusable = local_devices(facts(gpu(0), installed=target()))[0]
    assert unusable.id == "cuda:0"
    assert "jax-cuda13-plugin is not installed" in unusable.reason
    assert "pip install" in unusable.hint


def test_a_split_gpu_shows_its_instances_or_says_how_to_make_one():
    devices = local_devices(facts(split(0, 2), environment={"CUDA_VISIBLE_DEVICES": "MIG-1"}))
    assert uuids(devices) == {"cuda:0": "MIG-1", "cpu:0": None, "nvidia:0": "GPU-aaaa", "nvidia:1": "MIG-0"}
    assert "listed separately" in next(device.reason for device in devices if device.id == "nvidia:0")
    empty = split(0, 0)
    assert "nvidia-smi mig" in gpu_obstacle(empty, NvidiaListing(gpus=(empty,)), {}).hint


def test_jax_and_nvml_are_joined_by_ordinal_through_the_variable():
    local = local_devices(facts(gpu(0), gpu(1), gpu(2), environment={"CUDA_VISIBLE_DEVICES": "2,0"}))
    hidden = local[1]
    assert hidden.uuid == "GPU-bbbb"
    assert hidden.used_by_jax is False
    assert "CUDA_VISIBLE_DEVICES=2,0 hides it" in hidden.reason
    assert hidden.hint == "export CUDA_VISIBLE_DEVICES=GPU-bbbb"
    devices = merge(local, {"devices": [jax_gpu(0), jax_gpu(1), JAX_CPU]})
    assert uuids(devices) == {"cuda:0": "GPU-cccc", "cuda:1": "GPU-aaaa", "cpu:0": None, "nvidia:1": "GPU-bbbb"}
    assert uuids(local) == uuids(devices)
    told = merge(local, {"devices": [jax_gpu(0), jax_gpu(1), JAX_CPU], "default": "cuda:1"})
    assert [default_device(each) for each in (local, devices, told)] == ["cpu:0", "cpu:0", "cuda:1"]
    first = devices[0]
    assert (first.core_count, first.allocator_limit_bytes, first.memory_limit_bytes) == (132.0, 105 * GIB, 140 * GIB)
    assert {device.id for device in devices if not device.used_by_jax} == {"nvidia:1"}


def test_gpus_stand_as_nvidia_smi_numbers_them():
    lost = replace(gpu(2), fault="fell off the bus")
    devices = local_devices(facts(gpu(0), split(1, 2), lost, gpu(3)))
    assert [(each.machine_index, each.id) for each in devices] == [
        ("0", "cuda:0"), ("1", "nvidia:1"), ("1.0", "nvidia:4"), ("1.1", "nvidia:5"), ("2", "nvidia:2"),
        ("3", "cuda:1"), ("", "cpu:0"),
    ]  # fmt: skip
    assert devices[4].used_by_jax is False
    assert "--gpu-reset -i 2" in devices[4].hint


def test_late_nvml_leaves_the_gpus_on_the_bus_to_jax():
    machine = MachineHardware(pci=(on_bus(NVIDIA),), nvidia_driver="580.65.06")
    late, gone = (
        bus_accelerators(machine, NvidiaListing(problem="NVML does not answer", late=late), target(), {})[0]
        for late in (True, False)
    )
    assert late.used_by_jax is None
    assert gone.used_by_jax is False


@pytest.mark.parametrize("key", [{"pci_bus_id": "0000:02:00.0"}, {"uuid": "GPU-bbbb"}, {"uuid": "bbbb"}])
def test_an_address_of_jaxs_own_counts_more_than_any_number(key):
    local = local_devices(facts(gpu(0), gpu(1)))
    devices = merge(local, {"devices": [jax_gpu(0, **key)]})
    assert {**uuids(devices), "cpu:0": None} == {"cuda:0": "GPU-bbbb", "nvidia:0": "GPU-aaaa", "cpu:0": None}
    answer = {"devices": [JAX_CPU], "errors": {"cuda": "CUDA_ERROR_NO_DEVICE"}}
    unlisted = next(device for device in merge(local, answer) if device.id == "cuda:0")
    assert unlisted.used_by_jax is False
    assert "CUDA_ERROR_NO_DEVICE" in unlisted.reason


def test_what_cannot_be_told_apart_is_not_joined():
    environment = {"CUDA_VISIBLE_DEVICES": "0,1,2"}
    local = local_devices(facts(gpu(0, name="Tesla T4"), gpu(1), gpu(2), environment=environment))
    devices = merge(local, {"devices": [jax_gpu(0), jax_gpu(1), jax_gpu(2, kind="Tesla T4")]})
    joined = {device.id: device.uuid for device in devices if device.used_by_jax}
    assert joined == {"cuda:0": None, "cuda:1": None, "cuda:2": "GPU-aaaa"}
    apart = [device for device in devices if device.platform == "cuda" and not device.used_by_jax]
    assert {device.uuid for device in apart} == {"GPU-bbbb", "GPU-cccc"}
    assert "does not report enough" in apart[0].reason
    assert len({device.id for device in devices}) == len(devices)


def tpus(number):
    return MachineHardware(pci=tuple(on_bus(GOOGLE, 0x63, 0x088000, bus) for bus in range(number)))


def test_tpus_that_jax_lists_are_counted_and_not_listed_twice():
    local = local_devices(facts(machine=tpus(2), installed=target(libtpu="0.0.42")))
    assert [(device.id, device.used_by_jax) for device in local[:2]] == [("tpu:0", None), ("tpu:1", None)]
    told = [{"id": f"tpu:{number}", "platform": "tpu", "kind": "TPU v5e"} for number in range(2)]
    assert list(uuids(merge(local, {"devices": [*told, JAX_CPU]}))) == ["tpu:0", "tpu:1", "cpu:0"]
    fewer = merge(local, {"devices": [told[0], JAX_CPU]})
    assert fewer[1].used_by_jax is False
    assert fewer[1].pci_bus_id is None
    assert "JAX lists 1 of the 2" in fewer[1].reason


def test_devices_as_people_write_them():
    for text, known, canonical in rows("""
        gpu:0   -                     cuda:0
        cpu     -                     cpu:0
        CUDA:1  -                     cuda:1
        gpu:1   cpu:0 cuda:0 cuda:1   cuda:1
        gpu     cpu:0 rocm:0          rocm:0
        tpu:3   tpu:3                 tpu:3
    """):
        assert parse_device(f" {text} ", known.split() or None) == canonical


@pytest.mark.parametrize("text", ["cuda:7", "gpu:9", "cud:0", "", "cuda:", "cuda:x", "cuda:-1", ":0", "cuda:0:1"])
def test_unknown_devices_are_refused_with_near_names(text):
    with pytest.raises(UsageError) as raised:
        parse_device(text, ["cpu:0", "cuda:0"])
    assert text in raised.value.what
    assert "cuda:0" in raised.value.hint


DEVICES = local_devices(facts(gpu(0), gpu(1, free=20 * GIB)))


def variables(settings):
    return dict(setting.split("=") for setting in settings.split())


def test_a_worker_sees_its_device_alone_as_number_0():
    cpu = worker_environment("cpu:0", DEVICES, {})
    assert (cpu.environment, cpu.device, cpu.notes) == ({"JAX_PLATFORMS": "cpu"}, "cpu:0", ())
    worker = worker_environment("cuda:0", DEVICES, {"CUDA_VISIBLE_DEVICES": "1,0", "JAX_PLATFORMS": "cuda"})
    assert worker.environment == {"JAX_PLATFORMS": "cuda,cpu", "CUDA_VISIBLE_DEVICES": "GPU-aaaa"}
    assert (worker.device, worker.notes) == ("cuda:0", ())
    parts = local_devices(facts(split(0, 2), environment={"CUDA_VISIBLE_DEVICES": "MIG-1"}))
    assert worker_environment("cuda:0", parts, {}).environment["CUDA_VISIBLE_DEVICES"] == "MIG-1"


@pytest.mark.parametrize(("environment", "entry"), [({}, "1"), ({"CUDA_VISIBLE_DEVICES": "5, GPU-dd"}, "GPU-dd")])
def test_a_gpu_that_only_jax_knows_is_given_as_the_user_did(environment, entry):
    told = [{"id": f"cuda:{number}", "platform": "cuda", "kind": "GPU", "process": 0} for number in range(2)]
    worker = worker_environment("cuda:1", merge(local_devices(facts()), {"devices": told}), environment)
    assert (worker.environment["CUDA_VISIBLE_DEVICES"], worker.device) == (entry, "cuda:0")


def test_preallocation_is_off_if_less_is_free():
    worker = worker_environment("cuda:1", DEVICES, {})
    assert worker.environment["XLA_PYTHON_CLIENT_PREALLOCATE"] == "false"
    (note,) = worker.notes
    assert "cuda:1 has 20.0 GiB free of 140 GiB" in note
    assert "105 GiB (75 %)" in note


def test_the_users_own_settings_of_memory_count():
    for settings, off in rows("""
        XLA_CLIENT_MEM_FRACTION=0.1                                    False
        XLA_PYTHON_CLIENT_MEM_FRACTION=.14                             False
        XLA_PYTHON_CLIENT_MEM_FRACTION=.15                             True
        XLA_CLIENT_MEM_FRACTION=0.1 XLA_PYTHON_CLIENT_MEM_FRACTION=.9  False
        XLA_PYTHON_CLIENT_PREALLOCATE=false                            False
        XLA_PYTHON_CLIENT_ALLOCATOR=platform                           False
    """):
        worker = worker_environment("cuda:1", DEVICES, variables(settings))
        assert str(bool(worker.notes)) == off
        assert str(worker.environment.get("XLA_PYTHON_CLIENT_PREALLOCATE") == "false") == off


def test_a_device_unused_by_jax_is_refused_with_a_fix():
    devices = local_devices(facts(gpu(0), installed=target()))
    with pytest.raises(UsageError) as raised:
        worker_environment("cuda:0", devices, {})
    assert "not installed" in raised.value.what
    assert "pip install" in raised.value.hint
    with pytest.raises(UsageError, match="cuda:5") as raised:
        worker_environment("cuda:5", DEVICES, {})
    assert "cuda:0" in raised.value.hint, "the near ones"


def listed(index, kind, uuid, **more):
    return Device(id=f"nvidia:{index}", platform="cuda", kind=kind, uuid=uuid, **more)


ALIKE = tuple(listed(n, "H200", f"GPU-{letter}0-{letter}") for n, letter in enumerate("abcd"))
MIXED = (listed(0, "T4", "GPU-a"), listed(1, "H200", "GPU-b"))
INSTANCES = tuple(listed(0, "H200 MIG", f"MIG-{n}f", nvml_key=(0, n)) for n in range(2))
SPLIT = (listed(0, "H200", "GPU-a", mig_enabled=True, mig=INSTANCES),)


def test_the_list_is_read_up_to_its_first_bad_entry():
    for value, indices in rows("""
        2,0              2 0
        3 , 1            3 1
        -                -
        1,-1,2           1
        0,9,1            0
        1,1,2            1
        GPU-c0-c,GPU-a   2 0
        gpu-B            1
        GPU-             -
        MIG-0,0          -
    """):
        visible = visible_gpus(ALIKE, {"CUDA_VISIBLE_DEVICES": value})
        assert [gpu.number for gpu in visible.gpus] == [int(index) for index in indices.split()]
        assert visible.certain


def test_only_cuda_knows_the_order_of_different_gpus():
    for settings, certain in rows("""
        -                                                     False
        CUDA_DEVICE_ORDER=PCI_BUS_ID                          True
        CUDA_DEVICE_ORDER=FASTEST_FIRST                       False
        CUDA_VISIBLE_DEVICES=0 CUDA_DEVICE_ORDER=PCI_BUS_ID   True
        CUDA_VISIBLE_DEVICES=GPU-b,GPU-a                      True
    """):
        assert str(visible_gpus(MIXED, variables(settings)).certain) == certain
    assert len(visible_gpus(MIXED, {}).gpus) == 2, "all of them without the variable"


@pytest.mark.parametrize(("value", "numbers"), [(None, [0]), ("MIG-1f", [1]), ("MIG-1f,MIG-0", [1, 0]), ("0", [0])])
def test_instances_are_named_by_uuid(value, numbers):
    environment = {} if value is None else {"CUDA_VISIBLE_DEVICES": value}
    found = visible_gpus(SPLIT, environment).gpus
    assert [gpu.nvml_key[1] for gpu in found] == numbers


def test_the_order_is_settled_only_where_the_user_did_not_choose():
    assert order_variables({}) == {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"}
    assert order_variables({"CUDA_VISIBLE_DEVICES": "1"}) == {}
    assert order_variables({"CUDA_DEVICE_ORDER": "FASTEST_FIRST"}) == {}


PIP = f"{PYTHON} -m pip install"


def found(machine, installed, environment=None):
    return bus_accelerators(machine, NvidiaListing(problem="NVML: Driver Not Loaded"), installed, environment or {})


@pytest.mark.parametrize(
    ("driver", "capability", "plugin", "extras", "reason", "hint"),
    rows("""
        # a missing plugin is installed for the CUDA that the driver runs
        580.65.06   9.0  -              cuda12 cuda13  jax-cuda13-plugin is not installed  jax[cuda13]==0.10.2
        570.86.15   9.0  -              cuda12 cuda13  jax-cuda12-plugin is not installed  jax[cuda12]==0.10.2
        580.65.06   7.0  -              cuda12 cuda13  jax-cuda12-plugin is not installed  jax[cuda12]==0.10.2
        580.65.06   9.0  -              cuda12         jax-cuda12-plugin is not installed  jax[cuda12]==0.10.2
        -           9.0  -              cuda12 cuda13  jax-cuda12-plugin is not installed  jax[cuda12]==0.10.2
        550.54.15   9.0  cuda13=0.10.2  cuda12 cuda13  needs driver 580                    jax[cuda12]==0.10.2
        580.65.06   9.0  cuda13=0.9.0   cuda12 cuda13  jax-cuda13-plugin 0.9.0 does not fit jaxlib 0.10.2  jax[cuda13]
        470.256.02  9.0  -              cuda12 cuda13  470.256.02 is too old               -
    """),
)
def test_what_is_missing_is_named_with_what_mends_it(driver, capability, plugin, extras, reason, hint):
    listing = NvidiaListing(gpus=(gpu(0, capability=capability),), driver=driver or None)
    plugins = dict([plugin.split("=")] if plugin else [])
    obstacle = cuda_obstacle(listing, target(extras=tuple(extras.split()), **plugins), {})
    assert reason in obstacle.reason
    assert (f'{PIP} "{hint}' if hint else "driver") in obstacle.hint
    assert ("pip" in obstacle.hint) is bool(hint)


def test_a_variable_that_hides_gpus_is_named():
    listing = NvidiaListing(gpus=(gpu(0),), driver="580.65.06")
    for name, value, reason in rows("""
        JAX_PLATFORMS         cpu        JAX_PLATFORMS=cpu
        JAX_PLATFORMS         tpu, cpu   JAX_PLATFORMS=tpu, cpu
        CUDA_VISIBLE_DEVICES  -          CUDA_VISIBLE_DEVICES=''
        CUDA_VISIBLE_DEVICES  -1         CUDA_VISIBLE_DEVICES='-1'
        JAX_PLATFORMS         cuda       -
        JAX_PLATFORMS         gpu        -
        JAX_PLATFORMS         cpu,cuda   -
        JAX_PLATFORMS         CUDA       -
        JAX_PLATFORMS         -          -
    """):
        obstacle = cuda_obstacle(listing, target(cuda13="0.10.2"), {name: value})
        assert bool(obstacle) is bool(reason), (name, value)
        if obstacle is not None:
            assert reason in obstacle.reason
            assert obstacle.hint == f"unset {name}"


def test_a_gpu_without_a_driver_is_found_on_the_bus():
    (one,) = found(MachineHardware(pci=(on_bus(NVIDIA), on_bus(NVIDIA, 0x22A3, 0x068000, bus=2))), target())
    assert (one.platform, one.pci_bus_id) == ("cuda", "0000:01:00.0")
    assert "driver is not loaded" in one.reason
    assert f'{PIP} "jax[cuda12]==0.10.2"' in one.hint


@pytest.mark.parametrize("class_code", [0x030000, 0x120000])
def test_an_amd_gpu_wants_the_rocm_plugin_that_this_jax_offers(class_code):
    card = on_bus(AMD, class_code=class_code)
    machine = MachineHardware(pci=(card,))
    (one,) = found(machine, target())
    assert (one.platform, one.kind) == ("rocm", "AMD GPU")
    (named,) = found(MachineHardware(pci=(replace(card, product="AMD Instinct MI300X OAM"),)), target())
    assert named.kind == "AMD Instinct MI300X OAM"
    assert one.hint == f'{PIP} "jax[rocm7-local]==0.10.2"'
    (older,) = found(machine, target(extras=("rocm",)))
    assert '"jax[rocm]==' in older.hint
    (usable,) = found(machine, target(rocm7="0.10.2"))
    assert usable.used_by_jax is None


def test_a_tpu_wants_libtpu():
    for device, kind in ((0x0063, "TPU v5e"), (0x006F, "TPU v6e"), (0x0062, "TPU v5p"), (0x005E, "TPU v4")):
        machine = MachineHardware(pci=(on_bus(GOOGLE, device, 0x088000),), tpu_nodes=("/dev/accel0",))
        (one,) = found(machine, target())
        assert (one.platform, one.kind) == ("tpu", kind)
        assert one.hint == f'{PIP} "jax[tpu]==0.10.2"'
    assert found(machine, target(libtpu="0.0.42"))[0].used_by_jax is None
    (hidden,) = found(machine, target(libtpu="0.0.42"), {"JAX_PLATFORMS": "cpu"})
    assert "JAX_PLATFORMS=cpu" in hidden.reason
