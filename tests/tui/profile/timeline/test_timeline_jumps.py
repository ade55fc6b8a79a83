"""Jumps of the cursor, the minimap, what the mouse does, and Esc: by state, without a terminal."""

from __future__ import annotations

from jaxprof.analysis.lanes.questions import search
from jaxprof.tui.kit.canvas import AxisWindow
from jaxprof.tui.kit.filter import compiled
from jaxprof.tui.profile.timeline.browse import Browse, Jumps
from jaxprof.tui.profile.timeline.drawing import Minimap
from jaxprof.tui.profile.timeline.view import Drag
from tui import profiles
from tui.profile.timeline.made_lanes import lanes, one_lane

WIDTH = 50
ROW = [(0, 100), (110, 100), (400, 50), (800, 200)]
"""Idle for 10, 190 and 350 of 1000 ns: a column is 20 ns."""


def browsing(whole: str = "") -> tuple[Browse, Jumps]:
    browse = Browse(lanes(whole) if whole else one_lane(ROW), WIDTH, 20)
    return browse, Jumps(browse)


def text(lines: list[list[object]]) -> list[str]:
    return ["".join(piece.text for piece in line) for line in lines]


class TestJumps:
    def test_the_next_idle_stretch_is_one_that_can_be_seen(self) -> None:
        browse, jumps = browsing()
        assert jumps.idle(1)
        assert browse.time == 210, "not the one of 10 ns, which is half a column"
        assert jumps.idle(1)
        assert browse.time == 450
        assert not jumps.idle(1)
        assert browse.time == 450
        browse.zoom(0.2, 0)
        browse.time = 0
        assert jumps.idle(1)
        assert browse.time == 100

    def test_the_longest_then_the_next_longest_until_the_cursor_moves(self) -> None:
        browse, jumps = browsing()
        seen = []
        for _ in range(3):
            assert jumps.longest("idle")
            assert jumps.rank is not None
            seen.append((browse.time, jumps.rank.rank))
        assert seen == [(450, 1), (210, 2), (100, 3)]
        assert jumps.longest("interval")
        assert (browse.time, jumps.rank.rank) == (800, 1)
        browse.step(-1)
        assert jumps.rank is None
        assert jumps.longest("interval")
        assert browse.time == 800

    def test_the_same_kernel_again_to_the_last_and_back(self) -> None:
        browse, jumps = browsing(profiles.timeline(3))
        assert not jumps.again(1), "the cursor is in an idle stretch"
        browse.event(1)
        seen = []
        while jumps.again(1):
            assert jumps.same is not None
            seen.append((browse.time, jumps.same[1]))
        assert seen == [(2_200_000, 1), (4_200_000, 2)]
        assert jumps.again(-1)
        assert browse.time == 2_200_000


class TestMinimap:
    def test_what_is_in_view_is_marked_in_every_height(self) -> None:
        found = one_lane(ROW)
        whole = AxisWindow(0, 1000)
        minimap = Minimap(found, whole, 10)
        assert text(minimap.lines(whole, 1)) == ["██▁ ▅   ██"]
        assert text(minimap.lines(whole, 2))[1] == "┗━━━━━━━━┛"
        assert text(minimap.lines(AxisWindow(300, 600), 2)) == ["██▁ ▅   ██", "┄┄┄┗━┛┄┄┄┄"]
        assert text(minimap.lines(AxisWindow(300, 600), 1)) == ["██▁┗▅┛  ██"]
        assert text(minimap.lines(AxisWindow(310, 312), 2))[1] == "┄┄┄▲┄┄┄┄┄┄"

    def test_matches_are_marked(self) -> None:
        found = one_lane(ROW)
        minimap = Minimap(found, AxisWindow(0, 1000), 10)
        (line,) = minimap.lines(AxisWindow(0, 1000), 1, search(found, compiled("k")))
        assert [(piece.text, piece.style == "hit") for piece in line] == [
            ("██", True), ("▁ ", False), ("▅", True), ("   ", False), ("█", True), ("█", False),
        ]  # fmt: skip
        assert all(piece.style != "hit" for piece in minimap.lines(AxisWindow(0, 1000), 1)[0])


class TestDrag:
    def test_a_drag_over_the_lanes_pans_and_selects_nothing(self) -> None:
        browse, _ = browsing()
        browse.zoom(0.5, 0)
        drag = Drag(browse, "pan", 40)
        drag.to(20)
        drag.release()
        assert browse.window == AxisWindow(200, 700)
        assert browse.range is None

    def test_a_drag_selects_and_the_range_stays_when_the_cursor_goes(self) -> None:
        browse, _ = browsing()
        drag = Drag(browse, "select", 10)
        drag.to(30)
        drag.release()
        assert browse.range == (210, 610)
        browse.edge(1)
        assert browse.range == (210, 610)
        browse.fit()
        assert browse.window.start < 210 < 610 < browse.window.end < 1000
        Drag(browse, "pan", 3).release()
        assert browse.range is None, "a click clears it"

    def test_a_press_on_the_map_moves_the_window_there(self) -> None:
        browse, _ = browsing()
        browse.zoom(0.1, 0)
        drag = Drag(browse, "map", 25)
        assert (browse.window, browse.time) == (AxisWindow(410, 610), 510)
        drag.to(400)
        assert (browse.window, browse.time) == (AxisWindow(800, 1000), 990)
        drag.release()


def test_esc_undoes_one_thing_after_the_other() -> None:
    browse, _ = browsing(profiles.timeline())
    before = list(browse.places)
    browse.line = 0
    browse.open()
    browse.zoom(0.5, 0)
    browse.mark()
    undone = []
    while browse.step_back():
        undone.append((browse.range is None, browse.window == browse.whole, browse.places == before))
    assert undone == [(True, False, False), (True, True, False), (True, True, True)]
