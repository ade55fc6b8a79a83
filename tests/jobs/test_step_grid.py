"""Steps of several processes in the columns of a screen: which iteration is in which column; what stands out, and what
is not known."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import program_events
from golden import figures_text, held_cases
from jaxprof import events as e
from jaxprof.analysis.programs import PARTS
from jaxprof.jobs.figures import LoopWindows
from jaxprof.jobs.job import JobFiles, JobSteps
from jaxprof.jobs.step_grid import StepGrid, trace_of
from job_folders import loop, recorded, step_grid
from program_events import BEGAN, iterations

LOOP = program_events.at(85)


def taken(seconds, first=0, began=BEGAN, **more):
    return iterations(first, list(seconds), began_seconds=began, **more)


def windows(*shares, own=(None, None)):
    """Sample windows of ten seconds each, and the share of each that goes to data; `own`: seconds by the CPU clock."""
    rows = []
    for at, (share, by_clock) in enumerate(zip(shares, own, strict=False)):
        parts = dict.fromkeys(PARTS, 0.0) | {"data": 10 * share, "device": 10 * (1 - share)}
        rows.append((BEGAN + 10 * at, 10.0, 100.0, *parts.values(), by_clock, None))
    return LoopWindows.of(rows)


def trace(index, iterations, of=None):
    found = trace_of(LOOP, LoopWindows.of() if of is None else of, list(iterations), [])
    assert found is not None
    return index, found


def grid(*traces, columns=10, **more):
    files = JobFiles(Path(), {index: Path() for index, _ in traces}, traces=dict(traces))
    return JobSteps(files).grid(columns, **more)


FAST, SLOW = trace(0, [taken([0.1] * 20)]), trace(3, [taken([0.1] * 10 + [0.3] * 10)])
LATE = trace(5, [taken([0.5] * 5, first=15, began=9e6)])
EPOCHS = [taken([0.1 * (epoch + 1)] * 10, began=BEGAN + 10 * epoch) for epoch in range(3)]
TENS = [taken([1.0, 2.0], counts=[10, 10])]
GAP = [taken([0.1] * 5), taken([0.2] * 5, first=15)]
ONE = {
    "steps that were not seen are unknown, and not zero": (GAP, {"columns": 4}),
    "a counter that begins anew goes on": (EPOCHS, {"columns": 3}),
    "steps that were timed together": (TENS, {"columns": 4}),
    "no column has less than a step": ([taken([0.1, 0.2, 0.3], first=7)], {"columns": 100}),
}
ALIKE = [taken([0.1] * 200)]
"""All steps take 0.1 s, because all wait for the process that fetches data from step 100 on."""
THREE = [trace(at, ALIKE, windows(0.02, share)) for at, share in enumerate((0.02, 0.6, 0.02))]
CLOCKED = [windows(0.02, 0.02, own=own) for own in ((None, None), (0.3, 5.0), (None, 5.0))]
"""Samples may miss most of what a process does between two calls; the CPU clock of its main thread does not."""
CLOCKS = [trace(at, ALIKE, of) for at, of in enumerate((*CLOCKED, windows(0.02)))]
COUNTED = [
    e.StepsCounted(where=LOOP, count=10, seconds=took, monotonic_seconds=BEGAN + at + took)
    for at, took in ((1.0, 1.0), (11.0, 2.0))
]
BY_TIME = [(index, trace_of(LOOP, windows(0.1, 0.5), [], COUNTED)) for index in range(2)]
GRIDS = {
    "numbers come from the program, so that no time has to be the same": grid(
        FAST, SLOW, LATE, columns=4, values_of="step"
    ),
    "one process alone is not compared": grid(FAST, LATE, columns=4, values_of="step"),
    **{case: grid(trace(0, iterations), values_of="step", **asked) for case, (iterations, asked) in ONE.items()},
    "own work tells the late one of those that have the same steps": grid(*THREE, columns=4),
    "their steps": grid(*THREE, columns=4, values_of="step"),
    "what they have none of": grid(*THREE, columns=4, values_of="host"),
    "own work by the clock where there is one": grid(*CLOCKS, columns=2),
    "data by samples, unknown without": grid(*CLOCKS, columns=2, values_of="data"),
    "loops without numbers are seen by time": grid(*BY_TIME, columns=2),
    "their steps by time": grid(*BY_TIME, columns=2, values_of="step"),
    "a process without numbers among others": grid(FAST, SLOW, trace(6, [], windows(0.1)), columns=2),
    "steps numbered by different variables": grid(
        trace(0, [taken([0.1], name="i")]), trace(1, [taken([0.1], name="j")])
    ),
    "steps that are counted from the first one seen": grid(*(trace(at, [taken([0.1], name="")]) for at in range(2))),
    "a counter that was restored": grid(*(trace(at, [taken([0.1] * 9, first=90 * at)]) for at in range(3)), columns=2),
}


def test_what_is_in_the_columns_and_what_is_not_known():
    def told(found):
        columns = ("seconds", "ratio", "samples")
        rows = zip(found.processes, *(getattr(found, name) for name in columns), strict=True)
        lines = [dict(zip(("process", *columns), row, strict=True)) for row in rows]
        return figures_text(found, *lines, without=(*columns, "processes", "step_seconds"))

    held_cases("step_grids.txt", {case: told(found) for case, found in GRIDS.items()})


def test_from_the_sessions_of_a_job():
    """The recorder names its loop by the place that its samples have."""
    of = [iterations(0, [0.01] * 2000, began_seconds=BEGAN), iterations(0, [1e-5] * 9, 60, began_seconds=BEGAN)]
    job = recorded([*loop(), *of], [*loop(data=0.3), *of])
    found = step_grid(job, columns=20)
    assert found.first_steps[-1] == 1900
    assert found.seconds[1] == pytest.approx([0.003] * 20)
    with pytest.raises(KeyError):
        step_grid(job, values_of="network")
    nothing = step_grid(recorded([], []))
    assert nothing.seconds.shape == nothing.ratio.shape == (2, 0)


entries = st.lists(st.tuples(st.floats(0, 10), st.integers(1, 50)), min_size=1, max_size=30)


@given(
    st.lists(st.tuples(st.integers(-100, 1000), st.floats(0, 1e4), entries), min_size=1, max_size=4), st.integers(1, 60)
)
def test_columns_lose_no_second(events, columns):
    """Steps times seconds a step, over all columns, is what was recorded, whatever the events are."""
    iterations = []
    for first, began, each in events:
        seconds, counts = zip(*each, strict=True)
        iterations.append(taken(seconds, first, began, counts=list(counts)))
    _, one = of = trace(0, iterations)
    found = grid(of, columns=columns, values_of="step")
    numbers = [begin + np.arange(count) for begin, count in zip(one.iterations[:, 0], one.counts, strict=True)]
    in_column = np.searchsorted(found.first_steps, np.concatenate(numbers), side="right") - 1
    covered = np.bincount(in_column, minlength=len(found.steps))
    assert np.nansum(found.seconds[0] * covered) == pytest.approx(sum(sum(each.seconds) for each in iterations))


NAN = float("nan")


def seen(seconds, samples=NAN):
    """Four columns of ten steps each, unless `seconds` has others."""
    values = np.array(seconds)
    seen_samples, ratio = np.where(np.isnan(values), 0.0, samples), np.ones(values.shape)
    tens = np.full(values.shape[1], 10)
    return StepGrid(tuple(range(len(values))), np.cumsum(tens) - 10, tens, values, seen_samples, ratio, "step", "own")


BESIDE = [[0.02] * 4, [0.02] * 4]
CASES = {
    "levels are those of the ratio": ([[0.0] * 7, [0.0] * 7, [-0.5, 0.04, 0.06, 0.12, 0.3, 0.6, 1.5]], NAN),
    "few samples, which may show it by chance": ([*BESIDE, [0.3] * 4], 5),
    "many samples": ([*BESIDE, [0.3] * 4], 100),
    "one that has less to do makes no other late": ([[0.5] * 4, [0.5] * 4, [0.0] * 4], 5),
    "the unknown is a level of its own, and one process alone is not compared": (
        [[0.1, NAN], [0.1, NAN], [0.1, 0.9]],
        NAN,
    ),
    "above the others it loses the difference": ([*BESIDE, [0.02, 0.02, 0.42, 0.42]], 100),
    "above the others by whole steps": ([*BESIDE, [0.02, 0.02, 0.42, 0.42]], NAN),
    "of two each is compared with the other, not with their common median": ([[0.02, NAN], [0.42, 0.42]], 100),
}


def test_what_stands_out_and_what_it_loses():
    told = {}
    for case, shown in CASES.items():
        found = seen(*shown)
        told[case] = figures_text({"lost": found.lost_seconds, "levels": found.levels, "ratio": found.ratio})
    held_cases("outliers_of_grids.txt", told)


@pytest.mark.parametrize("count", [4, 64])
def test_nobody_loses_time_where_all_are_alike(count):
    """Twenty jobs of samples of one share, which differ by chance alone."""
    jobs = [np.random.default_rng(seed).binomial(50, 0.1, (count, 60)) / 50 for seed in range(20)]
    assert sum(len(seen(shares, 50).lost_seconds) for shares in jobs) <= 1
    jobs[1][3] += 0.05
    assert list(seen(jobs[1], 50).lost_seconds) == [3], "a small difference over many columns"
    assert not seen([[0.1] * 60, [0.11] * 60], 50).lost_seconds, "of two that may be chance"
