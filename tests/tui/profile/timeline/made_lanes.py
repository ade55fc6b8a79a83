"""Lanes made of intervals."""

from __future__ import annotations

from hypothesis import strategies as st

from jaxprof.analysis.lanes.rows import Lanes, lanes_of
from jaxprof.analysis.timeline import read_timeline
from tui import profiles


def lanes(text: str) -> Lanes:
    return lanes_of(read_timeline(text))


def one_lane(intervals: list[tuple[int, int]], kind: str = "stream") -> Lanes:
    given = [("k", None, start, duration) for start, duration in intervals]
    return lanes(profiles.text([profiles.lane("gpu:0", "Stream #1", kind, given)], []))


spans = st.lists(st.tuples(st.integers(0, 1000), st.integers(1, 200)), min_size=1, max_size=40).map(
    lambda found: sorted(found, key=lambda span: (span[0], -span[1]))
)
