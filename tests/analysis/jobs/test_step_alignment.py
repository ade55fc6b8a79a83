"""Passes of processes beside each other: by number, by the clock of a host, by the pattern of their ends."""

import random

import pytest

from golden import figures_text, held_cases
from jaxprof.analysis.jobs.step_grid import ProcessPasses, alignment_notices, alignments
from jaxprof.analysis.programs.result import pass_series
from job_folders import loop, recorded, step_grid
from program_events import BEGAN, passes

RANDOM = random.Random(11)
JITTERED = [0.02 * (1 + 0.3 * RANDOM.random()) for _ in range(400)]


def process(
    index, first, skipped = 0, *, name = "step", host = "box", clock = 1000.0,
    lengths = JITTERED,
):  # fmt: skip
    """It was seen from the pass `skipped` of the job on, and numbers it `first`."""
    began = 50.0 + sum(lengths[:skipped])
    series = pass_series([passes(first, lengths[skipped:], name=name, began_seconds=began)])
    assert series is not None
    return ProcessPasses(index, host, clock, series)


AWAY = {"host": "other", "clock": 1012.0}
ALIKE = {"lengths": [0.02] * 200}


UNNAMED = {"name": ""}
TWO = {
    "by number": (process(0, 3, 3), process(1, 20, 20)),
    "on other hosts numbers alone decide": (process(0, 3, 3), process(1, 103, 3, **AWAY)),
    "a counter that is off on one host is said, and the clock is taken": (process(0, 3, 3), process(1, 103, 3)),
    "another boot is another clock": (process(0, 3, 3), process(1, 103, 3, clock=9000.0)),
    "at its own pace": (process(0, 0), process(1, 0, lengths=[0.03] * 300)),
    "without a counter the clock of the host decides": (process(0, 1, 3, **UNNAMED), process(1, 1, 20, **UNNAMED)),
    "without a counter that both have": (process(0, 1, 3), process(1, 1, 20, name="batch")),
    "on other hosts the pattern of the ends": (process(0, 1, 3, **UNNAMED), process(1, 1, 20, **UNNAMED, **AWAY)),
    "without a pattern": (
        process(0, 1, 3, **UNNAMED, **ALIKE),
        process(1, 1, 20, **UNNAMED, **AWAY, **ALIKE),
    ),
}


def test_where_the_steps_of_another_process_are():
    held_cases("alignments.txt", {case: figures_text(*alignments(two)) for case, two in TWO.items()})


def test_what_holds_for_many_processes_is_said_of_a_few():
    laid = alignments([process(0, 3, 3), *(process(index, 103, 3) for index in range(1, 7))])
    *few, rest = alignment_notices(laid)
    assert [words.split(" is aligned")[0] for words in few] == ["process 1", "process 2", "process 3"]
    assert rest == "the same holds for 3 more processes"
    assert alignment_notices(alignments([process(0, 3, 3), process(1, 20, 20)])) == ()


def test_the_grid_of_a_job_has_the_same_step_in_a_column():
    loops = [[*loop(8), passes(first, JITTERED, began_seconds=BEGAN + 1)] for first in (0, 100)]
    of_one_host = {index: {"header": {"host": "box"}} for index in range(2)}
    found = step_grid(recorded(*loops, options=of_one_host), 4, values_of="step")
    assert (found.first_steps[0], found.first_steps[-1] + found.steps[-1]) == (0, 400)
    assert any("its step is 100 ahead" in notice for notice in found.notices)
    assert found.seconds[0] == pytest.approx(found.seconds[1])
