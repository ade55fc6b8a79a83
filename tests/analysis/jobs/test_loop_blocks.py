"""Loops in blocks of time, and what their means are worth."""

from __future__ import annotations

from statistics import median
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxprof.analysis.jobs import late
from jaxprof.analysis.jobs.figures import LoopWindow, LoopWindows, ProcessFigures
from jaxprof.analysis.jobs.late import (
    MOST_BLOCKS,
    OWN_WORK,
    LoopComparison,
    differences,
    in_blocks,
    windows_of,
)
from jaxprof.analysis.programs.verdict import PARTS


def process(shares: list[float], *, samples: float = 100.0, own: bool = False) -> ProcessFigures:
    """Windows of a second with these shares of data."""
    windows = [
        LoopWindow(7.0 + at, 1.0, samples, {**dict.fromkeys(PARTS, 0.0), "data": share}, share if own else None)
        for at, share in enumerate(shares)
    ]
    return ProcessFigures(0, "box", "", "ok", "", "", windows=tuple(windows))


@pytest.mark.parametrize("count", [3, 5, 19, 20, 21, 39, 47, 1000])
def test_blocks_hold_all_windows_evenly(count: int) -> None:
    loop = process([0.1] * count)
    found = in_blocks(loop, loop.windows)
    assert len(found.seconds) == min(count, MOST_BLOCKS)
    assert found.seconds.sum() == count
    assert np.ptp(found.seconds) <= 1
    assert float(late._Means([found], "data").means[0]) == pytest.approx(0.1)


def test_two_windows_are_too_few() -> None:
    loop = process([0.1] * 2)
    assert in_blocks(loop, loop.windows) is None


def test_a_part_that_no_sample_saw_is_not_certainly_absent() -> None:
    loop = process([0.0] * 10, samples=5)
    found = in_blocks(loop, loop.windows)
    assert float(late._Means([found], "data").variances[0]) == pytest.approx((1 / 52) * (51 / 52) / 52)
    assert not found.knows(OWN_WORK)


def test_uneven_blocks_count_more_than_their_samples() -> None:
    uneven = process([0.0, 0.8] * 5, samples=1e6)
    found = in_blocks(uneven, uneven.windows)
    assert found is not None
    assert float(late._Means([found], "data").variances[0]) == pytest.approx(0.16 / 9)


def test_blocks_that_are_like_those_before_are_worth_less() -> None:
    def certain(mine: list[float]) -> bool:
        rows = [process(mine, own=True), process([0.1 + 0.001 * (at % 3) for at in range(20)], own=True)]
        loops = [loop for row in rows if (loop := in_blocks(row, row.windows)) is not None]
        return LoopComparison(loops).excess(0, OWN_WORK).is_certain

    assert certain([0.12, 0.29] * 10)
    assert not certain([0.12] * 10 + [0.29] * 10)


def _certain(rows: list[list[float]], paces: list[int] | None = None) -> list[bool]:
    """Who is late of processes with these shares of work; `paces`: passes in each window, the same for all."""
    steps = [None] * len(rows[0]) if paces is None else [sum(paces[:at]) for at in range(len(paces))]
    loops = []
    for row in rows:
        windows = [
            LoopWindow(7.0 + at, 1.0, 10.0, {**dict.fromkeys(PARTS, 0.0), "data": share}, share, step)
            for at, (share, step) in enumerate(zip(row, steps, strict=True))
        ]
        loops.append(in_blocks(ProcessFigures(0, "box", "", "ok", "", "", windows=tuple(windows)), windows))
    comparison = LoopComparison([loop for loop in loops if loop is not None], 2)
    return [comparison.excess(number, OWN_WORK).is_certain for number in range(len(rows))]


def test_who_is_above_all_others_all_the_time_is_late_however_much_that_varies() -> None:
    usual = [[0.072, 0.065, 0.059, 0.04, 0.013, 0.108, 0.093, 0.048, 0.043], [0.05] * 8 + [0.301]]
    late = [0.51, 0.45, 0.46, 0.48, 0.44, 0.37, 0.43, 0.78, 0.88]
    assert _certain([*usual, late]) == [False, False, True]
    assert _certain([*usual, [0.2, *late[1:]]]) == [False, False, False]
    assert _certain([usual[0], [share + 0.04 for share in usual[0]]]) == [False, False]


def test_a_slow_moment_of_the_device_is_not_own_work_that_varies() -> None:
    """The same work of each pass is another share of the time where the passes take longer for all."""
    paces = [15, 29, 34, 33, 34]
    late = [0.02 * pace for pace in paces]
    usual = [0.002 * pace for pace in paces]
    assert _certain([usual, late], paces) == [False, True]
    assert _certain([usual, late]) == [False, False]
    assert _certain([usual, usual], paces) == [False, False]


