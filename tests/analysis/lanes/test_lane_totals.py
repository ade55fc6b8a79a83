"""The totals of a range: busy and idle time of each lane, and what took it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxprof.analysis.lanes.rows import Lanes, lanes_of
from jaxprof.analysis.lanes.totals import LaneTotals, device_totals, range_totals
from jaxprof.analysis.timeline import Timeline, TimelineCounter, TimelineLane

SPAN = 60
Interval = tuple[str, int, int]


def lane(device: str, name: str, kind: str, intervals: list[Interval]) -> TimelineLane:
    """Intervals of name, start and length."""
    ordered = sorted(intervals, key=lambda one: (one[1], -one[2]))
    labels: list[tuple[str, int | None]] = [(label, None) for label in dict.fromkeys(one[0] for one in ordered)]
    return TimelineLane(
        device, name, kind, labels, [labels.index((one[0], None)) for one in ordered],
        [one[1] for one in ordered], [one[2] for one in ordered],
    )  # fmt: skip


def made(*rows: TimelineLane, counters: list[TimelineCounter] | None = None) -> Lanes:
    return lanes_of(Timeline(None, 0, [], list(rows), counters or []))


def total(lanes: Lanes, begin: int, end: int) -> LaneTotals:
    (found,) = range_totals(lanes, begin, end).lanes
    return found


spans = st.lists(st.tuples(st.integers(0, SPAN), st.integers(1, 20)), min_size=1, max_size=8)


def nested(given: list[tuple[int, int]]) -> list[Interval]:
    """Those of them that nest, as the calls of one thread do."""
    kept: list[tuple[int, int]] = []
    for start, took in sorted(given, key=lambda span: (span[0], -span[1])):
        if all(start >= low + high or start + took <= low + high for low, high in kept):
            kept.append((start, took))
    return [(f"name {at % 3}", start, took) for at, (start, took) in enumerate(kept)]


@given(spans, st.integers(0, SPAN), st.integers(1, SPAN))
def test_self_times_add_up_to_the_busy_time_that_counting_gives(
    given: list[tuple[int, int]], begin: int, length: int
) -> None:
    intervals = nested(given)
    found = total(made(lane("host", "python", "host", intervals)), begin, begin + length)
    busy = sum(any(low <= time < low + took for _, low, took in intervals) for time in range(begin, begin + length))
    assert found.busy_ns == busy
    assert found.idle_ns == length - busy
    assert sum(one.self_ns for one in found.names) == busy
    assert found.busy_share == pytest.approx(busy / length)


@given(spans, st.integers(0, SPAN), st.integers(1, SPAN))
def test_intervals_that_overlap_without_nesting_are_busy_time_once(
    given: list[tuple[int, int]], begin: int, length: int
) -> None:
    intervals = [("copy", start, took) for start, took in given]
    covered = np.zeros(SPAN * 3, np.bool_)
    for _, start, took in intervals:
        covered[start : start + took] = True
    found = total(made(lane("tpu:0", "Async XLA Ops", "async", intervals)), begin, begin + length)
    assert found.busy_ns == covered[begin : begin + length].sum()


def test_several_threads() -> None:
    lanes = made(*(lane("cpu:0", f"pool/{n}", "thread", [("dot", 10 * n, 20)]) for n in range(2)))
    found = total(lanes, 0, 40)
    assert (found.threads, found.busy_ns, found.idle_ns, found.count, found.busy_share) == (2, 40, 40, 2, 0.5)
    assert [(one.name, one.count, one.self_ns) for one in found.names] == [("dot", 2, 40)]


def test_a_device_is_idle_where_none_of_its_threads_works() -> None:
    """Two threads from 0 to 20 and from 10 to 30; each is idle half of the time, the device a quarter of it."""
    threads = [lane("cpu:0", f"pool/{n}", "thread", [("dot", 10 * n, 20)]) for n in range(2)]
    (device,) = device_totals(made(*threads, lane("host", "python", "host", [("f", 0, 40)])), 0, 40)
    assert (device.device, device.busy_ns, device.idle_ns, device.busy_share) == ("cpu:0", 30, 10, 0.75)
    (device,) = device_totals(made(replace(threads[0], left_out=1), threads[1]), 0, 40)
    assert (device.busy_ns, device.idle_ns, device.busy_share) == (None, None, None)


def test_the_kernels_of_a_device_are_counted_once_and_counters_are_no_lanes() -> None:
    lanes = made(
        lane("tpu:0", "XLA Modules", "modules", [("jit_f", 0, 50)]),
        lane("tpu:0", "XLA Ops", "ops", [("dot", 0, 20), ("add", 20, 10)]),
        lane("tpu:0", "Other Ops", "ops", [("add", 40, 10)]),
        lane("tpu:1", "XLA Ops", "ops", [("dot", 0, 7)]),
        lane("host", "python", "host", [("f", 0, 50)]),
        counters=[TimelineCounter("tpu:0", "memory", "bytes", [0, 10], [1.0, 2.0])],
    )
    found = range_totals(lanes, 0, 50)
    assert len(found.lanes) == 5
    kernels = [(one.name, one.count, one.self_ns) for one in found.kernels(lanes, "tpu:0")]
    assert kernels == [("add", 2, 20), ("dot", 1, 20)]
    assert [one.name for one in found.kernels(lanes, "tpu:1")] == ["dot"]
    assert found.kernels(lanes, "host") == ()
