"""Finding intervals: by name, and the other end of a launch."""

from __future__ import annotations

import numpy as np

from jaxprof.analysis.lanes.questions import End, Links, search
from jaxprof.analysis.lanes.rows import Lanes, lanes_of
from jaxprof.analysis.timeline import Timeline, TimelineLane
from jaxprof.tui.kit.filter import compiled
from jaxprof.tui.profile.timeline.browse import Browse
from tui import profiles
from tui.profile.timeline.made_lanes import lanes


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


def joined_lanes(kernels: list[int], launches: list[int]) -> Lanes:
    """A launch each 10 ns, a kernel 100 ns later; the correlation of each."""

    def lane(device: str, kind: str, joins: list[int], shift: int) -> TimelineLane:
        count = len(joins)
        return TimelineLane(
            device, kind, kind, [("x", None)], [0] * count, [shift + 10 * n for n in range(count)], [5] * count,
            correlations=joins,
        )  # fmt: skip

    lanes = [lane("gpu:0", "stream", kernels, 100), lane("host", "host", launches, 0)]
    return lanes_of(Timeline(None, 0, [], lanes))


class TestLaunches:
    def test_from_a_launch_to_its_kernel_and_back(self) -> None:
        lanes = joined_lanes([7, 8, -1], [8, -1, 7])
        links = Links.of(lanes)
        assert links.other_end(lanes, End(0, 0, 0)) == End(1, 0, 1)
        assert links.other_end(lanes, End(1, 0, 0)) == End(0, 0, 2)
        assert links.other_end(lanes, End(1, 0, 2)) is None
        assert links.other_end(lanes, End(0, 0, 1)) is None

    def test_the_cursor_follows(self) -> None:
        browse = Browse(joined_lanes([4], [4]), 60, 10)
        assert (browse.lanes.lanes[browse.places[browse.line].lane].device, browse.time) == ("gpu:0", 0)
        browse.event(1)
        browse.follow()
        assert (browse.lanes.lanes[browse.places[browse.line].lane].device, browse.time) == ("host", 0)
        browse.follow()
        assert browse.time == 100
