"""What the wall time of a job went to: each cause where it is, and not where it is not."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

import program_events
from jaxprof import events as e
from jaxprof.analysis.jobs.figures import CAUSES
from jaxprof.analysis.jobs.job import Goodput, job_figures
from jaxprof.report.hosts import CAUSE_WORDS, goodput_lines
from jaxprof.session import Session
from jaxprof.session.log.job_folder import read_job
from job_folders import process, stderr

SECONDS = 20


def windows(states: dict[str, float], *lines: tuple[int, float, str, str], seconds: int = SECONDS) -> list[e.Event]:
    """A window of each second, with lines of the loop: number, seconds, state, call."""
    rows = [program_events.line(*line) for line in lines]
    return [*program_events.steady(seconds, states, rows), program_events.compiled("step")]


def of(folder: Path, *loops: Sequence[e.Event], **more: float) -> Goodput:
    for index, inside in enumerate(loops):
        process(folder, index, len(loops), *inside, **more)
    found = job_figures(read_job(folder, Session)).goodput
    assert set(found.causes) == set(CAUSES)
    assert sum(found.shares.values()) == pytest.approx(1.0)
    assert min(found.causes.values()) >= 0.0
    return found


CLEAN = windows({"device_busy": 1.0}, (88, 1.0, "device_busy", "step"))


def test_a_clean_job_is_useful_as_far_as_it_was_seen(tmp_path: Path) -> None:
    found = of(tmp_path, CLEAN, CLEAN)
    assert (found.seconds, found.processes) == (pytest.approx(2 * SECONDS), 2)
    assert found.shares["useful"] == pytest.approx(1.0)


LATE = {
    "data": windows({"device_busy": 0.7, "data": 0.3}, (88, 0.7, "device_busy", "step"), (86, 0.3, "data", "next()")),
    "host": windows(
        {"device_busy": 0.7, "host_busy": 0.3}, (88, 0.7, "device_busy", "step"), (91, 0.3, "host_busy", "save()")
    ),
}


@pytest.mark.parametrize("cause", LATE)
def test_what_one_process_does_alone_the_others_wait_for(tmp_path: Path, cause: str) -> None:
    """Four processes of 20 s, of which one has 6 s of its own work: the three others wait 6 s each."""
    found = of(tmp_path, CLEAN, LATE[cause], CLEAN, CLEAN)
    assert found.causes[cause] == pytest.approx(6.0)
    assert found.causes["waiting"] == pytest.approx(18.0)
    assert found.shares["useful"] == pytest.approx(0.7)


def test_where_all_do_it_nobody_waits(tmp_path: Path) -> None:
    found = of(tmp_path, LATE["data"], LATE["data"])
    assert (found.causes["waiting"], found.causes["data"]) == (0.0, pytest.approx(12.0))


def test_processes_that_do_not_go_in_step_do_not_wait(tmp_path: Path) -> None:
    short = windows({"device_busy": 1.0}, (88, 1.0, "device_busy", "step"), seconds=10)
    found = of(tmp_path, CLEAN, short)
    assert found.causes["waiting"] == 0.0
    assert found.causes["not_seen"] == pytest.approx(10.0)


@pytest.mark.parametrize(("state", "cause"), [("import", "start"), ("stopped", "stopped"), ("waiting", "outside_loop")])
def test_what_is_not_the_loop(tmp_path: Path, state: str, cause: str) -> None:
    part = windows({"device_busy": 0.6, state: 0.4}, (88, 0.6, "device_busy", "step"))
    assert of(tmp_path / "with", part, part).causes[cause] == pytest.approx(16.0)
    assert of(tmp_path / "without", CLEAN, CLEAN).causes[cause] == 0.0


def test_first_compilations_and_those_again(tmp_path: Path) -> None:
    part = windows({"device_busy": 0.9, "compile": 0.1}, (88, 0.9, "device_busy", "step"))
    again = [program_events.compiled("step", "shape", compile_seconds=1.0, trace_seconds=None, lower_seconds=None)]
    first = of(tmp_path / "first", part, part)
    assert (first.causes["first_compile"], first.causes["recompile"]) == (pytest.approx(4.0), 0.0)
    both = of(tmp_path / "both", [*part, *again], part)
    assert (both.causes["first_compile"], both.causes["recompile"]) == (pytest.approx(3.0), pytest.approx(1.0))


def test_what_comes_after_a_failure_is_not_useful(tmp_path: Path) -> None:
    """It raises in its sixth second; both processes hang in the collective for fourteen more."""
    failed = [*CLEAN, *stderr("Traceback (most recent call last):", "ValueError: no", seconds=6.0)]
    process(tmp_path, 0, 2, *CLEAN, wall=20.0)
    process(tmp_path, 1, 2, *failed, wall=20.0, exit_code=1)
    found = job_figures(read_job(tmp_path, Session)).goodput
    assert found.causes["after_failure"] == pytest.approx(28.0, abs=2.0)
    assert found.causes["useful"] == pytest.approx(12.0, abs=2.0)
    assert sum(found.causes.values()) == pytest.approx(40.0)


def test_a_job_without_a_loop_has_none(tmp_path: Path) -> None:
    process(tmp_path, 0, 1, program_events.compiled())
    assert job_figures(read_job(tmp_path, Session)).goodput is None


def test_its_lines_name_what_took_time_alone(tmp_path: Path) -> None:
    assert set(CAUSE_WORDS) == set(CAUSES)
    text = "\n".join(goodput_lines(of(tmp_path, CLEAN, LATE["data"])))
    assert "making or fetching input" in text
    assert "first compilations" not in text
    assert "goodput ≈ 70 %" in text
    assert max(map(len, text.splitlines())) <= 80
