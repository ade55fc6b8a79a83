"""Looking through the lanes of a timeline: the cursor stays in view, whatever is pressed. No screen is needed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxprof.results.timeline import read_timeline
from jaxprof.tui.timeline.browse import LEAST_NS, Browse, Place, extent
from jaxprof.tui.timeline.lanes import lanes_of
from tui import profiles

LANES = lanes_of(read_timeline(profiles.timeline()))
WIDTH, ROOM = 60, 40

steps = st.sampled_from([-1, 1])
presses = st.one_of(
    st.tuples(st.sampled_from(["pan", "step", "event", "edge", "move"]), steps),
    st.tuples(st.just("zoom"), st.sampled_from([0.1, 0.5, 2.0, 9.0])),
    st.tuples(st.sampled_from(["open", "fit", "show_whole"]), st.none()),
    st.tuples(st.just("resize"), st.integers(1, 12)),
)


def press(browse: Browse, name: str, value: float | int | None) -> None:
    if name == "zoom":
        assert value is not None
        browse.zoom(value, browse.time)
    elif name == "resize":
        browse.resize(WIDTH, int(value or 1))
    else:
        getattr(browse, name)(*([] if value is None else [value]))
    browse.bring_into_view()


@given(st.lists(presses, max_size=30))
def test_whatever_is_pressed_the_cursor_is_in_view(keys: list[tuple[str, float | int | None]]) -> None:
    browse, room = Browse(LANES, WIDTH, ROOM), ROOM
    for name, value in keys:
        press(browse, name, value)
        room = int(value or 1) if name == "resize" else room
        assert browse.whole.start <= browse.window.start < browse.window.end <= browse.whole.end
        assert browse.window.span >= min(LEAST_NS, browse.whole.span)
        assert browse.whole.start <= browse.time < browse.whole.end
        assert 0 <= browse.top <= browse.line < min(browse.top + room, len(browse.places))
        assert {place.lane for place in browse.places} == set(range(len(LANES.lanes)))


def test_the_cursor_begins_on_the_first_lane_of_a_device() -> None:
    browse = Browse(LANES, WIDTH, ROOM)
    assert browse.under_cursor is not None
    lane, _, _ = browse.under_cursor
    assert lane.title == "Stream #1(Compute)"
    assert browse.window == browse.whole


def test_as_many_lanes_are_open_as_there_is_room_for_until_one_is_opened_by_hand() -> None:
    browse = Browse(LANES, WIDTH, len(LANES.lanes))
    assert all(place.row == -1 for place in browse.places)
    browse.resize(WIDTH, ROOM)
    assert len(browse.places) == sum(len(lane.rows) if lane.opens else 1 for lane in LANES.lanes)
    browse.go(Place(0, 0), 0)
    browse.open()
    assert browse.places[0] == Place(0, -1)
    browse.resize(WIDTH, ROOM + 1)
    assert browse.places[0] == Place(0, -1)


def test_going_to_a_row_opens_its_lane() -> None:
    browse = Browse(LANES, WIDTH, len(LANES.lanes))
    row = LANES.lanes[0].rows[2]
    browse.go(Place(0, 2), int(row.starts[0]))
    assert browse.under_cursor == (LANES.lanes[0], row, 0)


@pytest.mark.parametrize("step", [-1, 1])
def test_fitting_shows_the_interval_under_the_cursor_and_a_little_around_it(step: int) -> None:
    browse = Browse(LANES, WIDTH, ROOM)
    browse.edge(-step)
    browse.event(step)
    assert browse.under_cursor is not None
    begin, end = extent(browse.under_cursor[1], browse.time, browse.whole)
    browse.fit()
    assert browse.window.start <= begin < end <= browse.window.end
    assert browse.window.span <= max(LEAST_NS, 2 * (end - begin))
