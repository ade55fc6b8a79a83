"""Runs of one process that take turns: nested, in balanced order, each ended by its own errors alone."""

import time

import pytest

from jaxprof.engine.measure.control import CapReached
from jaxprof.engine.measure.shared_turns import (
    LONGEST_REST_SECONDS,
    REST_SECONDS,
    SharedTurns,
    TurnsControl,
    await_rest,
)
from jaxprof.stats.turns import PROBES, plan_turns


class Stage:
    """Runs that write down what they do. `before`: what a run does before it is warm; `block`: in each block."""

    def __init__(self, *names, before=str, block=str):
        self.said = []
        self.blocks = []
        """Those that count."""
        self.others = []
        self.errors = {}
        self._left = iter(names)
        self._before, self._block = before, block
        self.turns = SharedTurns(0.2, self.measure_next)
        while self.measure_next():
            pass

    def measure_next(self):
        name = next(self._left, None)
        if name is None:
            return False
        control = TurnsControl(self.turns)
        try:
            self._before(name)
            self.said.append(f"{name} warm")
            control.take_turns(0.01, lambda turn: self._take(name, turn), lambda: self.said.append(f"{name} settled"))
            self.said.append(f"{name} done")
        except (ValueError, CapReached) as error:
            self.errors[name] = type(error).__name__
        return True

    def _take(self, name, turn):
        if turn.series == "run":
            self.blocks.append((name, turn.block))
            self._block(name)
        else:
            self.others.append((name, turn.series))
        return [0.01] * 4


def test_blocks_come_in_the_order_of_all_comparisons_and_cold_parts_before_them():
    stage = Stage("a", "b", "c")
    order = plan_turns([0.01] * 3, 0.2).order
    assert [name for name, _ in stage.blocks] == ["abc"[index] for index in order]
    numbers = [number for _, number in stage.blocks]
    assert numbers == sorted(set(numbers))
    alone, probes = stage.others[:3], stage.others[3:]
    assert alone == [("a", "alone"), ("b", "alone"), ("c", "alone")], "each before the next one has begun"
    assert sorted(probes) == sorted([(name, "settling") for name in "abc"] * PROBES)
    assert stage.said[:3] == ["a warm", "b warm", "c warm"]
    assert stage.said[3:] == ["c done", "b settled", "b done", "a settled", "a done"]


def test_one_run_has_all_the_turns():
    stage = Stage("a")
    assert {name for name, _ in stage.blocks} == {"a"}
    assert stage.said == ["a warm", "a done"]


def failing(*names):
    def fail(name):
        if name in names:
            raise ValueError(name)

    return fail


@pytest.mark.parametrize("broken", ["a", "b", "c"])
def test_a_run_that_fails_before_its_turns_leaves_them_to_the_others(broken):
    stage = Stage("a", "b", "c", before=failing(broken))
    assert stage.errors == {broken: "ValueError"}
    assert {name for name, _ in stage.blocks} == {"a", "b", "c"} - {broken}


@pytest.mark.parametrize("broken", ["a", "b"])
def test_a_block_that_fails_ends_its_own_run_alone(broken):
    stage = Stage("a", "b", block=failing(broken))
    assert stage.errors == {broken: "ValueError"}
    taken = [name for name, _ in stage.blocks]
    assert taken.count(broken) == 1
    assert taken.count("ab".replace(broken, "")) == len(plan_turns([0.01] * 2, 0.2).order) // 2


def test_the_hard_cap_of_a_run_counts_its_blocks(monkeypatch):
    now = 100.0
    monkeypatch.setattr(time, "monotonic", lambda: now)

    shared = SharedTurns(0.1, lambda: False)
    control = TurnsControl(shared)
    control.start_clock(5.0)
    taken = []

    def take(turn):
        nonlocal now
        taken.append(turn.block)
        now += 2.0
        return [2.0]

    with pytest.raises(CapReached):
        control.take_turns(0.01, take, lambda: None)
    assert len(taken) == 3, "five seconds are over in the third block of two"


def test_a_block_begins_when_the_threads_of_the_process_rest(monkeypatch):
    """A thread that spins for two naps uses a core meanwhile; one that never rests is not awaited for ever."""
    naps = 0

    def sleep(seconds):
        nonlocal naps, now, used
        naps += 1
        now += seconds
        used += seconds * (naps <= busy_naps)

    now = used = 0.0
    busy_naps = 0
    monkeypatch.setattr(time, "sleep", sleep)
    monkeypatch.setattr(time, "monotonic", lambda: now)
    monkeypatch.setattr(time, "process_time", lambda: used)
    for limit, expected in ((0, 1), (2, 3), (10**9, round(LONGEST_REST_SECONDS / REST_SECONDS))):
        naps, busy_naps = 0, limit
        await_rest()
        assert naps == expected
