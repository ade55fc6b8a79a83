"""The CPU: which part of it is ours, and how busy it was between two readings."""

from __future__ import annotations

from collections import namedtuple
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from jaxprof.devices.live import host
from jaxprof.devices.live.cgroup import Limits, MemoryGroup
from jaxprof.devices.live.host import CpuFacts, HostSampler

Times = namedtuple("Times", "user system idle iowait guest")
FACTS = CpuFacts(
    model="A CPU",
    cores=(0, 2),
    quota_cores=None,
    machine_cores=4,
    memory_bytes=None,
    frequency_limit_hertz=None,
)


def counters(monkeypatch: pytest.MonkeyPatch, *counts: list[Times]) -> None:
    left = list(counts)
    monkeypatch.setattr(psutil, "cpu_times", lambda percpu: left.pop(0) if len(left) > 1 else left[0])


def core(busy: float, idle: float, wait: float = 0.0, guest: float = 0.0) -> Times:
    return Times(busy, 0.0, idle, wait, guest)


def test_use_is_what_happened_on_our_cores_between_two_readings(monkeypatch: pytest.MonkeyPatch) -> None:
    before = [core(10, 10)] * 4
    after = [core(10.25, 10.75), core(11, 10), core(11, 10), core(11, 10)]
    counters(monkeypatch, before, after)
    reading = HostSampler(FACTS, Limits()).read()
    assert reading.core_utilisation == pytest.approx([0.25, 1.0])
    assert reading.utilisation == pytest.approx(0.625)


def test_waiting_for_disks_is_idle_and_guests_count_once(monkeypatch: pytest.MonkeyPatch) -> None:
    counters(monkeypatch, [core(0, 0)], [core(busy=1, idle=1, wait=2, guest=1)])
    reading = HostSampler(replace(FACTS, cores=(0,)), Limits()).read()
    assert reading.core_utilisation == pytest.approx([0.25])


def test_where_psutil_knows_nothing_all_is_unknown(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def missing(*arguments: object, **options: object) -> None:
        raise FileNotFoundError("/proc/stat")

    for name in ("cpu_times", "virtual_memory", "cpu_freq", "getloadavg", "cpu_count"):
        monkeypatch.setattr(psutil, name, missing)
    monkeypatch.setattr(host, "CPUINFO", tmp_path / "none")
    reading = HostSampler(limits=Limits()).read()
    assert (reading.utilisation, reading.memory_used_bytes, reading.memory_limit_bytes) == (None, None, None)
    assert (reading.load_average, reading.clock_hertz, reading.core_utilisation) == (None, None, [])


def test_a_cgroup_with_less_memory_than_the_machine_is_the_limit(tmp_path: Path) -> None:
    (tmp_path / "used").write_text("3000")
    (tmp_path / "stat").write_text("inactive_file 1000")
    group = MemoryGroup(4096, tmp_path / "used", tmp_path / "stat", "inactive_file")
    limits = Limits(cores=1.5, memory=group)
    sampler = HostSampler(limits=limits)
    reading = sampler.read()
    assert (reading.memory_used_bytes, reading.memory_limit_bytes) == (2000, 4096)
    assert sampler.facts.memory_bytes == 4096


@pytest.mark.parametrize(("quota", "usable"), [(None, 2.0), (1.5, 1.5), (8.0, 2.0)])
def test_usable_cores_are_the_affinity_under_the_quota(quota: float | None, usable: float) -> None:
    assert replace(FACTS, quota_cores=quota).usable_cores == usable
