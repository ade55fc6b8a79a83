"""What the machine says about itself, in files of Linux that are written here."""

from __future__ import annotations

import os
from pathlib import Path

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


def test_the_first_line_of_a_file_is_read_or_nothing_is_known(tmp_path: Path) -> None:
    (tmp_path / "governor").write_text("performance\nand more\n")
    (tmp_path / "empty").touch()
    names = ("governor", "empty", "missing")
    assert [environment._first_line(tmp_path / name) for name in names] == ["performance", None, None]


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


def test_asked_twice_the_meter_counts_nothing_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    readings = iter(HostLoad(float(at), 2.0 * at, 0.0) for at in range(10))
    monkeypatch.setattr(HostLoad, "now", lambda: next(readings))
    meter = HostLoadMeter()
    assert (meter.other_busy_cores(), meter.other_busy_cores()) == (2.0, 2.0)


def test_settings_that_json_cannot_hold_are_written_as_text() -> None:
    assert [environment._scalar(value) for value in (None, True, 3, 1.5, "x")] == [None, True, 3, 1.5, "x"]
    assert environment._scalar(("a", 1)) == "('a', 1)"


def test_without_devices_of_jax_its_settings_are_told_where_it_is_imported() -> None:
    found = environment.read_environment([], None)
    assert found.settings["jax_enable_x64"] is False
    assert found.jaxlib is not None
    assert found.settings["cores"] == environment.cores()
