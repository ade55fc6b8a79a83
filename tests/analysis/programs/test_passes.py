"""The passes of a loop as one series: what their numbers count, and which pass was under way at a moment."""

from golden import held_cases
from jaxprof.analysis.programs.passes import pass_series
from program_events import BEGAN, at, passes, steps
from program_events import result as result_of


def test_the_passes_of_the_hot_loop_are_counted_by_their_numbers():
    found = result_of(steps(2400, 6.2e-3), passes(7, [0.5] * 4), passes(20, [0.5] * 2, began_seconds=BEGAN + 9)).passes
    assert (found.numbered_by, found.first, found.last) == ("step", 7, 21)
    assert (found.count, found.timed, found.seconds) == (15, 6, 3.0)


LATER = {"began_seconds": BEGAN + 30}
SECOND = {
    "numbers that go on": passes(3, [0.5], **LATER),
    "numbers that begin again are no longer the program's": passes(0, [0.5] * 3, **LATER),
    "a part without a name takes it from all": passes(3, [0.5], name="", **LATER),
    "times of samples are said to be so": passes(3, [0.5], found_by="number", **LATER),
}


def test_parts_of_a_series():
    series = {case: pass_series([passes(0, [0.5] * 3), second]) for case, second in SECOND.items()}
    told = {
        case: f"  {each.first} to {each.last} by {each.numbered_by or 'none'}, {each.found_by}\n"
        for case, each in series.items()
    }
    held_cases("series_of_passes.txt", told)


def test_of_several_loops_it_is_the_given_one_or_the_longest():
    taken = [passes(0, [0.5] * 3, number=10), passes(0, [0.5] * 9, number=20)]
    for where, line in ((at(10), 10), (at(20), 20), (at(99), 20), (None, 20)):
        found = pass_series(taken, where)
        assert found.where.line == line
    assert pass_series([], at(10)) is None
