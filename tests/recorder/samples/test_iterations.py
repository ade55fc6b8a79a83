"""Iterations of a loop, one after another: their times, their numbers, and what is not claimed of them. Local variables
that count them: which they may be, and their values in a running frame."""

import gc
import signal
import sys
import weakref
from types import SimpleNamespace

import pytest

from jaxprof.recorder.samples import iterations
from jaxprof.recorder.samples.iterations import (
    LEFT,
    CounterSearch,
    LoopCounter,
    MomentLog,
    NumberLog,
    counters_of,
    read_counter,
)
from jaxprof.recorder.samples.loops import loops_of


def _train(count):
    total = 0
    for step in range(count):
        total += step


LOOP = loops_of(_train.__code__)[0]
STEP, TOTAL = LoopCounter("step", 1, target=True), LoopCounter("total", 2)


def _ends(*seconds, began=100.0):
    """The moments at which iterations of these lengths end; of the first one, the begin was not seen."""
    moments = [began]
    for each in seconds:
        moments.append(moments[-1] + each)
    return moments


def _numbered(moments, first):
    return {at: [first + index] for index, at in enumerate(moments)}


def _told(events):
    return [(event.numbered_by, event.first, event.count) for event in events]


def test_a_local_that_is_not_bound_costs_no_look_at_the_handlers(monkeypatch):
    """That takes 0.1 ms, and a function that is called often has many such locals where its loop begins."""
    monkeypatch.setattr(signal, "getsignal", None)
    assert read_counter(SimpleNamespace(), STEP) is None


FIVE = _ends(*[0.5] * 5)
AGAIN = _ends(*[0.5] * 2, began=200.0)
AGAIN_BY_NUMBER = [("step", 5, 3), ("", 9, 2), ("", 11, 1)]


class TestMoments:
    def test_each_iteration_has_its_time_and_number(self):
        log = MomentLog(LOOP, [STEP])
        moments = _ends(0.5, 0.25, 0.5, 1.0, 0.125)
        log.take(moments, _numbered(moments[:4], 310))
        (event,) = log.events(200.0, 1.0)
        assert (event.where, event.found_by) == (LOOP.location, "monitoring")
        assert (event.numbered_by, event.first, event.began_seconds) == ("step", 311, 100.0)
        assert (event.seconds, event.counts) == ([0.5, 0.25, 0.5, 1.0, 0.125], [])

    @pytest.mark.parametrize(
        ("moments", "read", "told"),
        [
            ([*FIVE, LEFT, *AGAIN], {AGAIN[0]: [0]}, [("step", 11, 5), ("", 17, 2)]),
            ([*FIVE, LEFT, *AGAIN], {AGAIN[0]: [90]}, [("step", 11, 5), ("step", 91, 2)]),
            ([*FIVE, 103.0], {103.0: [77]}, [("step", 11, 5), ("", 16, 1)]),
        ],
        ids=["it begins again, and is counted on", "iterations were not seen", "it is no counter after all"],
    )
    def test_numbers_go_on_where_the_counter_does(self, moments, read, told):
        log = MomentLog(LOOP, [STEP])
        log.take(moments, _numbered(FIVE[:4], 10) | read)
        assert _told(log.events(300.0, 1.0, final=True)) == told

    def test_what_comes_next_follows_without_a_gap(self):
        log = MomentLog(LOOP, [STEP])
        log.take(FIVE, _numbered(FIVE[:4], 0))
        (one,) = log.events(200.0, 1.0)
        log.take([103.0, 103.5], {})
        (two,) = log.events(200.0, 1.0)
        assert _told([one, two]) == [("step", 1, 5), ("step", 6, 2)]
        assert two.began_seconds == one.ended_seconds

    def test_numbers_are_awaited_before_anything_is_told(self):
        log = MomentLog(LOOP, [STEP])
        log.take(AGAIN, _numbered(AGAIN, 4))
        assert log.events(300.0, 1.0) == []
        assert _told(log.events(300.0, 1.0, final=True)) == [("", 1, 2)]

    def test_iterations_without_a_counter_are_numbered(self):
        log = MomentLog(LOOP, [], seen_before=40)
        log.take([*_ends(0.5, 0.5), LEFT, *_ends(0.5, began=200.0), LEFT, LEFT], {})
        assert log.seen == 45
        one, two = log.events(300.0, 1.0)
        assert _told([one, two]) == [("", 41, 2), ("", 44, 1)]
        assert (two.began_seconds, two.seconds) == (200.0, [0.5])

    def test_short_iterations_are_put_together_and_none_is_lost(self):
        log = MomentLog(LOOP, [])
        log.take(_ends(*[0.001] * 1003), {})
        (event,) = log.events(300.0, 1.0)
        log.take([LEFT], {})
        (rest,) = log.events(300.0, 1.0)
        assert event.count + rest.count == 1003
        assert len(event.seconds) <= 201
        assert max(event.counts) <= 6
        assert rest.first == event.first + event.count

    def test_entries_grow_with_the_age_of_the_program(self):
        log, day = MomentLog(LOOP, []), 86_400.0
        log.take(_ends(0.02, 0.02), {})
        assert [event.counts for event in log.events(day, day)] == [[]]
        log.take(_ends(*[0.02] * 1000, began=100.04)[1:], {})
        (event,) = log.events(day, day)
        assert 40 <= min(event.counts) <= max(event.counts) <= 44
        slow = MomentLog(LOOP, [])
        slow.events(day, day)
        slow.take(_ends(2.0, 2.0, 2.0), {})
        assert [event.seconds for event in slow.events(day, day)] == [[2.0, 2.0, 2.0]]

    def test_an_event_is_not_longer_than_it_may_be(self, monkeypatch):
        monkeypatch.setattr(iterations, "_ENTRIES_AT_MOST", 4)
        log = MomentLog(LOOP, [])
        log.take(_ends(*[0.5] * 10), {})
        events = log.events(300.0, 1.0)
        assert _told(events) == [("", 1, 4), ("", 5, 4), ("", 9, 2)]
        assert [event.began_seconds for event in events] == [100.0, 102.0, 104.0]


