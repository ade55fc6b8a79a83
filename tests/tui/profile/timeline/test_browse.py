"""The state of a timeline in view: window, cursor, hidden and pinned lanes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxprof.analysis.lanes.rows import lanes_of
from jaxprof.analysis.timeline import read_timeline
from jaxprof.tui.profile.timeline.browse import LEAST_NS, AxisWindow, Browse, extent
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


@given(st.integers(0, 999), st.floats(0.1, 10), st.integers(0, 999))
def test_zooming_stays_inside_and_keeps_the_place(start: int, factor: float, around: int) -> None:
    whole = AxisWindow(0, 2000)
    window = AxisWindow(start, start + 1000)
    around = window.start + around
    found = window.zoomed(factor, around, whole, 50)
    assert whole.start <= found.start < found.end <= whole.end
    assert found.span >= 50
    assert found.start <= around <= found.end
    assert found.moved(10_000, whole).end == whole.end


class TestHidingAndPinning:
    LANES = lanes_of(read_timeline(profiles.timeline()))

    def test_a_pinned_lane_is_above_the_others_and_stays_in_view(self) -> None:
        browse = Browse(self.LANES, 60, 3)
        browse.line = next(n for n, place in enumerate(browse.places) if self.LANES.lanes[place.lane].on_device)
        lane = browse.places[browse.line].lane
        browse.pin()
        assert (browse.places[0].lane, browse.pinned, browse.is_pinned(lane)) == (lane, 1, True)
        for _ in range(9):
            browse.move(1)
            browse.bring_into_view()
            assert browse.shown_at(0) == 0
            assert browse.shown_at(browse.line) is not None
        browse.line = 0
        browse.pin()
        assert browse.pinned == 0

    def test_hidden_lanes_are_counted_come_back_and_the_last_one_stays(self) -> None:
        browse = Browse(self.LANES, 60, 20)
        for _ in range(20):
            browse.hide()
        assert {place.lane for place in browse.places} != set()
        assert browse.hidden == len(self.LANES.lanes) - 1
        browse.show_all()
        assert browse.hidden == 0
        assert {place.lane for place in browse.places} == set(range(len(self.LANES.lanes)))

    @given(
        st.lists(
            st.sampled_from(["pin", "hide", "show_all", "open", "down", "up", "mark", "small", "large"]), max_size=25
        )
    )
    def test_whatever_is_pressed_every_line_is_shown_once(self, keys: list[str]) -> None:
        browse, room = Browse(self.LANES, 60, 8), 8
        for key in keys:
            if key in ("small", "large"):
                room = 2 if key == "small" else 9
                browse.resize(60, room)
            elif key in ("down", "up"):
                browse.move(1 if key == "down" else -1)
            else:
                getattr(browse, key)()
            browse.bring_into_view()
            lines = [line for y in range(room) if (line := browse.line_at(y)) is not None]
            assert len(lines) == len(set(lines)) == min(room, len(browse.places))
            assert browse.line in lines
            assert [browse.shown_at(line) for line in lines] == list(range(len(lines)))
