"""Passes of processes beside each other: by number, by the clock of a host, by the pattern of their ends."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from jaxprof.analysis.jobs.step_grid import ProcessPasses, alignment_notices, alignments
from jaxprof.analysis.programs.result import pass_series
from jaxprof.session import Session
from jaxprof.session.log.job_folder import read_job
from job_folders import loop, step_grid
from job_folders import process as folder_process
from program_events import BEGAN, passes

RANDOM = random.Random(11)
JITTERED = [0.02 * (1 + 0.3 * RANDOM.random()) for _ in range(400)]


def process(
    index: int, first: int, skipped: int = 0, *, name: str = "step", host: str = "box", clock: float = 1000.0,
    lengths: list[float] = JITTERED,
) -> ProcessPasses:  # fmt: skip
    """It was seen from the pass `skipped` of the job on, and numbers it `first`."""
    began = 50.0 + sum(lengths[:skipped])
    series = pass_series([passes(first, lengths[skipped:], name=name, began_seconds=began)])
    assert series is not None
    return ProcessPasses(index, host, clock, series)


def test_equal_numbers_are_the_same_step() -> None:
    itself, other = alignments([process(0, 3, 3), process(1, 20, 20)])
    assert (itself.shift, itself.by) == (0, "number")
    assert (other.shift, other.by, other.notice) == (0, "number", "")


def test_on_other_hosts_numbers_alone_decide() -> None:
    _, other = alignments([process(0, 3, 3), process(1, 103, 3, host="other", clock=5000.0)])
    assert (other.shift, other.by, other.notice) == (0, "number", "")


def test_a_counter_that_is_off_on_one_host_is_said_and_the_clock_is_taken() -> None:
    _, other = alignments([process(0, 3, 3), process(1, 103, 3)])
    assert (other.shift, other.by) == (-100, "clock")
    assert (
        other.notice == "process 1 is aligned with the others by the clock: its step is 100 ahead of that of process 0"
    )


def test_processes_at_their_own_pace_keep_their_numbers() -> None:
    _, other = alignments([process(0, 0), process(1, 0, lengths=[0.03] * 300)])
    assert (other.shift, other.by, other.notice) == (0, "number", "")


@pytest.mark.parametrize("names", [("", ""), ("step", ""), ("step", "batch")])
def test_without_a_counter_that_both_have_the_clock_of_the_host_decides(names: tuple[str, str]) -> None:
    _, other = alignments([process(0, 1, 3, name=names[0]), process(1, 1, 20, name=names[1])])
    assert (other.shift, other.by) == (17, "clock")
    assert "no common counter" in other.notice


def test_on_other_hosts_the_pattern_of_the_ends_decides() -> None:
    _, other = alignments([
        process(0, 1, 3, name=""),
        process(1, 1, 20, name="", host="other", clock=1012.0),
    ])  # fmt: skip
    assert (other.shift, other.by) == (17, "pattern")
    assert "by the pattern of its step ends" in other.notice


def test_steps_that_are_all_alike_have_no_pattern() -> None:
    alike = [0.02] * 200
    _, other = alignments([
        process(0, 1, 3, name="", lengths=alike),
        process(1, 1, 20, name="", host="other", clock=1012.0, lengths=alike),
    ])  # fmt: skip
    assert (other.shift, other.by) == (0, "nothing")
    assert "cannot be matched" in other.notice


def test_another_boot_of_the_host_is_another_clock() -> None:
    _, other = alignments([process(0, 3, 3), process(1, 103, 3, clock=9000.0)])
    assert (other.shift, other.by) == (0, "number")


def test_none_and_one() -> None:
    assert alignments([]) == ()
    assert [each.by for each in alignments([process(0, 1, name="")])] == ["nothing"]


def test_what_holds_for_many_processes_is_said_of_a_few() -> None:
    laid = alignments([process(0, 3, 3), *(process(index, 103, 3) for index in range(1, 7))])
    *few, rest = alignment_notices(laid)
    assert [words.split(" is aligned")[0] for words in few] == ["process 1", "process 2", "process 3"]
    assert rest == "the same holds for 3 more processes"
    assert alignment_notices(alignments([process(0, 3, 3), process(1, 20, 20)])) == ()


def test_the_grid_of_a_job_has_the_same_step_in_a_column(tmp_path: Path) -> None:
    loops = [[*loop(8), passes(first, JITTERED, began_seconds=BEGAN + 1)] for first in (0, 100)]
    for index, inside in enumerate(loops):
        folder_process(tmp_path / "x.jaxprof.d", index, 2, *inside, header={"host": "box"})
    found = step_grid(read_job(tmp_path / "x.jaxprof.d", Session), 4, values_of="step")
    assert (found.first_steps[0], found.first_steps[-1] + found.steps[-1]) == (0, 400)
    assert any("its step is 100 ahead" in notice for notice in found.notices)
    assert found.seconds[0] == pytest.approx(found.seconds[1])
