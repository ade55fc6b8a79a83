"""What the collectives of a job move, how fast, and how much of the time nothing else runs meanwhile."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import program_events
from jaxprof import events as e
from jaxprof.analysis.arrivals import Exchanged
from jaxprof.analysis.explain.jobs import explanation_of_job
from jaxprof.analysis.finding import Finding
from jaxprof.analysis.jobs.job import JobFigures, job_figures
from jaxprof.report.hosts import to_dict, to_text
from jaxprof.session import Session
from jaxprof.session.log.job_folder import read_job
from job_folders import ALL_REDUCE, captures, loop, process


def figures(folder: Path, count: int = 4, *, hosts: int = 1, kind: str = "", **more: Any) -> JobFigures:
    """A job whose program moves 4 MiB in each step of 10 ms; `kind` of its devices, if they are known."""
    devices = [{"id": "gpu:0", "platform": "gpu", "kind": kind}]
    seen = [e.EnvironmentRead(python="3.13", numpy="2.0", run=program_events.RUN, devices=devices)] if kind else []
    for index, taken in enumerate(captures(count, hlo=ALL_REDUCE, **more)):
        inside = [*loop(), *seen, *taken]
        process(folder, index, count, *inside, header={"host": f"node{index % hosts}"})
    return job_figures(read_job(folder, Session))


def test_an_exchange_that_takes_much_of_the_time(tmp_path: Path) -> None:
    job = figures(tmp_path, exchange=4e-3)
    [finding] = job.findings
    assert (finding.code, finding.index) == ("exposed-exchange", None)
    assert "all-reduce, all-reduce of 4.00 MiB over 4 devices, 100 times" in finding.message
    assert "what the links allow is not known" in finding.message
    assert finding.seconds == pytest.approx(100 * 3.6e-3, rel=0.05)
    [found] = job.collectives
    assert found.exposed_share == pytest.approx(0.36, abs=0.03)
    assert found.bus_bytes_per_second == pytest.approx(1.5 * 4 * 2**20 / found.exchange_median_seconds)
    assert found.fast_bus_bytes_per_second > found.bus_bytes_per_second
    assert found.possible_bytes_per_second is None
    assert not job.names_somebody


def test_it_is_explained_and_shown_as_an_estimate_of_the_whole_job(tmp_path: Path) -> None:
    job = figures(tmp_path, exchange=4e-3)
    [ranked] = explanation_of_job(job, "job").findings
    assert (ranked.code, ranked.process, ranked.host, ranked.cost.estimate) == ("exposed-exchange", None, "", True)
    text = to_text(job)
    assert "No process stands out" in text
    assert "4.00 MiB" in text
    assert "shares of the time of its loop" in text
    unsampled = [replace(process, loop=None) for process in job.processes]
    assert "shares of the time" not in to_text(replace(job, processes=unsampled))
    assert to_dict(job)["collectives"][0]["bytes"] == 4 * 2**20


def test_who_is_late_comes_before_what_all_of_them_do(tmp_path: Path) -> None:
    """However much more the exchange takes."""
    job = figures(tmp_path, exchange=4e-3)
    late = Finding("straggler", "late", "look", index=2, part="data", seconds=0.01)
    ranked = explanation_of_job(replace(job, findings=(*job.findings, late)), "job").findings
    assert [each.code for each in ranked] == ["straggler", "exposed-exchange"]


def test_no_finding_of_a_short_one_or_of_one_that_other_kernels_hide(tmp_path: Path) -> None:
    assert not figures(tmp_path / "short").findings
    hidden = figures(tmp_path / "hidden", exchange=4e-3, beside=1.0)
    assert not hidden.findings
    assert hidden.collectives[0].exposed_seconds == pytest.approx(0, abs=1e-3)
    half = figures(tmp_path / "half", exchange=4e-3, beside=0.5)
    assert half.collectives[0].exposed_share == pytest.approx(0.18, abs=0.03)


def test_waiting_for_a_late_process_is_no_exchange(tmp_path: Path) -> None:
    job = figures(tmp_path, late=1)
    assert [finding.code for finding in job.findings] == ["slow-device"]
    assert job.collectives[0].exposed_share < 0.1


@pytest.mark.parametrize(("hosts", "known"), [(1, True), (4, False)])
def test_what_the_links_can_carry_is_known_of_one_host_of_known_devices(
    tmp_path: Path, hosts: int, known: bool
) -> None:
    job = figures(tmp_path, exchange=4e-3, hosts=hosts, kind="NVIDIA H200")
    [found] = job.collectives
    assert (found.possible_bytes_per_second is not None) == known
    [finding] = job.findings
    assert ("that the links allow" in finding.message) == known
    if found.possible_bytes_per_second is not None:
        assert found.possible_bytes_per_second > 400e9


@pytest.mark.parametrize(
    ("opcode", "devices", "share"),
    [
        ("all-reduce", 4, 1.5),
        ("all-gather", 4, 0.75),
        ("reduce-scatter", 8, 0.875),
        ("all-to-all", 2, 0.5),
        ("collective-broadcast", 4, 1),
        ("collective-permute", None, 1),
        ("all-reduce", None, None),
    ],
)
def test_what_each_device_sends(opcode: str, devices: int | None, share: float | None) -> None:
    assert Exchanged(opcode, 1000, devices).bus_bytes == (None if share is None else 1000 * share)
