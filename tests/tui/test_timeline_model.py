"""The timeline's arrays: nesting, what a window shows, searching, and that a million intervals are drawn in time."""

from __future__ import annotations

import json
import time
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxprof.results.timeline import Timeline, TimelineLane, read_timeline
from jaxprof.tui.programs.search import compiled
from jaxprof.tui.timeline.frame import busy_share, columns_of, edges
from jaxprof.tui.timeline.kinds import KINDS, kind_of
from jaxprof.tui.timeline.lanes import DEEPEST, Busy, Lanes, lanes_of
from jaxprof.tui.timeline.search import search
from jaxprof.tui.timeline.window import Window
from tui import profiles

FRAME_SECONDS = 0.020


def lanes(text: str) -> Lanes:
    return lanes_of(read_timeline(text))


def one_lane(intervals: list[tuple[int, int]], kind: str = "stream") -> Lanes:
    given = [("k", None, start, duration) for start, duration in intervals]
    return lanes(profiles.text([profiles.lane("gpu:0", "Stream #1", kind, given)], []))


spans = st.lists(st.tuples(st.integers(0, 1000), st.integers(1, 200)), min_size=1, max_size=40).map(
    lambda found: sorted(found, key=lambda span: (span[0], -span[1]))
)


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


@given(spans, st.integers(0, 900), st.integers(200, 1200), st.integers(8, 90))
def test_columns_are_what_counting_nanoseconds_gives(
    intervals: list[tuple[int, int]], start: int, span: int, width: int
) -> None:
    lane = one_lane(intervals).lanes[0]
    row, window = lane.rows[0], Window(start, start + span)
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


@given(spans, st.lists(st.integers(0, 1500), min_size=1, max_size=20))
def test_busy_counts_overlapping_intervals_each(intervals: list[tuple[int, int]], times: list[int]) -> None:
    starts = np.array([start for start, _ in intervals])
    ends = starts + np.array([duration for _, duration in intervals])
    until = Busy.of(starts, ends).until(np.array(times))
    for at, found in zip(times, until.tolist(), strict=True):
        assert found == sum(max(0, min(end, at) - start) for start, end in zip(starts, ends, strict=True) if start < at)


def test_gaps_are_between_the_first_and_the_last_interval_only() -> None:
    lane = one_lane([(100, 100), (300, 100)]).lanes[0]
    found = columns_of(lane, lane.summary, Window(0, 500), 5)
    assert found.gap.tolist() == [False, False, True, False, False]


def test_a_name_is_written_where_there_is_room_and_cut_at_the_window() -> None:
    lane = one_lane([(0, 500), (500, 10)]).lanes[0]
    named = columns_of(lane, lane.summary, Window(100, 600), 50).named
    assert [(one.first, one.last, one.begins) for one in named] == [(0, 40, False)]


@given(st.integers(0, 999), st.floats(0.1, 10), st.integers(0, 999))
def test_zooming_stays_inside_and_keeps_the_place(start: int, factor: float, around: int) -> None:
    whole = Window(0, 2000)
    window = Window(start, start + 1000)
    around = window.start + around
    found = window.zoomed(factor, around, whole, 50)
    assert whole.start <= found.start < found.end <= whole.end
    assert found.span >= 50
    assert found.start <= around <= found.end
    assert found.moved(10_000, whole).end == whole.end


def test_a_search_finds_names_and_ops_in_every_lane() -> None:
    found = lanes(profiles.timeline())
    hits = search(found, compiled("dot|memcpy"))
    assert len(hits) == 20
    assert (np.diff(hits.starts) >= 0).all()
    assert hits.following(0, 1) == 0
    assert hits.following(int(hits.starts[-1]), 1) == 0
    assert hits.following(int(hits.starts[0]), -1) == 19
    assert len(search(found, compiled("nothing has this name"))) == 0
    assert search(found, compiled("nothing")).following(0, 1) is None


@pytest.mark.parametrize(
    ("lane", "name", "kind"),
    [
        ("stream", "ampere_sgemm_128x64_tn", "matmul"),
        ("stream", "loop_broadcast_fusion_3", "fusion"),
        ("stream", "input_reduce_fusion", "reduction"),
        ("stream", "MemcpyD2H", "move"),
        ("stream", "ncclDevKernel_AllReduce_Sum_f32_RING_LL", "collective"),
        ("ops", "all-gather-start.1", "collective"),
        ("ops", "convolution.12", "matmul"),
        ("ops", "convert.3", "kernel"),
        ("modules", "jit_step", "program"),
        ("host", "PjRtStreamExecutorLoadedExecutable::Execute", "dispatch"),
        ("host", "ThunkExecutor::Execute (wait for completion)", "wait"),
        ("host", "BufferFromHostBuffer", "move"),
    ],
)
def test_kinds_by_name(lane: str, name: str, kind: str) -> None:
    assert KINDS[kind_of(lane, name)] == kind


def test_the_hlo_knows_better_than_the_name() -> None:
    assert KINDS[kind_of("stream", "fusion.1", "fusion.1", {"fusion.1": "GEMM"})] == "matmul"


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
    whole = Window(found.begin, found.end)
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
        columns_of(one, one.summary, Window(found.begin, found.end + 200), 80)
