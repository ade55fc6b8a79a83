"""The passes of a loop as one series: what their numbers count, and which pass was under way at a moment."""

from __future__ import annotations

import pytest

import program_events
from jaxprof.analysis.programs.passes import pass_series
from program_events import BEGAN, at, passes, steps
from program_events import result as result_of


def test_the_passes_of_the_hot_loop_are_counted_by_their_numbers():
    found = result_of(steps(2400, 6.2e-3), passes(7, [0.5] * 4), passes(20, [0.5] * 2, began_seconds=BEGAN + 9)).passes
    assert (found.numbered_by, found.first, found.last) == ("step", 7, 21)
    assert (found.count, found.timed, found.seconds) == (15, 6, 3.0)


def test_entries_have_their_moments():
    found = pass_series([passes(7, [0.5, 1.0], began_seconds=100.0, counts=[1, 2])])
    assert [(entry.number, entry.count, entry.began_seconds, entry.seconds) for entry in found.entries()] == [
        (7, 1, 100.0, 0.5),
        (8, 2, 100.5, 1.0),
    ]


LATER = {"began_seconds": BEGAN + 30}


@pytest.mark.parametrize(
    ("second", "last", "name", "found_by"),
    [
        (passes(3, [0.5], **LATER), 3, "step", "monitoring"),
        (passes(0, [0.5] * 3, **LATER), 5, "", "monitoring"),  # numbers that begin again are no longer the program's
        (passes(3, [0.5], name="", **LATER), 3, "", "monitoring"),  # a part without a name takes it from all
        (passes(3, [0.5], found_by="number", **LATER), 3, "step", "number"),  # times of samples are said to be so
    ],
)
def test_parts_of_a_series(second, last, name, found_by):
    found = pass_series([passes(0, [0.5] * 3), second])
    assert (found.first, found.last, found.numbered_by, found.found_by) == (0, last, name, found_by)


def test_of_several_loops_it_is_the_given_one_or_the_longest():
    taken = [passes(0, [0.5] * 3, number=10), passes(0, [0.5] * 9, number=20)]
    for where, line in ((at(10), 10), (at(20), 20), (at(99), 20), (None, 20)):
        found = pass_series(taken, where)
        assert found.where.line == line
    assert pass_series([], at(10)) is None


def test_new_passes_are_in_the_next_result():
    session = program_events.session(steps(2400, 6.2e-3), passes(0, [0.5]))
    first = program_events.program_result(session, program_events.RUN).passes
    session.apply(passes(1, [0.5], began_seconds=BEGAN + 30))
    second = program_events.program_result(session, program_events.RUN).passes
    assert (first and first.count, second and second.count) == (1, 2)
