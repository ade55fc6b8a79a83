"""Loops in blocks of time, and what their means are worth."""

from statistics import median

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxprof.analysis.programs import PARTS
from jaxprof.jobs import late
from jaxprof.jobs.figures import LoopWindows, ProcessFigures
from jaxprof.jobs.late import MOST_BLOCKS, OWN_WORK, LoopComparison, differences, in_blocks, windows_of

NOTHING = dict.fromkeys(PARTS, 0.0)


def process(shares, *, samples=100.0, own=False, steps=()):
    """Windows of a second with these shares of data; `own`: the CPU clock agrees; `steps`: their first iterations."""
    return figures(
        (7.0 + at, 1.0, samples, *{**NOTHING, "data": share}.values(), share if own else None, step)
        for at, (share, step) in enumerate(zip(shares, steps or [None] * len(shares), strict=True))
    )


def figures(windows):
    return ProcessFigures(0, "box", "", "ok", "", "", windows=LoopWindows.of(windows))


def blocks(of):
    return in_blocks(of, of.windows)


def certain(*rows, paces=()):
    """Who is late of processes with these shares of work; `paces`: iterations in each window, the same for all."""
    steps = [sum(paces[:at]) for at in range(len(paces))]
    comparison = LoopComparison([blocks(process(row, samples=10, own=True, steps=steps)) for row in rows], 2)
    return [comparison.excess(number, OWN_WORK).is_certain for number in range(len(rows))]


def stretches(*shares, skipped=0):
    """When each of these processes was late, beside the others."""
    loops = [process(each).windows.select(slice(skipped, None)) for each in shares]
    found = differences(loops, [7.0] * len(loops), ["data"])["data"]
    late = [found.late_period(number) for number in range(len(loops))]
    return [each and (each[0].began_seconds, each[0].ended_seconds) for each in late]


@pytest.mark.parametrize("count", [3, 19, 20, 47, 1000])
def test_blocks_hold_all_windows_evenly(count):
    found = blocks(process([0.1] * count))
    assert len(found.seconds) == min(count, MOST_BLOCKS)
    assert found.seconds.sum() == count
    assert np.ptp(found.seconds) <= 1
    assert float(late._Means([found], "data").means[0]) == pytest.approx(0.1)
    assert blocks(process([0.1] * 2)) is None, "too few"


@pytest.mark.parametrize(
    ("shares", "samples", "variance"),
    [
        ([0.0] * 10, 5, (1 / 52) * (51 / 52) / 52),  # a part that no sample saw is not certainly absent
        ([0.0, 0.8] * 5, 1e6, 0.16 / 9),  # blocks that differ count more than their samples
    ],
)
def test_how_sure_a_mean_is(shares, samples, variance):
    found = blocks(process(shares, samples=samples))
    assert float(late._Means([found], "data").variances[0]) == pytest.approx(variance)
    assert OWN_WORK not in found.shares


USUAL = [0.1 + 0.001 * (at % 3) for at in range(20)]
VARIES = [[0.072, 0.065, 0.059, 0.04, 0.013, 0.108, 0.093, 0.048, 0.043], [0.05] * 8 + [0.301]]
LATE = [0.51, 0.45, 0.46, 0.48, 0.44, 0.37, 0.43, 0.78, 0.88]
PACES = [15, 29, 34, 33, 34]
WORK, LITTLE = [0.02 * pace for pace in PACES], [0.002 * pace for pace in PACES]
"""The same work of each iteration is another share of the time where the iterations take longer for all."""


@pytest.mark.parametrize(
    ("rows", "paces", "who"),
    [
        ([[0.12, 0.29] * 10, USUAL], [], [True, False]),
        ([[0.12] * 10 + [0.29] * 10, USUAL], [], [False, False]),  # blocks that are like those before are worth less
        ([*VARIES, LATE], [], [False, False, True]),  # above all others all the time, however much that varies
        ([*VARIES, [0.2, *LATE[1:]]], [], [False, False, False]),
        ([VARIES[0], [share + 0.04 for share in VARIES[0]]], [], [False, False]),
        ([LITTLE, WORK], PACES, [False, True]),  # a slow moment of the device is not own work that varies
        ([LITTLE, WORK], [], [False, False]),
        ([LITTLE, LITTLE], PACES, [False, False]),
        ([[0.05, 0.06, 0.05], [0.6, 0.61, 0.6]], [], [False, True]),  # three blocks are enough beyond doubt
        ([[0.05, 0.06, 0.05], [0.2, 0.31, 0.5]], [], [False, False]),
        (
            [[0.05, 0.06] * 2] * 5 + [[0.25, 0.26] * 2],
            [],
            [False] * 5 + [True],
        ),  # the more others, the surer their mean
    ],
)
def test_who_is_certainly_late(rows, paces, who):
    assert certain(*rows, paces=paces) == who


def test_windows_of_first_compilations_do_not_hide_who_is_late():
    def recorded(share):
        compiled = [(7.0 + at, 1.0, 0.0, *NOTHING.values(), 0.0, None) for at in range(3)]
        parts = {**NOTHING, "host": share, "device": 1 - share}.values()
        return figures(
            [*compiled, *((10.0 + at, 1.0, 50.0, *parts, share + 0.04 * (at % 3), None) for at in range(14))]
        )

    def certain(share, *, whole):
        rows = [recorded(share), *[recorded(0.05)] * 3]
        loops = [in_blocks(row, row.windows if whole else windows_of(row)) for row in rows]
        return LoopComparison(loops, 4).excess(0, OWN_WORK).is_certain

    assert windows_of(recorded(0.35)).began_seconds.tolist() == [10.0 + at for at in range(14)]
    assert [certain(0.35, whole=True), certain(0.35, whole=False), certain(0.06, whole=False)] == [False, True, False]


@given(st.lists(st.sampled_from([0.1, 0.2, 0.25, 0.3, 0.4, 0.9]), min_size=2, max_size=9))
def test_a_process_is_compared_with_the_middle_one_of_the_others(shares):
    comparison = LoopComparison([blocks(process([share] * 5)) for share in shares])
    for number in range(len(shares)):
        found = comparison.excess(number, "data")
        others = shares[:number] + shares[number + 1 :]
        assert (found.share, found.usual) == pytest.approx((shares[number], median(others)))


@pytest.mark.filterwarnings("error")
def test_moments_outside_the_loop_raise_no_warning():
    shares = np.full((3, 20), 0.1)
    shares[2, 8:], shares[:, 5] = 0.6, np.nan
    found, _ = late.Differences(shares, 1.0).late_period(2)
    assert found.began_seconds == 8


@pytest.mark.parametrize(("before", "late"), [(4, 8), (10, 12)])
def test_a_stretch_counts_from_when_its_loop_began(before, late):
    """Of which the first windows may be left out, because they compiled."""
    usual = [0.1] * (before + late)
    found = stretches(usual, usual, [0.1] * before + [0.6] * late, skipped=2)
    assert found[2][0] == pytest.approx(before, abs=1)


def test_late_period_in_a_loop_that_others_leave_earlier():
    found = stretches([0.1] * 40, [0.1] * 12, [0.1] * 10 + [0.5] * 15 + [0.1] * 15)
    assert found == [None, None, pytest.approx((10.0, 25.0))]
