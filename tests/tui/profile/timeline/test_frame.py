"""A range of time on a timeline: columns, names, totals."""

from __future__ import annotations

import json
import time
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxprof.analysis.timeline import Timeline, TimelineLane, read_timeline
from jaxprof.tui.kit.search import compiled
from jaxprof.tui.profile.timeline.browse import TimeWindow
from jaxprof.tui.profile.timeline.facts import range_lines
from jaxprof.tui.profile.timeline.frame import busy_share, columns_of, edges, totals
from jaxprof.tui.profile.timeline.lanes import DrawnLane, lanes_of
from jaxprof.tui.profile.timeline.search import search
from tui import profiles
from tui.profile.timeline.made_lanes import lanes, one_lane, spans

FRAME_SECONDS = 0.020


@given(spans, st.integers(0, 900), st.integers(200, 1200), st.integers(8, 90))
def test_columns_are_what_counting_nanoseconds_gives(
    intervals: list[tuple[int, int]], start: int, span: int, width: int
) -> None:
    lane = one_lane(intervals).lanes[0]
    row, window = lane.rows[0], TimeWindow(start, start + span)
    covered = np.zeros(2600, np.bool_)
    for begin, end in zip(row.starts.tolist(), row.ends.tolist(), strict=True):
        covered[begin:end] = True
    found = columns_of(lane, row, window, width)
    borders = edges(window, width).tolist()
    for column, (left, right) in enumerate(pairwise(borders)):
        inside = covered[left:right]
        assert found.height[column] == pytest.approx(inside.mean() if len(inside) else 0.0)
        assert (found.kind[column] >= 0) == bool(inside.any())
    assert busy_share(row, window) == pytest.approx(covered[start : start + span].mean())


def test_gaps_are_between_the_first_and_the_last_interval_only() -> None:
    lane = one_lane([(100, 100), (300, 100)]).lanes[0]
    found = columns_of(lane, lane.summary, TimeWindow(0, 500), 5)
    assert found.gap.tolist() == [False, False, True, False, False]


def test_a_name_is_written_where_there_is_room_and_cut_at_the_window() -> None:
    lane = one_lane([(0, 500), (500, 10)]).lanes[0]
    named = columns_of(lane, lane.summary, TimeWindow(100, 600), 50).named
    assert [(one.first, one.last, one.begins) for one in named] == [(0, 40, False)]


def million() -> Timeline:
    """Eight streams of 115 000 kernels and a host thread with 80 000 calls that nest."""
    draw = np.random.default_rng(5)

    def stream(count: int, kind: str, device: str, name: str) -> TimelineLane:
        starts = np.cumsum(draw.integers(100, 2000, count)).tolist()
        durations = draw.integers(50, 1500 if kind == "host" else 100, count).tolist()
        labels: list[tuple[str, int | None]] = [(f"fusion_{n}", None) for n in range(400)]
        return TimelineLane(device, name, kind, labels, [n % 400 for n in range(count)], starts, durations)

    streams = [stream(115_000, "stream", f"gpu:{n}", f"Stream #{n}") for n in range(8)]
    return Timeline(None, 0, [], [*streams, stream(80_000, "host", "host", "python")])


def test_a_frame_of_a_million_intervals_is_drawn_in_time_at_every_zoom() -> None:
    found = lanes_of(million())
    assert found.intervals >= 1_000_000 - sum(lane.hidden for lane in found.lanes)
    whole = TimeWindow(found.begin, found.end)
    hits = search(found, compiled("fusion_1"))
    worst = 0.0
    for zoom in (1.0, 0.1, 1e-3, 1e-6):
        window = whole.zoomed(zoom, whole.span // 3, whole, 200)
        best = float("inf")
        for _ in range(3):
            began = time.thread_time()
            for at, lane in enumerate(found.lanes):
                for number, row in enumerate(lane.rows[:4]):
                    columns_of(lane, row, window, 200, hits.busy.get((at, number)))
            best = min(best, time.thread_time() - began)
        worst = max(worst, best)
    assert worst < FRAME_SECONDS


@settings(max_examples=60)
@given(st.data())
def test_a_damaged_text_is_refused_or_read_never_crashed_on(data: st.DataObject) -> None:
    from jaxprof.errors import JaxprofError

    whole = json.loads(profiles.timeline(2))
    lane = data.draw(st.sampled_from(whole["lanes"]))
    key = data.draw(st.sampled_from(sorted(lane)))
    lane[key] = data.draw(st.sampled_from([None, [], [1], ["x"], "x", 5, [[1, 2]], [10**30]]))
    try:
        found = lanes(json.dumps(whole))
    except JaxprofError:
        return
    for one in found.lanes:
        columns_of(one, one.summary, TimeWindow(found.begin, found.end + 200), 80)


SPAN = 60


def lane_of(spans: list[tuple[int, int]], kind: str = "host") -> DrawnLane:
    order = sorted(spans, key=lambda span: (span[0], -span[1]))
    rows = [(f"name {at % 3}", None, start, length) for at, (start, length) in enumerate(order)]
    return lanes_of(read_timeline(profiles.text([profiles.lane("host", "python", kind, rows)], []))).lanes[0]


def nested(depth: int) -> Any:
    """Intervals that nest, as those of one thread do."""
    base = st.lists(st.tuples(st.integers(0, SPAN), st.integers(1, 20)), min_size=1, max_size=8)
    return base.map(lambda spans: [(start, length) for start, length in spans][: depth * 8])


class TestTotals:
    @settings(max_examples=150, deadline=None)
    @given(nested(1), st.integers(0, SPAN), st.integers(1, SPAN))
    def test_self_times_add_up_to_the_busy_time_that_counting_gives(
        self, spans: list[tuple[int, int]], begin: int, length: int
    ) -> None:
        inside: list[tuple[int, int]] = []
        for start, took in sorted(spans, key=lambda span: (span[0], -span[1])):
            if all(start >= low + high or start + took <= low + high for low, high in inside if start >= low):
                inside.append((start, took))  # what would only overlap cannot be on one thread
        found = totals(lane_of(inside), begin, begin + length)
        busy = sum(any(low <= time < low + took for low, took in inside) for time in range(begin, begin + length))
        assert found.busy_ns == busy
        assert sum(one.self_ns for one in found.names) == busy
        assert found.busy_share == pytest.approx(busy / length)

    def test_several_threads(self) -> None:
        rows = [profiles.lane("cpu:0", f"pool/{n}", "thread", [("dot", None, 10 * n, 20)]) for n in range(2)]
        (lane,) = lanes_of(read_timeline(profiles.text(rows, []))).lanes
        found = totals(lane, 0, 40)
        assert (found.threads, found.busy_ns, found.count, found.busy_share) == (2, 40, 2, 0.5)
        assert [(one.name, one.count, one.self_ns) for one in found.names] == [("dot", 2, 40)]

    def test_an_empty_range(self) -> None:
        found = totals(lane_of([(0, 5)]), 30, 40)
        assert (found.busy_ns, found.count, found.names) == (0, 0, ())

    def test_in_words_for_every_width(self) -> None:
        lane = lanes_of(read_timeline(profiles.timeline())).lanes[-2]
        for width in (30, 78, 118):
            lines = range_lines(lane, totals(lane, 0, 4_000_000), 0, width)
            assert all(line.cell_length <= width for line in lines)
        assert "70 % busy, 4 events" in lines[0].plain
        assert "gemm_kernel 1.80 ms ×2" in lines[1].plain
