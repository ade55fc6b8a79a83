"""Devices as text of 80 columns and as JSON."""

from __future__ import annotations

import json

import pytest

from devices.making import GIB, facts, gpu, target
from jaxprof.devices.inventory.join import merge
from jaxprof.devices.inventory.machine import Device, local_devices
from jaxprof.events import DeviceReading
from jaxprof.report.device_list import devices_report, devices_text, memory_text

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


def test_the_table_is_one_line_a_device_and_then_the_rest() -> None:
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


def test_an_unused_device_is_told_with_a_command_on_a_line_of_its_own() -> None:
    lines = devices_text(local_devices(facts(gpu(0), installed=target())))
    told = " ".join(line.strip() for line in lines)
    assert "cuda:0: not used by JAX: jax-cuda13-plugin is not installed" in told
    assert lines[-1] == '    /home/me/venv/bin/python -m pip install "jax[cuda13]==0.10.2"'


def test_the_report_is_json_with_null_for_what_is_unknown() -> None:
    report = devices_report(joined(), [GPU_READING])
    assert json.loads(json.dumps(report, allow_nan=False)) == report
    first, second = report["devices"]

    assert (first["id"], first["used_by_jax"], first["core_count"], first["reason"]) == ("cuda:0", True, 132.0, None)
    assert first["memory_used_bytes"] == 98 * GIB
    assert first["reading"]["utilisation"] == 0.87
    assert first["reading"]["processes"][0]["user"] == "alice"
    assert (second["id"], second["reading"], second["memory_used_bytes"]) == ("cpu:0", None, None)


@pytest.mark.parametrize(
    ("used", "limit", "text"),
    [
        (98.2 * GIB, 139.8 * GIB, "98.2 / 139.8 GiB"),
        (512, 2048 * GIB, "0.0 / 2.0 TiB"),
        (None, 16 * GIB, "- / 16.0 GiB"),
        (GIB, None, "1.00 GiB / -"),
        (None, None, "-"),
        (0, 0, "0.0 / 0.0 B"),
    ],
)
def test_memory_is_told_in_the_unit_of_the_limit(used: float | None, limit: float | None, text: str) -> None:
    assert memory_text(used, limit) == text
