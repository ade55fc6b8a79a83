"""Devices that are held back, and those that only run at another clock."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import program_events
from jaxprof import events as e
from jaxprof.analysis.finding import Finding
from jaxprof.analysis.jobs.job import job_figures
from jaxprof.session import Session
from jaxprof.session.log.job_folder import read_job
from job_folders import job, loop, process


def readings(
    gigahertz: float, *reasons: str, device: str = "cuda:0", busy: float = 0.9, count: int = 20
) -> list[e.Event]:
    """Readings of a device, half a second apart."""
    return [
        e.DeviceReading(
            device=device,
            utilisation=busy,
            clock_hertz=gigahertz * 1e9,
            throttle_reasons=list(reasons),
            monotonic_seconds=program_events.BEGAN + number / 2,
        )
        for number in range(count)
    ]


def found(folder: Path, *each: list[e.Event]) -> list[Finding]:
    figures = job_figures(read_job(job(folder, *[[*loop(), *taken] for taken in each]), Session))
    return [finding for finding in figures.findings if finding.code == "throttled-device"]


def test_the_device_that_is_held_back_is_named(tmp_path: Path) -> None:
    (finding,) = found(tmp_path, readings(1.7), readings(1.2, "too hot"), readings(1.7), readings(1.71))
    assert (finding.index, finding.part) == (1, "device")
    assert finding.message.startswith("cuda:0 on node1 is throttled (too hot): its clock is at 1.20 G")
    assert "1.70 G" in finding.message


def test_of_several_devices_of_one_host_the_one(tmp_path: Path) -> None:
    both = [*readings(1.7), *readings(1.2, "power limit", device="cuda:1")]
    (finding,) = found(tmp_path, both)
    assert finding.message.startswith("cuda:1 on node0")


def test_processes_of_one_host_name_its_device_once(tmp_path: Path) -> None:
    hot, cool = readings(1.2, "too hot"), readings(1.7)
    one: dict[str, Any] = {"host": "one"}
    for index in range(2):
        process(tmp_path, index, 3, *loop(), *hot, header=one)
    process(tmp_path, 2, 3, *loop(), *cool)
    figures = job_figures(read_job(tmp_path, Session))
    assert [finding.code for finding in figures.findings] == ["throttled-device"]


@pytest.mark.parametrize(
    ("each", "why"),
    [
        ([readings(1.7), readings(1.2)], "lower, and no reason is given: another kind, or an idle moment"),
        ([readings(1.7), readings(1.6, "power limit")], "a reason, and nearly the same clock"),
        ([readings(1.2, "too hot"), readings(1.2, "too hot")], "all of them alike"),
        ([readings(1.7), readings(0.3, "too hot", busy=0.0)], "an idle device"),
        ([readings(1.7), readings(1.2, "too hot", count=3)], "too few readings"),
        ([readings(1.7), [*readings(1.2, "too hot", count=5), *readings(1.2, count=15)]], "a reason now and then"),
        ([readings(3.0, device="cpu:0"), readings(1.0, "too hot", device="cpu:0")], "processors"),
        ([readings(1.2, "too hot"), []], "nothing to compare with"),
    ],
)
def test_what_is_not_called_throttled(tmp_path: Path, each: list[list[e.Event]], why: str) -> None:
    assert found(tmp_path, *each) == [], why