def test_counters_read_at_moments_that_were_dropped_are_not_kept():
    log = MomentLog(LOOP, [TOTAL, STEP])
    for begin in range(100, 200):
        moments = _ends(0.4, began=float(begin))
        log.take(moments, {begin + 0.1: [1, 1], begin + 0.9: [1, 1]})
    assert len(log._read) == 1


def test_iterations_taken_at_once_are_those_taken_one_by_one():
    """With counters read at some of them, a pause, and entries that end within what is taken."""
    lengths = [0.0004 * (1 + index % 7) for index in range(400)]
    moments = [*_ends(*lengths[:250]), iterations.LEFT, *_ends(*lengths[250:], began=200.0)]
    read = {moments[at]: [at, at] for at in (0, 1, 2, 3, 100, 101, 399)}
    whole, single = MomentLog(LOOP, [TOTAL, STEP]), MomentLog(LOOP, [TOTAL, STEP])
    whole.take(moments, read)
    for moment in moments:
        single.take([moment], {moment: read[moment]} if moment in read else {})
    expected = single.events(300.0, 1.0, final=True)
    assert len(expected) > 1
    for event, other in zip(whole.events(300.0, 1.0, final=True), expected, strict=True):
        assert event.counts == other.counts
        assert (event.first, event.numbered_by) == (other.first, other.numbered_by)
        assert event.seconds == pytest.approx(other.seconds, abs=1e-6)


def test_events_of_a_loop_left_often_are_bounded():
    """As the inner one of two: its counter is read each time it begins."""
    log = MomentLog(LOOP, [STEP])
    for run in range(3000):
        ends = _ends(0.0002, 0.0002, began=100.0 + run * 0.001)
        log.take([*ends, LEFT], {ends[0]: [0]})
    assert len(log.events(300.0, 1.0, final=True)) <= 100
    assert log.seen == 3 * 3000


class TestSearch:
    def test_three_rises_by_one_in_a_row(self):
        search = CounterSearch([TOTAL, STEP])
        for number, value in enumerate((7, 8, 20, 21, 22)):
            search.saw(number, [value * 2, value])
            assert search.found is None
        search.saw(5, [46, 23])
        assert search.found == STEP

    def test_the_first_of_several_in_their_order(self):
        search = CounterSearch([TOTAL, STEP])
        places = [search.saw(number, [number, number + 5]) for number in range(5)]
        assert (search.found, places) == (TOTAL, [None, None, None, 0, None])

    @pytest.mark.parametrize(("each", "step"), [(1, 0), (1, 2), (1, -1), (1, 32), (2, 1)])
    def test_counter_has_to_grow_by_one(self, each, step):
        search = CounterSearch([STEP])
        for number in range(20):
            search.saw(each * number, [step * number])
        assert search.found is None
        assert search.over is True


