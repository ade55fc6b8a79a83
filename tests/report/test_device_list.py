"""Devices as text of 80 columns and as JSON."""

import pytest

from devices.making import GIB, facts, gpu
from golden import held
from jaxprof.devices.inventory.machine import local_devices, merge
from jaxprof.events import DeviceReading
from jaxprof.facts.devices import listed_devices, memory_text
from jaxprof.report.device_list import devices_text

GPU_READING = DeviceReading(
    device="cuda:0",
    utilisation=0.87,
    memory_used_bytes=98 * GIB,
    memory_limit_bytes=140 * GIB,
    power_watts=612.0,
    power_limit_watts=700.0,
    temperature_celsius=64.0,
    clock_hertz=1.98e9,
    throttle_reasons=["software power cap"],
    processes=[{"pid": 4711, "name": "python", "user": "alice", "memory_bytes": 12 * GIB}],
)
CPU_READING = DeviceReading(
    device="cpu:0",
    utilisation=0.12,
    core_utilisation=[0.0, 0.24],
    memory_used_bytes=21 * GIB,
    memory_limit_bytes=128 * GIB,
    load_average=1.9,
)
TOLD = {"id": "cuda:0", "platform": "cuda", "kind": "NVIDIA H200", "process": 0, "core_count": 132}


def joined():
    return merge(local_devices(facts(gpu(0))), {"devices": [TOLD, {"id": "cpu:0", "process": 0}]})


def test_the_table_is_one_line_a_device_and_then_the_rest():
    rows = listed_devices(joined(), [GPU_READING, CPU_READING])
    held("devices.txt", "".join(f"{line}\n" for line in devices_text(rows)))


@pytest.mark.parametrize(
    ("used", "limit", "text"),
    [
        (512, 2048 * GIB, "0.0 / 2.0 TiB"),
        (None, 16 * GIB, "- / 16.0 GiB"),
        (GIB, None, "1.00 GiB / -"),
        (0, 0, "0.0 / 0.0 B"),
    ],
)
def test_memory_is_told_in_the_unit_of_the_limit(used, limit, text):
    assert memory_text(used, limit) == text
