"""Passes of a loop that runs, as the recorder's thread follows it beside the program."""

import sys
import threading
import time
from contextlib import contextmanager
from types import CodeType

import pytest

from jaxprof.recorder.samples.loops import loops_of
from jaxprof.recorder.samples.states import COMPILED, Seen, Site
from jaxprof.recorder.samples.steps import StepCounter

pytestmark = pytest.mark.skipif(sys.version_info < (3, 12), reason="needs sys.monitoring")
Times = dict[int, tuple[float, float]]
"""When the body of each pass began and ended, by its number."""


def _counter(loop):
    """A counter that has seen the work of this thread in the loop."""
    counter = StepCounter(threading.get_ident())
    counter.saw(Seen(COMPILED, None, (Site("f.py", "f", loop.line, loop.last_line, 1, "", loop=loop),)), 10.0)
    return counter


@contextmanager
def _followed(loop):
    """The loop's passes are followed by another thread, as by the sampler's: the list has all of them in the end."""
    main, over, counter = threading.get_ident(), threading.Event(), _counter(loop)
    events = []

    def follow():
        turn = 0
        while not over.wait(0.002):
            counter.passes.sample(sys._current_frames().get(main))
            turn += 1
            if turn % 5 == 0:
                counter.look()
            if turn % 50 == 0:
                events.extend(counter.passes.collect(time.monotonic()))

    thread = threading.Thread(target=follow)
    thread.start()
    try:
        yield events
    finally:
        over.set()
        thread.join()
        events.extend(counter.passes.collect(time.monotonic(), final=True))
        counter.close()


def _timed(count, times):
    for step in range(100, 100 + count):
        began = time.monotonic()
        time.sleep(0.002)
        times[step] = began, time.monotonic()


def _called(count, times):
    for call in range(4):
        for step in range(count):
            began = time.monotonic()
            time.sleep(0.001)
            times[call * count + step] = began, time.monotonic()


def _counted_beside(count, times):
    done = 0
    while True:
        began = time.monotonic()
        time.sleep(0.001)
        for other in range(3):
            abs(other)
        done += 1
        times[done] = began, time.monotonic()
        if done >= count:
            break


def _without(count, times):
    left = list(range(count))
    while left:
        began = time.monotonic()
        time.sleep(0.001)
        number = len(times)
        times[number] = began, time.monotonic()
        left = left[1:]
        number = -1


def _generated(count, times):
    def passes():
        for step in range(count):
            began = time.monotonic()
            time.sleep(0.002)
            yield step
            times[step] = began, time.monotonic()

    sum(passes())


def _agree(events, times, shift=0):
    """Each entry begins and ends between two bodies: after the end of the pass before, before the end of the next."""
    for event in events:
        at, number = event.began_seconds, event.first + shift
        for index, seconds in enumerate([0.0, *event.seconds]):
            at += seconds
            if index:
                number += event.counts[index - 1] if event.counts else 1
            slack = 2e-6 * (index + 1)
            assert times.get(number - 1, (0.0, 0.0))[1] - slack <= at
            latest = times.get(number, (1e12, 1e12))[0]
            assert at <= latest + slack


@pytest.mark.parametrize(
    ("train", "count", "name", "whole"),
    [
        (_timed, 150, "step", True),
        (_counted_beside, 250, "done", False),
        (_called, 80, "step", True),
        (_without, 200, "", False),
        (_generated, 80, "step", False),
    ],
)
def test_passes_have_the_numbers_of_the_program(train, count, name, whole):
    times = {}
    codes = [train.__code__, *(each for each in train.__code__.co_consts if isinstance(each, CodeType))]
    loop = next(loop for code in codes for loop in loops_of(code) if loop.last_line - loop.line > 2)
    with _followed(loop) as events:
        train(count, times)
    names = [event.numbered_by for event in events]
    # a counter that begins again is counted on, and has no name from then on
    assert names == ([name, *[""] * (len(names) - 1)] if train is _called else [name] * len(names))
    assert {event.found_by for event in events} == {"monitoring"}
    last = events[-1].first + events[-1].count - 1
    unseen = max(times) - last - 1 if train is _without else 0  # it has no number of its own
    _agree(events, times, unseen)
    if train is _without:
        assert events[0].first == 1, "the pass in which it began to look has no beginning"
    if whole:
        assert last == max(times)


def _short(count):
    for step in range(count):
        abs(step)


def test_short_passes_are_counted_by_their_number():
    """One event a pass would cost more than half a percent of such a loop."""
    with _followed(loops_of(_short.__code__)[0]) as events:
        _short(20_000_000)  # in one call: a counter that begins again has no name
    numbered = [event for event in events if event.found_by == "number"]
    assert numbered[0].numbered_by == "step"
    assert max(max(event.counts) for event in numbered) > 5000


def test_another_thread_in_the_same_loop_adds_nothing():
    times = {}
    with _followed(loops_of(_timed.__code__)[0]) as events:
        beside = threading.Thread(target=_timed, args=(120, {}))
        beside.start()
        _timed(100, times)
        beside.join()
    assert {event.numbered_by for event in events} == {"step"}
    _agree(events, times)


class TestMonitoring:
    def test_a_spell_that_ends_leaves_the_passes_on(self):
        times = {}
        counter = _counter(loops_of(_timed.__code__)[0])
        counter.look()
        _timed(20, times)
        counter._clock.end()
        _timed(20, times)
        events = counter.passes.collect(time.monotonic(), final=True)
        counter.close()
        assert sum(event.count for event in events) >= 38
        assert all(sys.monitoring.get_tool(number) != "jaxprof" for number in range(6))

    def test_an_exception_in_the_loop_is_the_programs(self):
        def failing():
            for step in range(50):
                time.sleep(0.0005)
                if step == 40:
                    raise ValueError(step)

        counter = _counter(loops_of(failing.__code__)[0])
        counter.look()
        for _ in range(2):
            with pytest.raises(ValueError, match="40"):
                failing()
        events = counter.passes.collect(time.monotonic(), final=True)
        counter.close()
        assert [(event.numbered_by, event.first, event.count) for event in events] == [("step", 1, 39), ("", 41, 39)]
