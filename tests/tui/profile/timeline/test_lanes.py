"""The lanes of a timeline as arrays: grouping, nesting, counters."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxprof import events as e
from jaxprof.analysis.lanes.kinds import KINDS
from jaxprof.analysis.lanes.rows import DEEPEST, Busy, LaneGroup, Lanes, lanes_of
from jaxprof.analysis.timeline import TimelineCounter, read_timeline, readings_within
from jaxprof.errors import FileRefusedError
from jaxprof.tui.kit.canvas import AxisWindow
from jaxprof.tui.profile.timeline.drawing import columns_of
from jaxprof.tui.profile.timeline.facts import cursor_lines
from tui import profiles
from tui.profile.timeline.made_lanes import lanes, one_lane, spans


def test_hosts_are_above_devices_and_threads_of_a_pool_are_one_lane() -> None:
    found = lanes(profiles.timeline())
    assert [(lane.title, lane.on_device) for lane in found.lanes] == [
        ("python", False),
        ("pool", False),
        ("Stream #1(Compute)", True),
        ("Stream #2(MemcpyD2H)", True),
    ]
    assert [row.level for row in found.lanes[0].rows] == [0, 1, 2]
    assert found.lanes[1].summary.capacity == 2
    assert found.intervals == 10 * 6 + 2


@given(spans)
def test_no_two_intervals_of_a_row_overlap_and_none_is_lost(intervals: list[tuple[int, int]]) -> None:
    lane = one_lane(intervals).lanes[0]
    for row in lane.rows:
        assert (row.starts[1:] >= row.ends[:-1]).all()
    drawn = sum(len(row.starts) for row in lane.rows)
    assert drawn + lane.hidden == len(intervals)
    assert lane.hidden == 0 or len(lane.rows) == DEEPEST


@given(spans, st.lists(st.integers(0, 1500), min_size=1, max_size=20))
def test_busy_counts_overlapping_intervals_each(intervals: list[tuple[int, int]], times: list[int]) -> None:
    starts = np.array([start for start, _ in intervals])
    ends = starts + np.array([duration for _, duration in intervals])
    until = Busy.of(starts, ends).until(np.array(times))
    for at, found in zip(times, until.tolist(), strict=True):
        assert found == sum(max(0, min(end, at) - start) for start, end in zip(starts, ends, strict=True) if start < at)


class TestCounters:
    @staticmethod
    def lane(times: list[int], values: list[float], end: int = 100) -> LaneGroup:
        timeline = read_timeline(
            profiles.text([profiles.lane("gpu:0", "Stream #1", "stream", [("a", None, 0, end)])], [])
        )
        timeline.counters.append(TimelineCounter("gpu:0", "memory", "bytes", times, values))
        return next(lane for lane in lanes_of(timeline).lanes if lane.kind == "counter")

    @given(st.dictionaries(st.integers(0, 99), st.integers(0, 9), min_size=1, max_size=12), st.integers(1, 30))
    def test_a_column_is_as_high_as_the_highest_value_in_it(self, points: dict[int, int], width: int) -> None:
        times = sorted(points)
        lane = self.lane(times, [float(points[time]) for time in times])
        drawn = columns_of(lane, lane.rows[0], AxisWindow(0, 100), width)
        most = max(points.values()) or 1
        for column in range(width):
            begin, end = column * 100 // width, (column + 1) * 100 // width
            held = [points[time] for time in times if begin < time < end]
            held += [points[max(time for time in times if time <= begin)]] if any(t <= begin for t in times) else []
            expected = max(held) / most if held else 0.0
            assert drawn.height[column] == pytest.approx(expected)
            assert (drawn.kind[column] == KINDS.index("counter")) == bool(held)

    def test_its_value_at_the_cursor_is_shown(self) -> None:
        lane = self.lane([10, 50], [1024.0, 4096.0])
        lanes = Lanes((lane,), [], 0, 100, 0)
        under = (lane, lane.rows[0], lane.rows[0].at(20))
        lines = cursor_lines(lanes, AxisWindow(0, 100), 20, under, 100)
        assert "1.00 KiB" in lines[0].plain
        assert "most 4.00 KiB at 50.000 ns · 2 values · gpu:0" in lines[1].plain
        before = cursor_lines(lanes, AxisWindow(0, 100), 5, (lane, lane.rows[0], None), 100)
        assert "before its first value" in before[0].plain

    def test_readings_of_the_session_that_lie_in_the_recording(self) -> None:
        tape = profiles.captured()
        session = tape.session()
        header = session.header
        text = profiles.text([profiles.lane("gpu:0", "Stream #1", "stream", [("a", None, 0, 2_000_000_000)])], [])
        timeline = read_timeline(
            text.replace('"started_unix_ns": null', f'"started_unix_ns": {round(header.wall_seconds * 1e9)}')
        )
        session.readings.clear()
        for after, watts in ((-1.0, 1.0), (0.5, 300.0), (1.5, 400.0), (2.5, 500.0)):
            session.apply(
                e.DeviceReading(device="cuda:0", power_watts=watts, monotonic_seconds=header.monotonic_seconds + after)
            )
        (found,) = readings_within(session, timeline)
        assert (found.device, found.name, found.unit, found.values) == ("gpu:0", "power", "watts", [300.0, 400.0])
        assert np.allclose(found.times, [5e8, 15e8], atol=1e3)
        assert readings_within(session, read_timeline(text)) == []

    @pytest.mark.parametrize(
        "counters",
        [
            "[1]",
            '[{"device":"a","name":"b","unit":"c","time":[1],"value":[]}]',
            '[{"device":"a","name":"b","unit":"c","time":["x"],"value":[1]}]',
        ],
    )
    def test_damage_is_refused(self, counters: str) -> None:
        text = profiles.timeline()
        with pytest.raises(FileRefusedError):
            lanes_of(read_timeline(text[:-1] + f',"counters":{counters}}}'))