def test_three_blocks_are_enough_for_who_is_late_beyond_doubt() -> None:
    assert _certain([[0.05, 0.06, 0.05], [0.6, 0.61, 0.6]]) == [False, True]
    assert _certain([[0.05, 0.06, 0.05], [0.2, 0.31, 0.5]]) == [False, False]


def test_windows_of_first_compilations_do_not_hide_who_is_late() -> None:
    def recorded(index: int, share: float) -> ProcessFigures:
        compiled = [LoopWindow(7.0 + at, 1.0, 0.0, dict.fromkeys(PARTS, 0.0), 0.0) for at in range(3)]
        worked = [
            LoopWindow(
                10.0 + at,
                1.0,
                50.0,
                {**dict.fromkeys(PARTS, 0.0), "host": share, "device": 1 - share},
                share + 0.04 * (at % 3),
            )
            for at in range(14)
        ]
        return ProcessFigures(index, f"box{index}", "", "ok", "", "", windows=(*compiled, *worked))

    def certain(share: float, *, whole: bool) -> bool:
        rows = [recorded(0, share), *(recorded(index, 0.05) for index in (1, 2, 3))]
        loops = [loop for row in rows if (loop := in_blocks(row, row.windows if whole else windows_of(row)))]
        return LoopComparison(loops, 4).excess(0, OWN_WORK).is_certain

    assert [window.began_seconds for window in windows_of(recorded(0, 0.35))] == [10.0 + at for at in range(14)]
    assert not certain(0.35, whole=True)
    assert certain(0.35, whole=False)
    assert not certain(0.06, whole=False)


@given(st.lists(st.sampled_from([0.1, 0.2, 0.25, 0.3, 0.4, 0.9]), min_size=2, max_size=9))
def test_a_process_is_compared_with_the_middle_one_of_the_others(shares: list[float]) -> None:
    rows = [process([share] * 5) for share in shares]
    comparison = LoopComparison([loop for row in rows if (loop := in_blocks(row, row.windows)) is not None])
    for number in range(len(shares)):
        found = comparison.excess(number, "data")
        others = shares[:number] + shares[number + 1 :]
        assert (found.share, found.usual) == pytest.approx((shares[number], median(others)))


SHARES = st.sampled_from([0.0, 0.02, 0.04, 0.06, 0.1, 0.3])


@given(st.lists(st.lists(SHARES, min_size=3, max_size=40), min_size=3, max_size=5))
def test_no_stretch_that_is_worth_naming_is_left_out_beforehand(shares: list[list[float]]) -> None:
    loops = [LoopWindows.of(process(each).windows) for each in shares]
    origins = [7.0] * len(loops)
    found = differences(loops, origins, ["data"])["data"]
    with patch.object(late, "_worth_naming", lambda more, _least: np.ones(len(more), dtype=bool)):
        expected = differences(loops, origins, ["data"])["data"]
    assert [found.stretch(number) for number in range(len(loops))] == [
        expected.stretch(number) for number in range(len(loops))
    ]


def test_a_stretch_is_found_in_the_middle_of_a_loop_that_others_leave_earlier() -> None:
    shares = [[0.1] * 40, [0.1] * 12, [0.1] * 10 + [0.5] * 15 + [0.1] * 15]
    loops = [LoopWindows.of(process(each).windows) for each in shares]
    found = differences(loops, [7.0] * 3, ["data"])["data"]
    assert [found.stretch(number) for number in (0, 1)] == [None, None]
    stretch = found.stretch(2)
    assert (stretch[0].began_seconds, stretch[0].ended_seconds) == pytest.approx((10.0, 25.0))


@pytest.mark.parametrize(("before", "late"), [(4, 8), (10, 12)])
def test_a_stretch_counts_from_when_its_loop_began(before: int, late: int) -> None:
    """Of which the first windows may be left out, because they compiled."""
    shares = [[0.1] * (before + late)] * 2 + [[0.1] * before + [0.6] * late]
    loops = [LoopWindows.of(process(each).windows)[2:] for each in shares]
    found = differences(loops, [7.0] * 3, ["data"])["data"].stretch(2)
    assert found[0].began_seconds == pytest.approx(before, abs=1)


def test_windows_before_their_loop_began_are_in_its_first_cell() -> None:
    """Which a clock that was set back makes of a roll-up."""
    loops = [LoopWindows.of(process([0.1] * 20).windows) for _ in range(3)]
    found = differences(loops, [7.0, 20.0, 7.0], ["data"])["data"]
    assert [found.stretch(number) for number in range(3)] == [None] * 3


def test_windows_by_column_are_those_that_were_given() -> None:
    rows = process([0.1, 0.2, 0.3], own=True).windows
    columns = LoopWindows.of(rows)
    assert tuple(columns) == tuple(rows)
    assert columns[-1] == rows[-1]
    assert tuple(columns[1:]) == tuple(rows[1:])
    assert LoopWindows.of(columns) is columns
    assert columns == LoopWindows.of(rows) != columns[1:]
    assert len(LoopWindows.of(())) == 0
