"""What a worker's environment is, so that it uses its one device and no more memory than there is. CUDA_VISIBLE_DEVICES
as CUDA reads it."""

import pytest

from devices.making import GIB, facts, gpu, split, target
from jaxprof.devices.inventory.join import merge
from jaxprof.devices.inventory.machine import local_devices
from jaxprof.devices.inventory.placement import worker_environment
from jaxprof.devices.inventory.visible import settled_order, visible_gpus
from jaxprof.devices.live.nvidia import Gpu
from jaxprof.errors import UsageError
from tables import rows

DEVICES = local_devices(facts(gpu(0), gpu(1, free=20 * GIB)))


def variables(settings):
    """The environment of these settings, as a shell has them."""
    return dict(setting.split("=") for setting in settings.split())


def test_a_worker_sees_its_device_alone_a_gpu_or_an_instance_by_its_uuid_as_number_0():
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


def test_preallocation_is_off_where_less_is_free_and_that_is_said():
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


def test_a_device_that_jax_does_not_use_is_refused_with_what_mends_it():
    devices = local_devices(facts(gpu(0), installed=target()))
    with pytest.raises(UsageError) as raised:
        worker_environment("cuda:0", devices, {})
    assert "not installed" in raised.value.what
    assert "pip install" in raised.value.hint
    with pytest.raises(UsageError, match="cuda:5") as raised:
        worker_environment("cuda:5", DEVICES, {})
    assert "cuda:0" in raised.value.hint, "the near ones"


ALIKE = tuple(Gpu(index=n, name="H200", uuid=f"GPU-{letter}0-{letter}") for n, letter in enumerate("abcd"))
MIXED = (Gpu(index=0, name="T4", uuid="GPU-a"), Gpu(index=1, name="H200", uuid="GPU-b"))
INSTANCES = tuple(Gpu(index=0, mig_index=n, name="H200 MIG", uuid=f"MIG-{n}f") for n in range(2))
SPLIT = (Gpu(index=0, name="H200", uuid="GPU-a", mig_enabled=True, mig=INSTANCES),)


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
        assert [gpu.index for gpu in visible.gpus] == [int(index) for index in indices.split()]
        assert visible.certain


def test_different_gpus_are_numbered_by_speed_which_only_cuda_knows():
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
    assert [gpu.mig_index for gpu in found] == numbers


def test_the_order_is_settled_only_where_the_user_did_not_choose():
    assert settled_order({}) == {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"}
    assert settled_order({"CUDA_VISIBLE_DEVICES": "1"}) == {}
    assert settled_order({"CUDA_DEVICE_ORDER": "FASTEST_FIRST"}) == {}
