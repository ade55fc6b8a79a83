"""Live readings: one for each device, in order, and their history through a change of the list."""

from __future__ import annotations

from devices.fake_nvml import GPU_IS_LOST, UUID_A, UUID_B, Chip, FakeNvml
from devices.making import facts
from jaxprof.devices.inventory.join import merge
from jaxprof.devices.inventory.machine import Device, local_devices
from jaxprof.devices.live.cgroup import Limits
from jaxprof.devices.live.host import HostSampler
from jaxprof.devices.live.monitor import Monitor
from jaxprof.devices.live.nvidia import Nvml


def machine(*chips: Chip, environment: dict[str, str] | None = None) -> tuple[FakeNvml, tuple[Device, ...]]:
    module = FakeNvml(*chips)
    listing = Nvml(module).listing()
    return module, local_devices(facts(*listing.gpus, environment=environment))


def test_every_device_has_its_reading_in_order() -> None:
    module, devices = machine(Chip(), Chip(uuid=UUID_B, used=7))
    tpu = Device(id="tpu:0", platform="tpu", used_by_jax=True)
    monitor = Monitor([*devices, tpu], HostSampler(limits=Limits()), Nvml(module))
    readings = monitor.read()
    assert [reading.device for reading in readings] == ["cuda:0", "cuda:1", "cpu:0", "tpu:0"]
    assert readings[1].memory_used_bytes == 7
    assert readings[2].memory_limit_bytes is not None
    assert readings[3].utilisation is None
    assert readings[3].memory_used_bytes is None


def test_a_gpu_that_is_lost_has_readings_of_unknowns() -> None:
    module, devices = machine(Chip())
    monitor = Monitor(devices, nvml=Nvml(module))
    assert monitor.read()[0].utilisation is not None
    module.broken = dict.fromkeys([*module.asked, "nvmlDeviceGetTemperatureV"], GPU_IS_LOST)
    reading = monitor.read()[0]
    assert (reading.device, reading.utilisation, reading.memory_used_bytes) == ("cuda:0", None, None)


def test_history_follows_a_gpu_to_its_new_number_and_no_other() -> None:
    module, devices = machine(Chip(used=1), Chip(uuid=UUID_B, used=2))
    monitor = Monitor(devices, nvml=Nvml(module))
    monitor.read()
    answer = {"devices": [{"id": "cuda:0", "platform": "cuda", "uuid": UUID_B}]}
    monitor.follow(merge(devices, answer))
    assert [reading.memory_used_bytes for reading in monitor.history("cuda:0")] == [2]
    assert [reading.memory_used_bytes for reading in monitor.history("nvidia:0")] == [1]
    monitor.read()
    assert [reading.memory_used_bytes for reading in monitor.history("cuda:0")] == [2, 2]
    assert UUID_A in {device.uuid for device in devices}
