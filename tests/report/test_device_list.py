"""Devices as text of 80 columns and as JSON."""

from __future__ import annotations

import pytest

from devices.making import GIB, facts, gpu
from jaxprof.devices.inventory.join import merge
from jaxprof.devices.inventory.machine import Device, local_devices
from jaxprof.events import DeviceReading
from jaxprof.report.device_list import devices_text, memory_text

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


def joined() -> tuple[Device, ...]:
    return merge(local_devices(facts(gpu(0))), {"devices": [TOLD, {"id": "cpu:0", "process": 0}]})


def test_the_table_is_one_line_a_device_and_then_the_rest():
    assert devices_text(joined(), [GPU_READING, CPU_READING]) == [
        "device  kind            use  memory                power   temp     clock",
        "cuda:0  NVIDIA H200    87 %  98.0 / 140.0 GiB  612/700 W  64 °C  1.98 GHz",
        "cpu:0   AMD EPYC 9654  12 %  21.0 / 128.0 GiB          -      -         -",
        "  cuda:0: 132 cores, compute capability 9.0, GPU-aaaa, PCI 0000:01:00.0",
        "  cuda:0: held back by software power cap",
        "  cuda:0: used by python of alice (pid 4711), 12.0 GiB",
        "  cpu:0: 16 cores, load 1.90",
        "  cpu:0: use of each core 0 24 %",
    ]


@pytest.mark.parametrize(
    ("used", "limit", "text"),
    [
        (98.2 * GIB, 139.8 * GIB, "98.2 / 139.8 GiB"),
        (512, 2048 * GIB, "0.0 / 2.0 TiB"),
        (None, 16 * GIB, "- / 16.0 GiB"),
        (GIB, None, "1.00 GiB / -"),
        (0, 0, "0.0 / 0.0 B"),
    ],
)
def test_memory_is_told_in_the_unit_of_the_limit(used, limit, text):
    assert memory_text(used, limit) == text
