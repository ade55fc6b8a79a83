"""Processes of a job that were stopped."""

from __future__ import annotations

from pathlib import Path

import pytest

import program_events
from jaxprof import events as e
from jaxprof.analysis.finding import Finding
from jaxprof.analysis.jobs.job import job_figures
from jaxprof.session import Session
from jaxprof.session.log.job_folder import read_job
from job_folders import job


def stepping(seconds: int, *stops: tuple[float, float, str]) -> list[e.Event]:
    """A loop of so many seconds, and stops: when, for how long, and what found it."""
    inside = program_events.steady(seconds, {"device_busy": 1.0}, [program_events.line(88, 1.0, "device_busy", "step")])
    seen = [
        e.ProgramStopped(run=program_events.RUN, began_seconds=program_events.BEGAN + at, seconds=took, found_by=by)
        for at, took, by in stops
    ]
    return [*inside, program_events.compiled("step"), *seen]


def found(folder: Path, *loops: list[e.Event]) -> list[Finding]:
    every = job_figures(read_job(job(folder, *loops), Session)).findings
    return [finding for finding in every if finding.code == "process-stopped"]


def test_the_one_that_was_stopped_is_named_and_what_the_others_waited(tmp_path: Path) -> None:
    (finding,) = found(tmp_path, stepping(20), stepping(18, (5.0, 2.0, "state")), stepping(20))
    assert (finding.index, finding.seconds) == (1, pytest.approx(2.0))
    assert finding.message == (
        "process 1 on node1 was paused by a signal for 2.00 s, 5.00 s after it began; the others wait 2.00 s for it"
    )


def test_others_that_did_not_wait_are_not_said_to(tmp_path: Path) -> None:
    (finding,) = found(tmp_path, stepping(20), stepping(20, (5.0, 2.0, "state")), stepping(20))
    assert "wait" not in finding.message


def test_several_stops_of_one_process_are_one_finding(tmp_path: Path) -> None:
    loops = (stepping(20), stepping(17, (5.0, 2.0, "state"), (9.0, 1.0, "state")))
    (finding,) = found(tmp_path, *loops)
    assert "for 3.00 s, 2 times, first 5.00 s after it began" in finding.message


@pytest.mark.parametrize(
    ("by", "words"), [("standstill", "paused (with its container"), ("clock", "machine was suspended")]
)
def test_how_it_was_found_is_said(tmp_path: Path, by: str, words: str) -> None:
    (finding,) = found(tmp_path, stepping(20), stepping(20, (5.0, 2.0, by)))
    assert words in finding.message


def test_a_job_that_was_stopped_whole_is_one_finding(tmp_path: Path) -> None:
    stop = (5.0, 2.0, "standstill")
    (finding,) = found(tmp_path, *[stepping(18, stop) for _ in range(4)])
    assert finding.message.startswith("all 4 processes were paused for 2.00 s: process 0 was paused")


def test_nobody_was_stopped(tmp_path: Path) -> None:
    assert found(tmp_path, stepping(20), stepping(20, (5.0, 0.1, "state"))) == []
