"""Devices as text of 80 columns and as JSON."""

from dataclasses import replace
from unittest.mock import Mock

import pytest

from devices.making import GIB, facts, gpu, target
from golden import held
from jaxprof.devices import Connection, Wiring
from jaxprof.devices.inventory.machine import local_devices, merge
from jaxprof.events import DeviceReading
from jaxprof.facts.devices import ListedDevice, _own_name, list_devices, memory_text, state_words, title_of
from jaxprof.report import report_lines
from jaxprof.report.device_list import device_pieces, devices_text

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
    rows = list_devices(joined(), [GPU_READING, CPU_READING])
    held("devices.txt", "".join(f"{line}\n" for line in devices_text(rows)))


def test_each_reason_of_unused_devices_is_said_once():
    devices = local_devices(facts(gpu(0), gpu(1), replace(gpu(2), fault="fell off the bus"), installed=target()))
    lines = "\n".join(devices_text(list_devices(devices, []), "580.95"))
    assert lines.startswith("3 × H200 · driver 580.95 · JAX uses none\n")
    assert lines.count("jax-cuda13-plugin is not installed") == 1
    assert "not used by JAX: cuda:0, cuda:1: " in lines
    assert "LOST, fell off the bus. Reset it" in lines


def test_one_device_is_shown_with_its_links_and_processes():
    connections = (*(Connection(gpu=f"{gpu}", over="NV18") for gpu in (1, 2)), Connection(gpu="3", over="SYS"))
    wiring = Wiring(
        performance_state=0,
        memory_clock_hertz=2.619e9,
        memory_clock_limit_hertz=2.619e9,
        pcie_generation=4,
        pcie_generation_limit=5,
        pcie_lanes=16,
        pcie_lanes_limit=16,
        pcie_replays=3,
        numa_node=1,
        nvlinks_up=17,
        nvlinks_down=1,
        nvlinks_to_switch=17,
        connections=connections,
    )
    (row, *_) = list_devices(joined(), [replace(GPU_READING, ecc_errors=0)])
    held("device.txt", "".join(f"{line}\n" for line in report_lines(device_pieces(replace(row, wiring=wiring)))))


def test_a_lost_gpu_shown_alone_claims_nothing_of_its_processes():
    row = ListedDevice(replace(gpu(0), fault="fell off the bus"), DeviceReading(device="cuda:0"))
    text = "\n".join(report_lines(device_pieces(row)))
    assert "LOST: fell off the bus" in text
    assert "no process" not in text
    (lost, *_) = local_devices(facts(replace(gpu(0), fault="fell off the bus"), installed=target()))
    text = "\n".join(report_lines(device_pieces(ListedDevice(lost, None))))
    assert text.count("fell off the bus") == 1
    assert "Reset it" in text
    idle = " ".join(
        line.strip() for line in report_lines(device_pieces(ListedDevice(gpu(0), DeviceReading(device="cuda:0"))))
    )
    assert "lists no process that uses it; those outside a container may not show" in idle


def test_state_for_a_user_without_a_name(monkeypatch):
    monkeypatch.setattr("getpass.getuser", Mock(side_effect=KeyError("uid not found: 4711")))
    _own_name.cache_clear()
    assert ("alice", "note") in state_words(gpu(0), GPU_READING, 0.0)
    _own_name.cache_clear()


def test_title_of_gpus_of_two_kinds_is_left_to_the_rows():
    assert title_of([gpu(0), gpu(1)]) == "2 × H200"
    assert title_of([gpu(0), gpu(1, name="Tesla T4")]) == ""
    assert title_of([gpu(0)]) == ""


def test_state_has_the_worst_first_and_the_age_of_a_late_reading():
    device = replace(gpu(0), xids=(31, 79))
    reading = replace(GPU_READING, monotonic_seconds=100.0, ecc_errors=412, throttle_reasons=["software power cap"])
    words = [word for word, _ in state_words(device, reading, 101.0)]
    assert words == ["Xid 79", "ECC 412", "power cap", "alice"]
    assert "28 s old" in [word for word, _ in state_words(device, reading, 128.0)]
    healthy = replace(GPU_READING, throttle_reasons=[], processes=[], ecc_errors=0)
    assert state_words(gpu(0), healthy, 0.0) == []
    lost = replace(GPU_READING, fault="fell off the bus")
    assert state_words(gpu(0), lost, 0.0) == [("LOST: fell off the bus", "error")]


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
