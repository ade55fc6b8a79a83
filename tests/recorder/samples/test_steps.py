"""Iterations of a loop and the time of its lines, told by Python itself."""

import re
import sys
import threading
import time
from pathlib import Path

import pytest

from jaxprof import recorder
from jaxprof.hot_loop import hot_loop
from jaxprof.recorder.samples import monitored_loop, steps
from jaxprof.recorder.samples.flow import under_a_condition
from jaxprof.recorder.samples.loops import loops_at, loops_of
from jaxprof.recorder.samples.monitored_loop import EVENT_SECONDS_AT_MOST, JUMP, LEFT, LineTimes
from jaxprof.recorder.samples.states import COMPILED, HOST, Seen, Site
from jaxprof.recorder.samples.steps import StepCounter

MONITORED = sys.version_info >= (3, 12)
monitored = pytest.mark.skipif(not MONITORED, reason="needs sys.monitoring")


def _train(count, work=int):
    done = 0
    for _epoch in range(1):
        for step in range(count):
            if step % 2:
                continue
            done += 1
            work()
    return done


def _train_until(count, work=int):
    done = 0
    while done < count:
        done += 1
        work()
    return done


def _inner(code):
    return loops_of(code)[0]


def _seen(*loops, kind=COMPILED):
    return Seen(kind, None, tuple(Site("f.py", "f", loop.line, loop.last_line, 1, "", loop=loop) for loop in loops))


def test_loops_are_found_inner_ones_first():
    inner, outer = loops_of(_train.__code__)
    first = _train.__code__.co_firstlineno
    assert (inner.line, inner.last_line) == (first + 3, first + 7)
    assert outer.line == first + 2
    assert outer.begins < inner.begins <= inner.ends < outer.ends
    assert loops_at(_train.__code__, inner.begins) == (inner, outer)
    assert loops_at(_train.__code__, outer.ends) == (outer,)
    assert loops_at(_train.__code__, 0) == ()


def _collecting(rows):
    for row in rows:
        rows = [*rows, row]
        squares = [number * number for number in rows if number]
    return squares


def test_the_lines_of_other_loops():
    """Python puts the condition of a `while` behind the body, so its first instruction is not in its first line. The
    loop of a comprehension is none of the function's."""
    for function, lines in ((_train_until, (2, 4)), (_collecting, (1, 3))):
        (loop,), first = loops_of(function.__code__), function.__code__.co_firstlineno
        assert (loop.line - first, loop.last_line - first) == lines


def test_a_line_under_a_condition_is_not_of_every_pass():
    first = _train.__code__.co_firstlineno
    of = [under_a_condition(__file__, first + 3, first + line) for line in (4, 5, 6)]
    assert of == [False, True, False]


@pytest.mark.parametrize(
    ("seen", "hot"),
    [
        ([(("rows", "batches"), 8.0, False), (("batches",), 1.0, True)], "batches"),  # JAX has no part in the rows
        ([(("batches", "epochs"), 9.0, True), (("epochs",), 1.0, False)], "batches"),
        ([(("batches", "epochs"), 4.0, True), (("epochs",), 6.0, False)], "epochs"),
        ([(("inner", "outer"), 1.0, True)], "inner"),
    ],
)
def test_the_hot_loop_is_the_innermost_that_holds_most(seen, hot):
    assert hot_loop(seen) == hot


class TestLineTimes:
    def test_what_lies_between_iterations_is_shared_out_over_the_lines(self):
        times = LineTimes(_inner(_train.__code__))
        moments = [(9, 0.5), (JUMP, 1.0), (4, 1.0), (5, 1.1), (JUMP, 2.0), (4, 2.0), (5, 2.5), (JUMP, 3.0), (4, 3.0)]
        assert times.take(moments) == 7
        assert times.intervals == pytest.approx([1.0, 1.0])
        assert times.seconds == pytest.approx({4: 0.6, 5: 1.4})
        assert times.hits[4] == times.hits[5] == 2

    @pytest.mark.parametrize(("head", "work"), [(0.7e-6, 9.3e-6), (50e-6, 100e-6)])
    def test_recording_a_line_is_not_the_lines_time(self, head, work):
        """The head of a `for` takes next to nothing: what it seems to take is the recording of two lines. A line that
        takes longer than that loses next to nothing."""
        times = LineTimes(_inner(_train.__code__))
        at = 0.0
        moments = []
        for _ in range(3):
            moments += [(JUMP, at), (3, at), (4, at + head)]
            at += 10e-6 if head < 1e-6 else 150e-6
        times.take(moments)
        assert times.own_seconds(3) == pytest.approx(0.0 if head < 1e-6 else 2 * (head - 2e-6))
        assert times.own_seconds(4) == pytest.approx(2 * (work - min(head, 2e-6)), rel=1e-2)

    def test_what_lies_between_leaving_a_loop_and_coming_back_is_none_of_it(self):
        times = LineTimes(_inner(_train.__code__))
        again = [(4, 9.0), (5, 9.5), (JUMP, 10.0), (4, 10.0), (5, 10.25), (JUMP, 11.0)]
        moments = [(JUMP, 1.0), (4, 1.0), (5, 1.1), (JUMP, 2.0), (4, 2.0), (LEFT, 2.1), *again]
        assert times.take(moments) == len(moments) - 1
        assert times.intervals == pytest.approx([1.0, 1.0])
        assert times.seconds == pytest.approx({4: 0.35, 5: 1.65})
        assert times.hits == {4: 2, 5: 2}


