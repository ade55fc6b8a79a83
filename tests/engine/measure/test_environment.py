"""What the machine says about itself, in files of Linux that are written here."""

from __future__ import annotations

import os

import pytest

from jaxprof.engine.measure import environment
from jaxprof.engine.measure.environment import HostLoad, HostLoadMeter


def says(monkeypatch: pytest.MonkeyPatch, line: str | None) -> None:
    """The first line of every file of the system is this one; None: there is none."""
    monkeypatch.setattr(environment, "_first_line", lambda path: line)


@pytest.mark.parametrize(
    ("quota", "cores"),
    [
        (None, 8.0),
        ("max 100000", 8.0),
        ("150000 100000", 1.5),
        ("50000 100000", 0.5),
        ("1600000 100000", 8.0),
        ("150000 0", 8.0),
        ("150000", 8.0),
        ("some 100000", 8.0),
    ],
)
def test_the_cores_are_those_of_the_affinity_or_of_the_quota_if_that_is_less(
    monkeypatch: pytest.MonkeyPatch, quota: str | None, cores: float
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: set(range(8)), raising=False)
    says(monkeypatch, quota)
    assert environment.cores() == cores


@pytest.mark.parametrize(
    ("line", "ticks"),
    [
        ("cpu  10 20 30 4000 5000 60 70 80 900 900", 270),
        ("cpu0 10 20 30 4000 5000 60 70 80 900 900", None),
        ("", None),
        (None, None),
    ],
)
def test_the_machine_is_busy_whenever_a_core_is_not_idle_and_does_not_wait_for_a_disk(
    monkeypatch: pytest.MonkeyPatch, line: str | None, ticks: int | None
) -> None:
    says(monkeypatch, line)
    busy = HostLoad.now().machine_busy_seconds
    assert busy == (None if ticks is None else ticks / os.sysconf("SC_CLK_TCK"))


def test_the_load_is_rounded_to_what_it_can_mean_and_may_be_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "getloadavg", lambda: (1.23456, 9.0, 9.0), raising=False)
    assert environment.load_average() == 1.235

    def refuse() -> tuple[float, float, float]:
        raise OSError

    monkeypatch.setattr(os, "getloadavg", refuse, raising=False)
    assert environment.load_average() is None


@pytest.mark.parametrize(("ended", "others", "busy"), [(0.0, 5.0, None), (4.0, 6.0, 1.5), (4.0, -0.1, 0.0)])
def test_other_processes_use_no_negative_number_of_cores_and_an_unknown_one_in_no_time(
    monkeypatch: pytest.MonkeyPatch, ended: float, others: float, busy: float | None
) -> None:
    readings = iter([HostLoad(0.0, 0.0, 0.0), HostLoad(ended, others, 0.0), HostLoad(ended, others, 0.0)])
    monkeypatch.setattr(HostLoad, "now", lambda: next(readings))
    assert HostLoadMeter().other_busy_cores() == busy
