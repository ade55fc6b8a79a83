"""A range of time on a timeline: columns, names, totals."""

from __future__ import annotations

import json
import time
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxprof.analysis.lanes.questions import search
from jaxprof.analysis.lanes.rows import lanes_of
from jaxprof.analysis.timeline import Timeline, TimelineLane
from jaxprof.tui.kit.canvas import AxisWindow
from jaxprof.tui.kit.filter import compiled
from jaxprof.tui.profile.timeline.drawing import busy_share, columns_of, edges
from tui import profiles
from tui.profile.timeline.made_lanes import lanes, one_lane, spans

FRAME_SECONDS = 0.020


@given(spans, st.integers(0, 900), st.integers(200, 1200), st.integers(8, 90))
def test_columns_are_what_counting_nanoseconds_gives(
    intervals: list[tuple[int, int]], start: int, span: int, width: int
) -> None:
    lane = one_lane(intervals).lanes[0]
    row, window = lane.rows[0], AxisWindow(start, start + span)
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
    found = columns_of(lane, lane.summary, AxisWindow(0, 500), 5)
    assert found.gap.tolist() == [False, False, True, False, False]


def test_a_name_is_written_where_there_is_room_and_cut_at_the_window() -> None:
    lane = one_lane([(0, 500), (500, 10)]).lanes[0]
    named = columns_of(lane, lane.summary, AxisWindow(100, 600), 50).named
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
    whole = AxisWindow(found.begin, found.end)
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
        columns_of(one, one.summary, AxisWindow(found.begin, found.end + 200), 80)
