"""The totals of a range: busy and idle time of each lane, and what took it. The kind of an interval. Where to go in a
row: the longest idle time, the next longest."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from golden import cases, figures_text, held_cases
from jaxprof.analysis.timeline import KINDS, Timeline, TimelineCounter, TimelineLane, kind_of
from jaxprof.analysis.timeline.lanes import kernels_on, lanes_of, longest_idle, range_totals

SPAN = 60


def lane(device, name, kind, intervals):
    """Intervals of name, start and length."""
    ordered = sorted(intervals, key=lambda one: (one[1], -one[2]))
    names, starts, lengths = zip(*ordered, strict=True)
    labels = list(dict.fromkeys(names))
    return TimelineLane(
        device, name, kind, [(label, None) for label in labels], [*map(labels.index, names)], [*starts], [*lengths]
    )


def made(*rows, counters=None):
    return lanes_of(Timeline(None, 0, [], list(rows), counters or []))


def total(lanes, begin, end):
    *_, found = range_totals(lanes, begin, end)
    return found


spans = st.lists(st.tuples(st.integers(0, SPAN), st.integers(1, 20)), min_size=1, max_size=8)


def nested(given):
    """Those of them that nest, as the calls of one thread do."""
    kept = []
    for start, took in sorted(given, key=lambda span: (span[0], -span[1])):
        if all(start >= low + high or start + took <= low + high for low, high in kept):
            kept.append((start, took))
    return [(f"name {at % 3}", start, took) for at, (start, took) in enumerate(kept)]


@given(spans, st.integers(0, SPAN), st.integers(1, SPAN))
def test_self_times_add_up_to_the_busy_time_that_counting_gives(given, begin, length):
    intervals = nested(given)
    found = total(made(lane("host", "python", "host", intervals)), begin, begin + length)
    busy = sum(any(low <= time < low + took for _, low, took in intervals) for time in range(begin, begin + length))
    assert found.busy_ns == busy
    assert found.idle_ns == length - busy
    assert sum(one.self_ns for one in found.names) == busy
    assert found.busy_share == pytest.approx(busy / length)


@given(spans, st.integers(0, SPAN), st.integers(1, SPAN))
def test_overlapping_intervals_count_once(given, begin, length):
    found = total(
        made(lane("tpu:0", "Async XLA Ops", "async", [("copy", *span) for span in given])), begin, begin + length
    )
    covered = {time for start, took in given for time in range(start, start + took)}
    assert found.busy_ns == len(covered.intersection(range(begin, begin + length)))


THREADS = [lane("cpu:0", f"pool/{n}", "thread", [("dot", 10 * n, 20)]) for n in range(2)]
"""Two threads from 0 to 20 and from 10 to 30; each is idle half of the time."""
OF_TPUS = made(
    lane("tpu:0", "XLA Modules", "modules", [("jit_f", 0, 50)]),
    lane("tpu:0", "XLA Ops", "ops", [("dot", 0, 20), ("add", 20, 10)]),
    lane("tpu:0", "Other Ops", "ops", [("add", 40, 10)]),
    lane("tpu:1", "XLA Ops", "ops", [("dot", 0, 7)]),
    lane("host", "python", "host", [("f", 0, 50)]),
    counters=[TimelineCounter("tpu:0", "memory", "bytes", [0, 10], [1.0, 2.0])],
)


def test_totals_of_lanes_and_kernels():
    """The kernels of a device are counted once, and counters are no lanes."""
    found = range_totals(OF_TPUS, 0, 50)
    devices = ("tpu:0", "tpu:1", "host")
    told = {
        "lanes": figures_text(*found, *range_totals(made(*THREADS), 0, 40)),
        **{f"kernels of {each}": figures_text(*kernels_on(OF_TPUS, each, found)) for each in devices},
    }
    held_cases("totals_of_lanes.txt", told)


def test_kinds_by_lane_and_name():
    words = {case: case.split(" ", 1) for case in cases("kinds_of_intervals.txt")}
    held_cases("kinds_of_intervals.txt", {case: f"  {KINDS[kind_of(*each)]}\n" for case, each in words.items()})


def test_the_kind_in_the_hlo_overrides_a_guess_from_the_name():
    assert KINDS[kind_of("stream", "fusion.1", "fusion.1", {"fusion.1": "GEMM"})] == "matmul, conv"


def pool(*threads):
    """The closed lane of some threads, given the starts and lengths of what each ran."""
    lanes = [
        lane("cpu:0", f"pool/{n}", "thread", [("dot", *span) for span in spans]) for n, spans in enumerate(threads)
    ]
    return made(*lanes).lanes[-1].summary


ROW = pool([(0, 10), (12, 8), (50, 5), (60, 5)])
"""Idle for 2, 30 and 5."""


def test_the_longest_and_the_next_longest_and_round_again():
    idle, seen = None, []
    for _ in range(4):
        idle = longest_idle(ROW, idle)
        seen.append(idle)
    assert seen == [(20, 50), (55, 60), (10, 12), (20, 50)]
    assert longest_idle(pool([(0, 10), (12, 8), (22, 8)]), None)[0] == 10, "of equal ones the earlier"
    assert longest_idle(pool([(0, 5)])) is None
