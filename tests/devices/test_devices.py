"""The list of devices: without JAX, with its answer joined, and the ids that people type."""

import pytest

from devices.making import GIB, facts, gpu, on_bus, split, target
from jaxprof.devices.inventory.hardware import GOOGLE, MachineHardware
from jaxprof.devices.inventory.join import merge
from jaxprof.devices.inventory.machine import local_devices, parse_device
from jaxprof.errors import UsageError
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
    unusable = local_devices(facts(gpu(0), installed=target()))[1]
    assert (unusable.id, "jax-cuda13-plugin is not installed" in unusable.reason) == ("cuda:0", True), "it comes last"
    assert "pip install" in unusable.hint


def test_a_split_gpu_shows_its_instances():
    devices = local_devices(facts(split(0, 2), environment={"CUDA_VISIBLE_DEVICES": "MIG-1"}))
    assert uuids(devices) == {"cuda:0": "MIG-1", "cpu:0": None, "nvidia:0": "GPU-aaaa", "nvidia:1": "MIG-0"}


def test_jax_and_nvml_are_joined_by_ordinal_through_the_variable():
    local = local_devices(facts(gpu(0), gpu(1), gpu(2), environment={"CUDA_VISIBLE_DEVICES": "2,0"}))
    hidden = local[-1]
    assert (hidden.uuid, hidden.used_by_jax) == ("GPU-bbbb", False)
    assert "CUDA_VISIBLE_DEVICES=2,0 hides it" in hidden.reason
    assert hidden.hint == "export CUDA_VISIBLE_DEVICES=GPU-bbbb"
    devices = merge(local, {"devices": [jax_gpu(0), jax_gpu(1), JAX_CPU]})
    assert uuids(devices) == {"cuda:0": "GPU-cccc", "cuda:1": "GPU-aaaa", "cpu:0": None, "nvidia:1": "GPU-bbbb"}
    assert uuids(local) == uuids(devices)
    first = devices[0]
    assert (first.core_count, first.allocator_limit_bytes, first.memory_limit_bytes) == (132.0, 105 * GIB, 140 * GIB)
    assert [device.used_by_jax for device in devices] == [True, True, True, False]


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
    assert (fewer[2].used_by_jax, fewer[2].pci_bus_id) == (False, None)
    assert "JAX lists 1 of the 2" in fewer[2].reason


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
def test_what_is_no_device_is_refused_and_an_unknown_one_names_the_near_ones(text):
    with pytest.raises(UsageError) as raised:
        parse_device(text, ["cpu:0", "cuda:0"])
    assert text in raised.value.what
    assert "cuda:0" in raised.value.hint
