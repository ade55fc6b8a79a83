"""For whose device the others wait, on machines that are busy with other work too."""

import os

import numpy as np
import pytest

from jaxprof.analysis.arrivals import align
from jaxprof.analysis.jobs.job import job_figures
from job_folders import captures, loop, recorded

SEEDS = 15 if os.environ.get("JAXPROF_LONG") else 3


def figures(arrived):
    taken = captures(len(arrived), arrived=arrived, instances=len(arrived[0]), exchange=5e-4)
    return job_figures(recorded(*([*loop(), *each] for each in taken)))


def named(arrived):
    return [finding.index for finding in figures(arrived).findings]


def busy(rng, count):
    """Each process arrives up to some milliseconds late, now this one, now that one."""
    return [np.minimum(rng.exponential(1.5e-3, 150), 6e-3) for _ in range(count)]


@pytest.mark.parametrize("count", [2, 8])
def test_a_slow_device_on_a_busy_machine(count):
    """It computes 1.5 ms longer in steps of 10 ms. Of many processes another one is last most of the time."""
    found = 0
    for seed in range(SEEDS):
        arrived = busy(np.random.default_rng(seed), count)
        arrived[1] = arrived[1] + 1.5e-3
        job = figures(arrived)
        assert {finding.index for finding in job.findings} <= {1}
        found += bool(job.findings)
        assert count < 8 or job.arrivals.last_count[1] < 75
    assert found >= SEEDS - 1


@pytest.mark.parametrize(("count", "share"), [(2, 0.0), (4, 0.0), (2, 0.2), (4, 0.65)])
def test_a_busy_machine_and_a_burst_of_other_work_name_nobody(count, share):
    """One process is 6 ms late for one stretch of the captured time, in which the others wait for it each time."""
    for seed in range(SEEDS):
        rng = np.random.default_rng(seed)
        arrived = busy(rng, count)
        at = rng.integers(0, round(150 * (1 - share)))
        arrived[0][at : at + round(150 * share)] += 6e-3
        assert not named(arrived)


@pytest.mark.parametrize(
    ("late", "who"),
    [
        ((0.0, 0.0, 0.7e-3), [2]),
        ((0.0, 0.0, 0.4e-3), []),  # too small to matter
        ((0.0, 1e-3, 2e-3, 3e-3), []),  # the others differ by as much
    ],
)
def test_by_how_much_a_device_is_slow(late, who):
    rng = np.random.default_rng(0)
    assert named([rng.normal(2e-3, 1e-4, 150) + more for more in late]) == who


def test_captures_of_one_host_fit_by_its_clock_where_all_steps_are_alike():
    """The ends are uncertain by 1 ms, and steps differ by less: their pattern would fit one step later as well."""
    rng = np.random.default_rng(3)
    ends = 0.01 * np.cumsum(1 + 0.02 * rng.standard_normal(120))
    first, other = ends + rng.normal(0, 1e-3, 120), ends[5:] + rng.normal(0, 1e-3, 115)
    assert align(first, other, same_clock=True)[:2] == (-5, pytest.approx(0, abs=5e-4))
    assert align(first, other, same_clock=False) is None


def test_captures_of_one_host_that_share_no_moment_do_not_fit():
    ends = 0.01 * np.arange(1, 101)
    assert align(ends, ends + 20.0, same_clock=True) is None
    assert align(0.001 * np.arange(100), 0.001 * np.arange(100) + 0.5e-3, same_clock=True) is None
