"""Iterations of a loop, counted by Python itself."""

from __future__ import annotations

import sys
import threading
from types import CodeType

import pytest

from jaxprof.events import StepsCounted
from jaxprof.program.samples import steps
from jaxprof.program.samples.loops import Loop, loop_at, loops_of
from jaxprof.program.samples.steps import StepCounter


def _train(count: int) -> int:
    done = 0
    for _epoch in range(1):
        for step in range(count):
            if step % 2:
                continue
            done += 1
    return done


def _inner(code: CodeType) -> Loop:
    return loops_of(code)[0]


def test_loops_are_found_inner_ones_first() -> None:
    inner, outer = loops_of(_train.__code__)
    first = _train.__code__.co_firstlineno
    assert inner.line == first + 3
    assert outer.line == first + 2
    assert outer.begins < inner.begins <= inner.ends < outer.ends
    assert loop_at(_train.__code__, inner.begins) == inner
    assert loop_at(_train.__code__, outer.ends) == outer
    assert loop_at(_train.__code__, 0) is None


def test_no_loops() -> None:
    assert loops_of(test_no_loops.__code__) == ()


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="Python counts from 3.12 on")
def test_an_older_python_counts_nothing() -> None:
    counter = StepCounter(threading.get_ident())
    counter.saw(_inner(_train.__code__), 10.0)
    assert counter.collect(1.0) is None
    assert counter.collect(2.0) is None
    counter.close()


@pytest.mark.skipif(sys.version_info < (3, 12), reason="needs sys.monitoring")
class TestCounting:
    def _counter(self) -> StepCounter:
        counter = StepCounter(threading.get_ident())
        counter.saw(_inner(_train.__code__), 10.0)
        assert counter.collect(1.0) is None
        return counter

    def test_every_iteration_is_counted(self) -> None:
        counter = self._counter()
        _train(51)
        event = counter.collect(2.0)
        counter.close()
        assert isinstance(event, StepsCounted)
        assert event.count == 50
        assert event.where["function"] == "_train"
        assert len(event.intervals_seconds) == 50
        assert event.seconds == pytest.approx(sum(event.intervals_seconds))

    def test_a_fast_loop_is_watched_only_for_a_while(self) -> None:
        counter = self._counter()
        _train(3 * steps.MOST_JUMPS)
        event = counter.collect(2.0)
        _train(10)
        again = counter.collect(3.0)
        counter.close()
        assert event is not None
        assert event.count == steps.MOST_JUMPS - 1
        assert len(event.intervals_seconds) <= steps.MOST_INTERVALS
        assert again is not None
        assert again.count == 9

    def test_afterwards_nothing_is_left(self) -> None:
        counter = self._counter()
        counter.close()
        _train(5)
        assert counter.collect(2.0) is None
        assert all(sys.monitoring.get_tool(number) != "jaxprof" for number in (3, 4))

    def test_tools_of_others_are_left_alone(self) -> None:
        for number in (3, 4):
            sys.monitoring.use_tool_id(number, "other")
        try:
            counter = self._counter()
            _train(5)
            assert counter.collect(2.0) is None
            counter.close()
        finally:
            for number in (3, 4):
                assert sys.monitoring.get_tool(number) == "other"
                sys.monitoring.free_tool_id(number)
