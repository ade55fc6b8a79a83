"""The names of lanes in the gutter."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxprof.analysis.lanes.rows import LaneGroup, lanes_of
from jaxprof.analysis.timeline import read_timeline
from jaxprof.text import columns
from jaxprof.tui.profile.timeline.drawing import lane_names, threads_of
from tui import profiles


class TestNames:
    @staticmethod
    def lanes(*names: tuple[str, str, str]) -> list[LaneGroup]:
        rows = [profiles.lane(device, name, kind, [("a", None, 0, 1)]) for device, name, kind in names]
        return list(lanes_of(read_timeline(profiles.text(rows, []))).lanes)

    def test_pools_of_a_device_and_hosts_are_told_apart(self) -> None:
        lanes = self.lanes(
            ("cpu:0", "tf_XLAEigen/1", "thread"), ("cpu:0", "tf_XLAEigen/2", "thread"),
            ("cpu:0", "tf_XLAPjRtCpuClient/3", "thread"), ("cpu:0", "tf_XLAPjRtCpuClient/4", "thread"),
            ("a/host", "python", "host"), ("b/host", "python", "host"),
        )  # fmt: skip
        found = lane_names(lanes, 20)
        assert len(set(found)) == len(lanes) == 4
        assert {name for name in found if name.endswith("python")} == {"a python", "b python"}
        assert any("Eigen" in name for name in found)

    @given(
        st.lists(
            st.tuples(
                st.sampled_from(["cpu:0", "gpu:0", "gpu:10", "host", "a/host", "b/gpu:0"]),
                st.text(st.sampled_from("abXY#/ 1é漢"), max_size=24),
                st.sampled_from(["stream", "ops", "host"]),
            ),
            min_size=1,
            max_size=9,
            unique=True,
        ),
        st.integers(10, 30),
    )
    def test_lanes_that_differ_have_names_that_differ(self, names: list[tuple[str, str, str]], room: int) -> None:
        lanes = self.lanes(*names)
        found = lane_names(lanes, room)
        shown_names = [name + threads_of(lane) for name, lane in zip(found, lanes, strict=True)]
        assert len(set(found)) == len(lanes)
        assert all(columns(name) <= room for name in shown_names)


@pytest.mark.parametrize(
    ("columns", "wanted"),
    [
        ((3, 7), "╷0 ├───┤╷5 ms   "),
        ((0, 5), "├0───┤  ╷5 ms   "),
        ((-4, 4), "╷0──┤   ╷5 ms   "),
        ((4, 40), "╷0  ├───╷5 ms───"),
        ((5, 5), "╷0   ┼  ╷5 ms   "),
    ],
)
def test_a_range_is_between_brackets_on_the_ruler(columns: tuple[int, int], wanted: str) -> None:
    from jaxprof.tui.profile.timeline.drawing import with_range

    assert with_range("╷0      ╷5 ms   ", *columns) == wanted
