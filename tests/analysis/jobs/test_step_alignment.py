"""Passes of processes beside each other: by number, by the clock of a host, by the pattern of their ends."""

from __future__ import annotations

import random

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


AWAY = {"host": "other", "clock": 1012.0}
ALIKE = {"lengths": [0.02] * 200}


@pytest.mark.parametrize(
    ("first", "other", "shift", "by", "notice"),
    [
        ((3, 3, {}), (20, 20, {}), 0, "number", ""),
        ((3, 3, {}), (103, 3, AWAY), 0, "number", ""),  # on other hosts numbers alone decide
        # a counter that is off on one host is said, and the clock is taken
        ((3, 3, {}), (103, 3, {}), -100, "clock", "its step is 100 ahead of that of process 0"),
        ((3, 3, {}), (103, 3, {"clock": 9000.0}), 0, "number", ""),  # another boot is another clock
        ((0, 0, {}), (0, 0, {"lengths": [0.03] * 300}), 0, "number", ""),  # at its own pace
        # without a counter that both have, the clock of the host decides
        ((1, 3, {"name": ""}), (1, 20, {"name": ""}), 17, "clock", "no common counter"),
        ((1, 3, {}), (1, 20, {"name": "batch"}), 17, "clock", "no common counter"),
        # on other hosts the pattern of the ends
        ((1, 3, {"name": ""}), (1, 20, {"name": "", **AWAY}), 17, "pattern", "by the pattern of its step ends"),
        ((1, 3, {"name": "", **ALIKE}), (1, 20, {"name": "", **AWAY, **ALIKE}), 0, "nothing", "cannot be matched"),
    ],
)
def test_where_the_steps_of_another_process_are(first, other, shift, by, notice):
    itself, found = alignments([process(at, *each[:2], **each[2]) for at, each in enumerate((first, other))])
    assert itself.shift == 0
    assert (found.shift, found.by, bool(found.notice)) == (shift, by, bool(notice))
    assert notice in found.notice


def test_none_and_one():
    assert alignments([]) == ()
    assert [each.by for each in alignments([process(0, 1, name="")])] == ["nothing"]


def test_what_holds_for_many_processes_is_said_of_a_few():
    laid = alignments([process(0, 3, 3), *(process(index, 103, 3) for index in range(1, 7))])
    *few, rest = alignment_notices(laid)
    assert [words.split(" is aligned")[0] for words in few] == ["process 1", "process 2", "process 3"]
    assert rest == "the same holds for 3 more processes"
    assert alignment_notices(alignments([process(0, 3, 3), process(1, 20, 20)])) == ()


def test_the_grid_of_a_job_has_the_same_step_in_a_column(tmp_path):
    loops = [[*loop(8), passes(first, JITTERED, began_seconds=BEGAN + 1)] for first in (0, 100)]
    for index, inside in enumerate(loops):
        folder_process(tmp_path / "x.jaxprof.d", index, 2, *inside, header={"host": "box"})
    found = step_grid(read_job(tmp_path / "x.jaxprof.d", Session), 4, values_of="step")
    assert (found.first_steps[0], found.first_steps[-1] + found.steps[-1]) == (0, 400)
    assert any("its step is 100 ahead" in notice for notice in found.notices)
    assert found.seconds[0] == pytest.approx(found.seconds[1])
