"""Where to go in a row: the next idle stretch, the longest, the same again."""

from __future__ import annotations

from hypothesis import strategies as st

from jaxprof.analysis.lanes.jumps import longest_idle, longest_interval, next_idle
from jaxprof.analysis.lanes.rows import LaneRow, lanes_of
from jaxprof.analysis.lanes.search import same
from jaxprof.analysis.timeline import Timeline, TimelineCounter, TimelineLane, TimelineOp


def pool(*threads: list[tuple[int, int]]) -> LaneRow:
    """The closed lane of some threads, given the starts and lengths of what each ran."""
    lanes = [
        TimelineLane("cpu:0", f"pool/{n}", "thread", [("dot", None)], [0] * len(spans), [one[0] for one in spans],
                     [one[1] for one in spans])
        for n, spans in enumerate(threads)
    ]  # fmt: skip
    return lanes_of(Timeline(None, 0, [], lanes)).lanes[0].summary


ROW = pool([(0, 10), (12, 8), (50, 5), (60, 5)])
"""Idle for 2, 30 and 5."""
thread = st.lists(st.tuples(st.integers(0, 9), st.integers(1, 15)), min_size=1, max_size=8).map(
    lambda steps: [(sum(gap + took for gap, took in steps[:at]) + gap, took) for at, (gap, took) in enumerate(steps)]
)
"""What one thread ran: the time before each, and how long it took."""


def test_the_next_idle_stretch_that_is_long_enough() -> None:
    def begins(time: int, step: int, least: int) -> int | None:
        found = next_idle(ROW, time, step, least)
        return found.begin if found is not None else None

    assert begins(0, 1, 1) == 10
    assert begins(0, 1, 3) == 20
    assert begins(20, 1, 3) == 55
    assert begins(55, 1, 1) is None
    assert begins(55, -1, 1) == 20
    assert begins(20, -1, 3) is None
    assert begins(30, -1, 3) == 20


def test_the_longest_and_the_next_longest_and_round_again() -> None:
    found, seen = None, []
    for _ in range(4):
        found = longest_idle(ROW, found)
        assert found is not None
        seen.append((found.begin, found.end, found.rank, found.of))
    assert seen == [(20, 50, 1, 3), (55, 60, 2, 3), (10, 12, 3, 3), (20, 50, 1, 3)]
    found, order = None, []
    for _ in range(4):
        found = longest_interval(ROW, found)
        assert found is not None
        order.append(found.begin)
    assert order == [0, 12, 50, 60], "of two that are as long the earlier comes first"
    assert longest_idle(pool([(0, 5)])) is None


def test_of_a_counter_the_highest_value() -> None:
    counter = TimelineCounter("gpu:0", "memory", "bytes", [0, 10, 12, 90], [1.0, 5.0, 9.0, 2.0])
    (lane,) = lanes_of(Timeline(None, 0, [], [], [counter])).lanes
    found = longest_interval(lane.summary)
    assert found is not None
    assert found.begin == 12


def test_the_same_kernel_is_of_the_same_op_on_the_same_device() -> None:
    def ops(device: str, kind: str, labels: list[tuple[str, int | None]], at: int) -> TimelineLane:
        starts = [at + 10 * n for n in range(len(labels))]
        return TimelineLane(device, kind, kind, labels, list(range(len(labels))), starts, [5, 7][: len(labels)])

    lanes = lanes_of(
        Timeline(None, 0, [TimelineOp("jit_f", None, name) for name in "ab"], [
            ops("gpu:0", "stream", [("gemm", 0), ("gemm", 1)], 0),
            ops("gpu:0", "ops", [("gemm_2", 0)], 2),
            ops("gpu:1", "stream", [("gemm", 0)], 0),
            ops("host", "host", [("launch", 0)], 0),
        ])
    )  # fmt: skip
    gpu = next(lane for lane in lanes.lanes if (lane.device, lane.kind) == ("gpu:0", "stream"))
    found = same(lanes, gpu, 0)
    assert found.starts.tolist() == [0, 2], "not the other op of that name, the other device, or the launch"
    assert found.median_ns == 5
