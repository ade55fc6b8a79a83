"""Steps of several processes in the columns of a screen: which pass is in which column, and what is not known."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import program_events
from jaxprof import events as e
from jaxprof.analysis.jobs.figures import LoopWindows
from jaxprof.analysis.jobs.step_grid import LoopTrace, StepGrid, grid_of_traces, trace_of
from jaxprof.analysis.programs.verdict import PARTS
from jaxprof.session import Session
from jaxprof.session.log.job_folder import read_job
from job_folders import job, loop, step_grid

NAN = np.nan
LOOP = e.SourceLocation("/train.py", 85, "main")
BEGAN = program_events.BEGAN


def taken(
    seconds: Sequence[float], first: int = 0, began: float = BEGAN, counts: Sequence[int] = (), name: str = "step"
) -> e.StepsTaken:
    return e.StepsTaken(
        where=LOOP, found_by="monitoring", first=first, numbered_by=name, began_seconds=began,
        seconds=list(seconds), counts=list(counts),
    )  # fmt: skip


def windows(*of: tuple[float, float, float], own: Sequence[float | None] = (None, None)) -> LoopWindows:
    """Sample windows: begin since the loop began, seconds, and the share of them that goes to data; `own`: the seconds
    by the CPU clock."""
    rows = []
    for (at, took, share), by_clock in zip(of, own, strict=False):
        parts = dict.fromkeys(PARTS, 0.0) | {"data": share * took, "device": (1 - share) * took}
        rows.append((BEGAN + at, took, 100.0, *parts.values(), by_clock, None))
    return LoopWindows.of(rows)


def trace(index: int, passes: Iterable[e.StepsTaken], of: LoopWindows | None = None) -> LoopTrace:
    found = trace_of(index, LOOP, of if of is not None else LoopWindows.of(), list(passes), [])
    assert found is not None
    return found


def grid(*traces: LoopTrace, columns: int = 10, **more: object) -> StepGrid:
    return grid_of_traces(traces, [each.index for each in traces], columns, **more)  # type: ignore[arg-type]


def test_each_step_is_in_its_column_on_all_processes():
    """Numbers come from the program, so that no time has to be the same anywhere."""
    fast, slow = trace(0, [taken([0.1] * 20)]), trace(3, [taken([0.1] * 10 + [0.3] * 10)])
    late = trace(5, [taken([0.5] * 5, first=15, began=9e6)])
    found = grid(fast, slow, late, columns=4, values_of="step")
    assert (found.processes, found.unit, found.numbered_by) == ((0, 3, 5), "step", "step")
    assert (found.first_steps.tolist(), found.steps.tolist()) == ([0, 5, 10, 15], [5, 5, 5, 5])
    assert found.seconds[:2] == pytest.approx(np.array([[0.1] * 4, [0.1, 0.1, 0.3, 0.3]]))
    assert found.seconds[2] == pytest.approx([np.nan, np.nan, np.nan, 0.5], nan_ok=True)
    assert found.ratio[:2, :3] == pytest.approx(np.array([[1, 1, 1 / 3], [1, 1, 3]]))
    alone = grid(fast, late, columns=4, values_of="step")
    assert np.isnan(alone.ratio[:, :3]).all(), "one process alone is not compared"


EPOCHS = [taken([0.1 * (epoch + 1)] * 10, began=BEGAN + 10 * epoch) for epoch in range(3)]


@pytest.mark.parametrize(
    ("passes", "columns", "first_steps", "seconds"),
    [
        # steps that were not seen are unknown, and not zero
        ([taken([0.1] * 5), taken([0.2] * 5, first=15, began=BEGAN + 4)], 4, [0, 5, 10, 15], [0.1, NAN, NAN, 0.2]),
        (EPOCHS, 3, [0, 10, 20], [0.1, 0.2, 0.3]),  # a counter that begins anew goes on
        ([taken([1.0, 2.0], counts=[10, 10])], 4, [0, 5, 10, 15], [0.1, 0.1, 0.2, 0.2]),  # timed together
        ([taken([0.1, 0.2, 0.3], first=7)], 100, [7, 8, 9], [0.1, 0.2, 0.3]),  # no column has less than a step
    ],
)
def test_the_steps_of_one_process(passes, columns, first_steps, seconds):
    found = grid(trace(0, passes), columns=columns, values_of="step")
    assert found.first_steps.tolist() == first_steps
    assert found.seconds[0] == pytest.approx(seconds, nan_ok=True)


def test_own_work_tells_the_late_one_of_those_that_have_the_same_steps():
    """All steps take 0.1 s, because all wait for process 1, which fetches data for 60 % of it from step 100 on."""
    passes = [taken([0.1] * 200)]
    healthy = [trace(index, passes, windows((0, 10, 0.02), (10, 10, 0.02))) for index in (0, 2)]
    late = trace(1, passes, windows((0, 10, 0.02), (10, 10, 0.6)))
    found = grid(healthy[0], late, healthy[1], columns=4)
    assert found.values_of == "own"
    assert found.seconds[1] == pytest.approx([0.002, 0.002, 0.06, 0.06])
    assert found.ratio[1] == pytest.approx([1, 1, 1.58, 1.58])
    assert found.ratio[0] == pytest.approx([1, 1, 1, 1])
    assert found.samples[1] == pytest.approx([50] * 4)
    assert grid(*healthy, late, columns=4, values_of="step").ratio == pytest.approx(np.ones((3, 4)))
    assert grid(*healthy, late, columns=4, values_of="host").seconds == pytest.approx(np.zeros((3, 4)))


def test_own_work_is_that_of_the_clock_where_there_is_one():
    """Samples may miss most of what a process does between two calls; the CPU clock of its main thread does not."""
    passes = [taken([0.1] * 200)]
    both = (0, 10, 0.02), (10, 10, 0.02)
    of_clocks = [windows(*both, own=own) for own in ((None, None), (0.3, 5.0), (None, 5.0))]
    traces = [trace(at, passes, of) for at, of in enumerate((*of_clocks, windows(both[0])))]
    found = grid(*traces, columns=2)
    assert found.seconds[:3] == pytest.approx(np.array([[0.002, 0.002], [0.003, 0.05], [0.002, 0.05]]))
    of_data = grid(*traces, columns=2, values_of="data").seconds
    assert of_data[:3] == pytest.approx(np.full((3, 2), 0.002))
    assert of_data[3] == pytest.approx([0.002, np.nan], nan_ok=True), "without samples it is unknown"


def test_loops_without_numbers_are_seen_by_time():
    steps = [
        e.StepsCounted(where=LOOP, found_by="tracing", count=10, seconds=took, monotonic_seconds=BEGAN + at + took)
        for at, took in ((1.0, 1.0), (11.0, 2.0))
    ]
    of = windows((0, 10, 0.1), (10, 10, 0.5))
    traces = [trace_of(index, LOOP, of, [], steps) for index in range(2)]
    found = grid(*filter(None, traces), columns=2)
    assert found.unit == "time"
    assert found.first_steps == pytest.approx([0, 10])
    assert found.steps == pytest.approx([10, 10])
    assert found.seconds[0] == pytest.approx([0.1, 0.5]), "a second of the loop"
    assert grid(*filter(None, traces), columns=2, values_of="step").seconds[0] == pytest.approx([0.1, 0.2])


def test_a_process_without_numbers_among_others_is_left_out_and_that_is_said():
    other = trace_of(2, LOOP, windows((0, 10, 0.1)), [], [])
    assert other is not None
    found = grid(trace(0, [taken([0.1] * 9)]), trace(1, [taken([0.1] * 9)]), other)
    assert np.isnan(found.seconds[2]).all()
    assert "process 2 cannot be compared" in found.notices[0]
    named = grid(trace(0, [taken([0.1], name="i")]), trace(1, [taken([0.1], name="j")]))
    assert "different variables" in named.notices[0]
    assert not grid(trace(0, [taken([0.1])]), trace(1, [taken([0.1])])).notices


def test_a_job_that_was_not_in_a_loop_has_no_columns(tmp_path):
    found = step_grid(read_job(job(tmp_path, [], []), Session))
    assert found.seconds.shape == found.ratio.shape == (2, 0)


def test_from_the_sessions_of_a_job(tmp_path):
    """The recorder names its loop by the place that its samples have."""
    of = [
        program_events.passes(0, [0.01] * 2000, began_seconds=BEGAN),
        program_events.passes(0, [1e-5] * 9, 60, began_seconds=BEGAN),
    ]
    recorded = read_job(job(tmp_path, [*loop(), *of], [*loop(data=0.3), *of], [*loop(), *of]), Session)
    found = step_grid(recorded, columns=20)
    assert found.first_steps[-1] == 1900
    assert found.seconds[1] == pytest.approx([0.003] * 20)
    assert found.ratio[1] == pytest.approx([1.28] * 20)
    assert step_grid(recorded, 20, values_of="step").seconds == pytest.approx(np.full((3, 20), 0.01))
    with pytest.raises(KeyError):
        step_grid(recorded, values_of="network")


entries = st.lists(st.tuples(st.floats(0, 10), st.integers(1, 50)), min_size=1, max_size=30)


@given(
    st.lists(st.tuples(st.integers(-100, 1000), st.floats(0, 1e4), entries), min_size=1, max_size=4),
    st.integers(1, 60),
)
def test_columns_lose_no_second(events, columns):
    """Steps times seconds a step, over all columns, is what was recorded, whatever the events are."""
    passes = [
        taken([took for took, _ in each], first, began, [count for _, count in each]) for first, began, each in events
    ]
    one = trace(0, passes)
    found = grid(one, columns=columns, values_of="step")
    numbers = np.concatenate(
        [begin + np.arange(count) for begin, count in zip(one.passes.begins, one.counts, strict=True)]
    )
    in_column = np.searchsorted(found.first_steps, numbers, side="right") - 1
    covered = np.bincount(in_column, minlength=len(found.steps))
    assert np.nansum(found.seconds[0] * covered) == pytest.approx(sum(sum(each.seconds) for each in passes))
    assert covered.sum() == pytest.approx(sum(each.count for each in passes))


def test_only_the_steps_that_are_looked_at():
    growing = [taken([0.01 * number for number in range(100)])]
    found = grid(trace(0, growing), columns=5, first=10, last=14, values_of="step")
    assert found.first_steps.tolist() == [10, 11, 12, 13, 14]
    assert found.seconds[0] == pytest.approx([0.10, 0.11, 0.12, 0.13, 0.14])
    assert grid(trace(0, growing), first=500, last=600).seconds.shape == (1, 0)
