"""A timeline: its lanes and what a column shows of them, and the state in view: window, cursor, jumps, map, ruler."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from golden import held_cases
from jaxprof import events as e
from jaxprof.analysis.timeline import (
    BUSY,
    KINDS,
    Timeline,
    TimelineCounter,
    TimelineLane,
    read_timeline,
    readings_within,
)
from jaxprof.analysis.timeline.lanes import DEEPEST, End, lanes_of, other_end
from jaxprof.base.errors import FileRefusedError
from jaxprof.tui.kit.canvas import Scale, ruler
from jaxprof.tui.profile.timeline.browse import LEAST_NS, AxisWindow, Browse
from jaxprof.tui.profile.timeline.drawing import busy_share, columns_of, cursor_lines, edges, ruler_time, step_lines
from tui import profiles

WIDTH, ROOM = 60, 40
spans = st.lists(st.tuples(st.integers(0, 1000), st.integers(1, 200)), min_size=1, max_size=40).map(
    lambda found: sorted(found, key=lambda span: (span[0], -span[1]))
)


def made(intervals, *lanes):
    """Lanes of device, name and kind, by default one, all with these intervals of start and duration."""
    given = [("k", None, start, duration) for start, duration in intervals]
    rows = [profiles.lane(*lane, given) for lane in lanes or [("gpu:0", "Stream #1", "stream")]]
    return lanes_of(read_timeline(profiles.text(rows, [])))


LANES = lanes_of(read_timeline(profiles.timeline()))
IDLE = made([(0, 100), (110, 100), (400, 50), (800, 200)])
"""Idle for 10, 190 and 350 of 1000 ns: of 50 columns, one is 20 ns."""
MEMORY = TimelineCounter("gpu:0", "memory", "bytes", [10, 50, 55], [1024.0, 4096.0, 2048.0])
COUNTER = lanes_of(Timeline(None, 0, [], [], [MEMORY]))


@given(spans)
def test_no_two_intervals_of_a_row_overlap_and_none_is_lost(intervals):
    lane = made(intervals).lanes[-1]
    assert all((row.starts[1:] >= row.ends[:-1]).all() for row in lane.rows)
    assert sum(len(row.starts) for row in lane.rows) == len(intervals) or len(lane.rows) == DEEPEST


@given(spans, st.integers(0, 900), st.integers(200, 1200), st.integers(8, 90))
def test_columns_are_what_counting_nanoseconds_gives(intervals, start, span, width):
    row, window = made(intervals).lanes[-1].rows[0], AxisWindow(start, start + span)
    covered = np.zeros(2600, np.bool_)
    for begin, end in zip(row.starts.tolist(), row.ends.tolist(), strict=True):
        covered[begin:end] = True
    found = columns_of(row, window, width)
    for column, (left, right) in enumerate(pairwise(edges(window, width).tolist())):
        inside = covered[left:right]
        assert found.height[column] == pytest.approx(inside.mean() if len(inside) else 0.0)
        assert (found.kind[column] >= 0) == bool(inside.any())
    assert busy_share(row, window) == pytest.approx(covered[start : start + span].mean())


def test_a_counter_is_as_high_as_its_highest_value_in_a_column():
    (lane,) = COUNTER.lanes
    drawn = columns_of(lane.rows[0], AxisWindow(0, 100), 10)
    assert drawn.height.tolist() == [0, *[0.25] * 4, 1, *[0.5] * 4]
    assert set(drawn.kind.tolist()) == {-1, KINDS.index("counters")}


def test_readings_within_the_recording_are_counters():
    session = profiles.captured().session()
    header = session.header
    text = profiles.text([profiles.lane("gpu:0", "Stream #1", "stream", [("a", None, 0, 2_000_000_000)])], [])
    began = f'"started_unix_ns": {round(header.wall_seconds * 1e9)}'
    session.readings.clear()
    for after, watts in ((-1.0, 1.0), (0.5, 300.0), (1.5, 400.0), (2.5, 500.0)):
        moment = header.monotonic_seconds + after
        session.apply(e.DeviceReading(device="cuda:0", power_watts=watts, monotonic_seconds=moment))
    (found,) = readings_within(session, read_timeline(text.replace('"started_unix_ns": null', began)))
    assert (found.device, found.name, found.unit, found.values) == ("gpu:0", "power", "watts", [300.0, 400.0])
    assert np.allclose(found.times, [5e8, 15e8], atol=1e3)
    assert readings_within(session, read_timeline(text)) == []


@pytest.mark.parametrize("damage", ["[1]", '[{"device":"a","name":"b","unit":"c","time":[1],"value":[]}]'])
def test_damaged_counters_are_refused(damage):
    with pytest.raises(FileRefusedError):
        lanes_of(read_timeline(f'{profiles.timeline()[:-1]},"counters":{damage}}}'))


def joined_lanes(kernels, launches):
    """A launch each 10 ns, a kernel 100 ns later; the correlation of each."""

    def lane(device, kind, joins, shift):
        count = len(joins)
        starts = [shift + 10 * n for n in range(count)]
        return TimelineLane(device, kind, kind, [("x", None)], [0] * count, starts, [5] * count, correlations=joins)

    return lanes_of(Timeline(None, 0, [], [lane("gpu:0", "stream", kernels, 100), lane("host", "host", launches, 0)]))


def test_cursor_goes_from_a_launch_to_its_kernel_and_back():
    lanes = joined_lanes([7, 8, -1], [8, -1, 7])
    ends = {(2, 0): End(1, 0, 1), (1, 0): End(2, 0, 2), (1, 2): None, (2, 1): None}
    assert {at: other_end(lanes, End(at[0], 0, at[1])) for at in ends} == ends
    browse = Browse(joined_lanes([4], [4]), 60, 10)
    browse.line += 1
    browse.event(1)
    for device, moment in (("host", 0), ("gpu:0", 100)):
        browse.follow()
        assert (browse.lanes.lanes[browse.lines[browse.line][0]].device, browse.cursor) == (device, moment)


@given(spans, spans, spans)
def test_device_is_busy_while_one_of_its_lanes_is(first, second, copies):
    kinds = {"stream": first, "ops": second, "async": copies, "modules": [(0, 2000)], "host": [(0, 2000)]}
    rows = [
        profiles.lane("host" if kind == "host" else "gpu:0", kind, kind, [("k", None, *span) for span in spans])
        for kind, spans in kinds.items()
    ]
    covered = {time for start, took in [*first, *second, *copies] for time in range(start, start + took)}
    lanes = lanes_of(read_timeline(profiles.text(rows, [])))
    lane = lanes.lanes[0]
    assert [each.kind for each in lanes.lanes] == [BUSY, "stream", "ops", "async", "modules", "host"]
    assert (lane.title, lane.device, lane.left_out) == ("device busy", "gpu:0", 0)
    assert lane.active.between(0, 2000) == len(covered)
    rest = [row for each in lanes.lanes if each is not lane for row in each.rows]
    assert lanes.intervals == sum(len(row.starts) for row in rest), "it has no events of its own"


def test_busy_time_is_unknown_without_all_lanes():
    assert [lane.kind for lane in made([(0, 9)], ("host", "python", "host")).lanes] == ["host"]
    rows = [profiles.lane("gpu:0", "Stream #1", "stream", [("k", None, 0, 9), ("k", None, 30, 9)], left_out=3)]
    lane = lanes_of(read_timeline(profiles.text(rows, [], left_out=3))).lanes[0]
    assert (lane.kind, lane.left_out) == (BUSY, None)
    assert (
        "idle, or short events that were left out"
        in said_at(lanes_of(read_timeline(profiles.text(rows, [], 3))), 20)[0].plain
    )


presses = st.one_of(
    st.tuples(st.sampled_from(["pan", "step", "event", "edge"]), st.sampled_from([-1, 1])),
    st.tuples(st.just("zoom"), st.sampled_from([0.1, 0.5, 2.0, 9.0])),
    st.tuples(st.sampled_from(["open", "fit", "show_whole", "step_back", "mark"]), st.none()),
    st.tuples(st.sampled_from(["resize", "line"]), st.integers(1, 12)),
)


@given(st.lists(presses, max_size=40))
def test_cursor_stays_in_view_whatever_is_pressed(keys):
    browse = Browse(LANES, WIDTH, ROOM)
    for name, value in keys:
        if name == "zoom":
            browse.zoom(value or 1.0, browse.cursor)
        elif name == "resize":
            browse.resize(WIDTH, int(value or 1))
        elif name == "line":
            browse.line = min(int(value or 0), len(browse.lines) - 1)
        else:
            getattr(browse, name)(*([] if value is None else [value]))
        assert browse.whole.start <= browse.window.start < browse.window.end <= browse.whole.end
        assert browse.window.span >= min(LEAST_NS, browse.whole.span)
        assert browse.whole.start <= browse.cursor < browse.whole.end
        assert 0 <= browse.line < len(browse.lines) == len(set(browse.lines))
        assert len({lane for lane, _ in browse.lines}) == len(LANES.lanes)


def test_a_nested_level_takes_a_line_only_where_it_has_some():
    outer, inner = [(start, 90) for start in range(0, 1000, 100)], [(10, 10), (910, 10)]
    lanes = made(sorted([*outer, *inner]), ("host", "python", "thread"))
    browse = Browse(lanes, WIDTH, ROOM)
    both, alone = [(0, -1), (1, 0), (1, 1)], [(0, -1), (1, 0)]
    assert browse.lines == both
    browse.window = browse.whole.part(300, 300)
    browse.arrange()
    assert browse.lines == alone
    browse.window = browse.whole
    browse.arrange()
    browse.line = 2
    browse.window = browse.whole.part(300, 300)
    browse.arrange()
    assert (browse.lines, browse.line) == (both, 2), "the line under the cursor stays"
    browse.line = 0
    browse.arrange()
    browse.go(End(1, 1, 1))
    assert (browse.lines, browse.line, browse.cursor) == (both, 2, 910)


def test_jumps_go_to_the_longest_idle_times():
    browse = Browse(IDLE, 50, 20)
    seen = []
    for _ in range(4):
        assert browse.longest()
        seen.append(browse.cursor)
    assert seen == [450, 210, 100, 450]
    browse.event(1)
    assert browse.longest()
    assert browse.cursor == 450, "the longest again, once the cursor has moved"


def said_at(lanes, *times):
    browse, lines = Browse(lanes, 100, 10), []
    browse.line = len(browse.lines) - 1
    for browse.cursor in times:
        lines += cursor_lines(browse, 100)
    return lines


def test_of_a_long_line_the_names_are_cut_and_not_the_share():
    browse = Browse(IDLE, 50, 20)
    assert browse.longest()
    line = cursor_lines(browse, 36)[-1]
    assert line.plain.endswith(" % of the view busy")
    assert "… · " in line.plain


def test_what_overlaps_is_that_of_the_step_whose_parts_are_shown():
    first, *others = profiles.steps(4)
    rows = [replace(first, collectives_overlapped_seconds=1e-3), *others]
    event = e.StepsMeasured(run="", found_by="modules", steps=rows)
    at = first.start_seconds + first.seconds / 2
    assert step_lines(event, at, first.device, 100)[-1].plain.endswith("collectives overlapped 1.00 ms")


def test_what_is_drawn_and_said():
    late = made([(47_000_000, 1_000_000), (60_000_000, 1_000_000)])
    steps, other = profiles.steps(4), [replace(row, device="gpu:1") for row in profiles.steps(4)]
    cases = {}
    cases["before, and at, a value"] = said_at(COUNTER, 5, 20)
    cases["late"] = [*said_at(late, 47_500_000), ruler(Scale(late.begin, late.end), 80, ruler_time)]
    for name, rows in (("one device", steps), ("two devices", steps + other), ("unlike devices", steps[:3] + other)):
        cases[name] = step_lines(e.StepsMeasured(run="", found_by="modules", steps=rows), -1.0, "", 100)
    texts = {name: [getattr(line, "plain", line).rstrip() for line in lines] for name, lines in cases.items()}
    held_cases("timeline.txt", {name: "".join(f"  {line}\n" for line in lines) for name, lines in texts.items()})
