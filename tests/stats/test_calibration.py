"""The verdicts are as often wrong as they say, on machines whose disturbances are known; and older ways are not.

Each share is of a fixed number of sessions with fixed seeds, so that it is the same everywhere. Limits for one machine
leave room for the error of simulating so few (of 100 sessions 5 % are 5 ± 2); those for all machines together do not.
"""

import functools

import numpy as np
import pytest

from jaxprof.stats.comparison import compare, correct_for_family, narrow_enough
from stats.machines import MACHINES, Machine, in_turns

SESSIONS = 100


@functools.cache
def sessions(machine, launches, slower=0.0, count=SESSIONS):
    random = np.random.default_rng([7, launches, *repr(machine).encode()])
    return [compare(machine.measure(random, in_turns(random, launches, 40), slower)) for _ in range(count)]


def share(verdicts, *wanted):
    return sum(one.verdict in wanted for one in verdicts) / len(verdicts)


def covered(comparisons, truth):
    intervals = [one.interval(0.95) for one in comparisons]
    return sum(found is not None and found[0] <= truth <= found[1] for found in intervals) / len(intervals)


@pytest.mark.parametrize("launches", [2, 4])
def test_false_verdicts_and_coverage_over_machines(launches):
    """`bench/verdict_simulated.py` has each machine by itself."""
    found = [one for machine in MACHINES.values() for one in sessions(machine, launches, count=50)]
    assert share(found, "faster", "slower") <= 0.05
    assert covered(found, 1.0) >= 0.94


@pytest.mark.parametrize("name", ["quiet", "drift", "swing"])
def test_ten_percent_are_found_without_a_neighbour(name):
    found = sessions(MACHINES[name], 3, slower=0.1, count=60)
    assert share(found, "slower") >= 0.8
    assert covered(found, 1 / 1.1) >= 0.9


def test_same_is_said_of_the_same_program_and_not_of_another():
    assert share(sessions(MACHINES["quiet"], 5, count=60), "same") >= 0.8
    # At the margin itself equivalence is a coin that falls on its edge: at most one in twenty.
    assert share(sessions(MACHINES["quiet"], 5, slower=0.02, count=SESSIONS), "same") <= 0.08
    assert share(sessions(MACHINES["quiet"], 5, slower=0.04, count=60), "same") == 0


def test_one_launch_beside_a_neighbour():
    for machine in (Machine(), Machine(drift=0.3), Machine(bursts=True), Machine(wander=0.01, persistence=0.6)):
        found = sessions(machine, 1)
        assert share(found, "faster", "slower") <= 0.05
        assert covered(found, 1.0) >= 0.92
    assert share(sessions(Machine(bursts=True), 1, slower=0.3, count=40), "slower") >= 0.8
    # Where launches differ by as much as it calls, it is wrong often: that is why it says what it holds for.
    assert share(sessions(MACHINES["launches differ by 2 %"], 1), "faster", "slower") <= 0.05
    assert share(sessions(MACHINES["launches differ by 10 %"], 1), "faster", "slower") > 0.2


def test_stopping_by_width_keeps_the_error_rate():
    """Launch effects alone, with 20 at most: the width that is wanted is reached after ten on average."""
    random = np.random.default_rng(4)
    machine = Machine(launch=0.02, noise=0.001)
    wrong = missed = 0
    for _ in range(SESSIONS):
        measured = machine.measure(random, in_turns(random, 20, 1))
        launches = next((n for n in range(2, 21) if narrow_enough(compare(measured[:n]), 0.02)), 20)
        found = compare(measured[:launches], by_width=True)
        wrong += found.verdict in ("faster", "slower")
        missed += not found.low <= 1 <= found.high
    assert wrong / SESSIONS <= 0.08
    assert missed / SESSIONS <= 0.08


def test_a_table_of_many_comparisons_is_seldom_wrong_anywhere():
    random = np.random.default_rng(6)
    machine = Machine(launch=0.02)
    plain = family = 0
    for _ in range(SESSIONS):
        measured = machine.measure(random, in_turns(random, 4, 8, sides=6))
        rows = [compare(measured, 0, side) for side in range(1, 6)]
        plain += share(rows, "faster", "slower") > 0
        family += share(correct_for_family(rows), "faster", "slower") > 0
    assert family / SESSIONS <= 0.08
    assert plain / SESSIONS > 0.08, "else there was nothing to correct"
