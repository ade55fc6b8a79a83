"""The drawings of a program's time: what adds up, what lies on which column, what is said when nothing is known."""

from __future__ import annotations

import pytest

from jaxprof.events import ProgramSampled
from jaxprof.tui.kit.program_summary import Head, ProgramHead, share_bar, share_table
from jaxprof.tui.program.time_pane import TimeAxis, states_by_column, values_by_column


def stretch(began: float, ended: float, **states: float) -> ProgramSampled:
    """A stretch of a program."""
    return ProgramSampled(began_seconds=began, monotonic_seconds=ended, samples=10, states=states)


def test_columns_hold_what_was_done_in_their_time() -> None:
    axis = TimeAxis(100.0, 104.0)
    sampled = [stretch(100.0, 101.0, compile=1.0), stretch(101.0, 103.0, device_busy=1.5, host_busy=0.5)]
    found = states_by_column(sampled, axis, 8)
    assert found[0] == found[1] == {"compile": 1.0}
    for column in found[2:6]:
        assert column == pytest.approx({"device_busy": 0.75, "host_busy": 0.25})
    assert found[6] == found[7] == {}
    whole = sum(sum(column.values()) for column in found) * axis.seconds / 8
    assert whole == pytest.approx(3.0)


def test_values_are_held_between_readings_and_not_beyond_them() -> None:
    axis = TimeAxis(0.0, 10.0)
    assert values_by_column([(1.0, 2.0), (1.5, 4.0), (4.0, 8.0)], axis, 10) == [
        None, 3.0, 3.0, 3.0, 8.0, None, None, None, None, None,
    ]  # fmt: skip
    assert values_by_column([(3.0, None)], axis, 3) == [None, None, None]


@pytest.mark.parametrize("width", [1, 7, 40, 80])
def test_the_bar_is_as_wide_as_it_is_told(width: int) -> None:
    shares = {"compile": 1.0, "device_busy": 2.0, "not_seen": 0.5, "of_a_newer_version": 0.1}
    assert share_bar(shares, width).cell_length == width
    assert share_bar({}, width).cell_length == width


@pytest.mark.parametrize("width", [40, 76, 120])
def test_the_table_adds_up_and_fits(width: int) -> None:
    rows = [("import", 1.0, False), ("compile", 2.5, True), ("data", 0.0, False), ("not_seen", 0.5, False)]
    lines = share_table(rows, 4.0, width)
    assert all(line.cell_length <= width for line in lines)
    assert "4.00 s" in lines[-1].plain
    assert "100 %" in lines[-1].plain
    assert sum("■" in line.plain for line in lines) == 3, "a state that never was has no line"
    assert "\u2248" in lines[0].plain
    assert "\u2248" not in lines[1].plain
    assert "No time" in share_table([("import", 0.0, False)], 0.0, width)[0].plain


def test_the_exit_code_and_the_time_do_not_touch() -> None:
    head = Head("train.py", "ok", "exit code 0", None, 14 * 3600 + 46 * 60)
    assert ProgramHead()._first(head, 80).plain.endswith("exit code 0 14 h 46 min")
    assert ProgramHead()._first(head, 80).cell_length == 80