@pytest.mark.parametrize(
    ("seen", "told"),
    [
        ([(1.0, 5), (1.5, 5), (2.0, 8), (3.0, 9)], [("step", 5, 4)]),
        ([(1.0, 5), (2.0, 8), (3.0, None), (4.0, 8), (5.0, 9)], [("step", 5, 3), ("step", 8, 1)]),
        ([(1.0, 5), (2.0, 8), (3.0, 0), (4.0, 2), (5.0, None), (6.0, 2), (7.0, 3)], AGAIN_BY_NUMBER),
        ([(1.0, 5), (2.0, 8), (2.5, None), (3.0, 0), (4.0, 2), (5.0, None), (6.0, 2), (7.0, 3)], AGAIN_BY_NUMBER),
    ],
    ids=["one after another", "none outside the loop", "begins again, counted on", "begins again later"],
)
def test_counts_are_those_of_the_counter(seen, told):
    log = NumberLog(LOOP, STEP)
    for at, number in seen:
        log.saw(at, number)
    events = log.events(9.0, 1.0, final=True)
    assert _told(events) == told
    first = events[0]
    assert first.found_by == "number"
    assert first.began_seconds == 1.0
    assert first.counts[0] == 3
    assert first.seconds[0] == 1.0


def test_brief_loop_is_not_counted_by_its_counter():
    log = NumberLog(LOOP, STEP)
    for look in range(40):
        log.saw(1.0 + look / 100, look * 27 % 64)
    assert log.events(9.0, 1.0, final=True) == []


of_locals = pytest.mark.skipif(sys.version_info < (3, 12), reason="3.11 lets nobody read a local of another frame")


def _plain(count):
    for step in range(count):
        abs(step)


def _enumerated(rows):
    seen = 0
    for number, (left, right) in enumerate(rows):
        seen = left + right + number
    return seen


def _nested(epochs, rows):
    done = 0
    for _epoch in range(epochs):
        for number, row in enumerate(rows):
            abs(number - row)
            done += 1
    return done


def _while(count):
    done = 0
    while True:
        for inner in range(2):
            abs(inner)
        done += 1
        if done > count:
            break
    return done


def _loop(function, line):
    first = function.__code__.co_firstlineno
    return next(loop for loop in loops_of(function.__code__) if loop.line == first + line)


@pytest.mark.parametrize(
    ("function", "line", "names"),
    [
        (_plain, 1, ["step"]),
        (_enumerated, 2, ["number", "left", "right", "seen"]),
        (_nested, 3, ["done", "number", "row"]),
        (_nested, 2, ["_epoch"]),
        (_while, 2, ["done"]),
    ],
)
def test_what_a_loop_stores_may_count_it(function, line, names):
    """Within a loop, targets of `for` come last: they begin again. What a loop inside it stores is none of it."""
    assert [counter.name for counter in counters_of(_loop(function, line))] == names


def _value(frame, name):
    return read_counter(frame, LoopCounter(name, 0))


@of_locals
def test_a_local_an_argument_and_a_cell_are_read():
    _read_all(70_001)


def _read_all(given):
    local, shared, text, flag, real = given + 1, given + 2, "7", True, 7.0
    later: int

    def inner():
        assert _value(sys._getframe(), "shared") == 70_003
        return shared

    frame = sys._getframe()
    assert inner() == _value(frame, "shared")
    assert [_value(frame, name) for name in ("given", "local")] == [given, local]
    assert [_value(frame, name) for name in ("text", "flag", "real", "later", "no_such_name")] == [None] * 5
    assert text == "7"
    assert flag is True
    assert real == 7.0
    later = 3
    assert _value(frame, "later") == later


def test_a_module_is_read_from_its_namespace():
    names = {"read": read_counter, "LoopCounter": LoopCounter, "sys": sys, "found": []}
    exec("for step in range(3):\n    found.append(read(sys._getframe(), LoopCounter('step', 0)))", names)
    assert names["found"] == [0, 1, 2]


class _Array:
    """Stands for an array of the program."""


@of_locals
def test_no_reference_stays_behind():
    array, step = _Array(), 3
    known = weakref.ref(array)
    assert read_counter(sys._getframe(), LoopCounter("array", 0)) is None
    assert read_counter(sys._getframe(), LoopCounter("step", 0)) == step
    del array
    gc.collect()
    assert known() is None


def test_the_class_of_a_value_is_not_asked_anything():
    class Loud(int):
        def __index__(self):
            raise AssertionError

        __eq__ = __lt__ = __gt__ = __hash__ = None

    loud = Loud(3)
    assert _value(sys._getframe(), "loud") is None
    assert isinstance(loud, int)