def _counted(count, work=int, train=_train):
    """What is counted of so many iterations."""
    counter = StepCounter(threading.get_ident())
    counter.saw(_seen(_inner(train.__code__)), 10.0)
    counter.look()
    train(count, work)
    return counter, counter.collect(2.0)


@monitored
@pytest.mark.parametrize(("train", "every", "worked"), [(_train, 2, 7), (_train_until, 1, 4)], ids=["for", "while"])
def test_iterations_and_their_lines_are_counted(train, every, worked):
    counter, event = _counted(400, lambda: time.sleep(0.0002), train)
    counter.close()
    assert (event.where.function, event.found_by) == (train.__name__, "monitoring")
    assert event.count >= 2
    recorded = sum(line.hits for line in event.lines) * EVENT_SECONDS_AT_MOST
    assert event.seconds - recorded <= sum(line.seconds for line in event.lines) <= event.seconds
    (work,) = [line for line in event.lines if line.line == train.__code__.co_firstlineno + worked]
    assert work.seconds > 0.9 * work.hits * 0.0002
    assert abs(work.hits - event.count / every) <= 1
    assert work.line in counter.timed_lines(event)
    assert counter.timed_lines(None) == {}  # it may hang: iterations of before do not say where


def test_afterwards_nothing_is_left():
    counter, _ = _counted(50)
    counter.close()
    _train(5)
    assert counter.collect(2.0) is None
    assert sys.gettrace() is None or "jaxprof" not in repr(sys.gettrace())
    if sys.version_info >= (3, 12):
        assert all(sys.monitoring.get_tool(number) != "jaxprof" for number in (3, 4))


@monitored
def test_the_loop_of_a_loader_is_not_counted():
    counter = StepCounter(threading.get_ident())
    inner, outer = loops_of(_train.__code__)
    counter.saw(_seen(inner, outer, kind=HOST), 9.0)
    counter.saw(_seen(outer), 1.0)
    counter.look()
    assert counter.loop == outer
    counter.close()


def test_the_recorder_has_no_trace_function_and_no_pending_call():
    """A pending call that enters Python while one is set can repeat an instruction for ever, on Python 3.11."""
    words = re.compile(r"settrace|setprofile|AddPendingCall|f_trace\b")
    sources = list(Path(recorder.__file__).parent.rglob("*.py"))
    assert [path.name for path in sources if words.search(path.read_text("utf-8"))] == []
    assert len(sources) > 20


@monitored
class TestMonitoring:
    def test_every_iteration_is_counted(self):
        counter, event = _counted(51)
        counter.close()
        assert event.count == 50
        assert len(event.intervals_seconds) == 50
        assert event.seconds == pytest.approx(sum(event.intervals_seconds))

    def test_a_fast_loop_is_watched_only_for_a_while(self):
        counter, event = _counted(3 * monitored_loop.MOST_EVENTS)
        counter.look()
        _train(10)
        again = counter.collect(3.0)
        counter.close()
        assert event.count < monitored_loop.MOST_EVENTS
        assert len(event.intervals_seconds) <= steps.MOST_INTERVALS
        assert again.count == 9

    def test_an_iteration_that_is_longer_than_a_look_is_counted(self):
        counter = StepCounter(threading.get_ident())
        counter.saw(_seen(_inner(_train.__code__)), 10.0)
        counter.look()
        _train(6, counter.look)
        event = counter.collect(2.0)
        counter.close()
        assert event.count == 5

    def test_tools_of_others_are_left_alone(self):
        for number in (3, 4):
            sys.monitoring.use_tool_id(number, "other")
        try:
            counter, event = _counted(5)
            assert event is None
            assert counter.unavailable == "because other tools use all monitoring slots of this Python"
            counter.close()
        finally:
            for number in (3, 4):
                assert sys.monitoring.get_tool(number) == "other"
                sys.monitoring.free_tool_id(number)


@monitored
def test_lines_of_a_function_that_the_loop_calls_are_timed_beside_it(monkeypatch):

    monkeypatch.setattr(monitored_loop, "compiled_by", lambda value: "user" if value is abs else "")
    loop = _inner(_train.__code__)
    clock = monitored_loop.MonitoredLines(threading.get_ident())
    begun = clock.begin(loop, [_books.__code__])
    _train(20, _books)
    clock.close()
    times = monitored_loop.CallTimes()
    times.take(begun[1][_books.__code__])
    first = _books.__code__.co_firstlineno
    assert (times.calls, set(times.seconds)) == (10, {first + 1, first + 2})
    assert [code for code, _ in clock.compiled] == [_books.__code__], "told once"


def _books():
    sum(range(10))
    abs(-1)
