"""Local variables that count the passes of a loop: which they may be, and their values in a running frame."""

from __future__ import annotations

import gc
import sys
import weakref
from collections.abc import Callable

import pytest

from jaxprof.recorder.samples.loops import Loop, loops_of
from jaxprof.recorder.samples.passes import LoopCounter, counters_of, read_counter

of_locals = pytest.mark.skipif(sys.version_info < (3, 12), reason="3.11 lets nobody read a local of another frame")


def _plain(count: int) -> None:
    for step in range(count):
        abs(step)


def _enumerated(rows: list[tuple[int, int]]) -> int:
    seen = 0
    for number, (left, right) in enumerate(rows):
        seen = left + right + number
    return seen


def _nested(epochs: int, rows: list[int]) -> int:
    done = 0
    for _epoch in range(epochs):
        for number, row in enumerate(rows):
            abs(number - row)
            done += 1
    return done


def _while(count: int) -> int:
    done = 0
    while True:
        for inner in range(2):
            abs(inner)
        done += 1
        if done > count:
            break
    return done


def _loop(function: Callable[..., object], line: int) -> Loop:
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


def _value(frame: object, name: str) -> int | None:
    return read_counter(frame, LoopCounter(name, 0))  # type: ignore[arg-type]


@of_locals
def test_a_local_an_argument_and_a_cell_are_read():
    _read_all(70_001)


def _read_all(given: int) -> None:
    local, shared, text, flag, real = given + 1, given + 2, "7", True, 7.0
    later: int

    def inner() -> int:
        assert _value(sys._getframe(), "shared") == 70_003
        return shared

    frame = sys._getframe()
    assert inner() == _value(frame, "shared")
    assert [_value(frame, name) for name in ("given", "local")] == [given, local]
    assert [_value(frame, name) for name in ("text", "flag", "real", "later", "no_such_name")] == [None] * 5
    assert (text, flag, real) == ("7", True, 7.0)
    later = 3
    assert _value(frame, "later") == later


def test_a_module_is_read_from_its_namespace():
    names: dict[str, object] = {"read": read_counter, "LoopCounter": LoopCounter, "sys": sys, "found": []}
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
        def __index__(self) -> int:
            raise AssertionError

        __eq__ = __lt__ = __gt__ = __hash__ = None  # type: ignore[assignment]

    loud = Loud(3)
    assert _value(sys._getframe(), "loud") is None
    assert isinstance(loud, int)
