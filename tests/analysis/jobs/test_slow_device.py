"""For whose device the others wait, on machines that are busy with other work too."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jaxprof.analysis.arrivals import align
from jaxprof.analysis.jobs.job import JobFigures, job_figures
from jaxprof.session import Session
from jaxprof.session.log.job_folder import read_job
from job_folders import captures, job, loop

SEEDS = 15 if os.environ.get("JAXPROF_LONG") else 3
Arrived = list[np.ndarray[Any, Any]]


def figures(folder: Path, arrived: Arrived) -> JobFigures:
    taken = captures(len(arrived), arrived=arrived, instances=len(arrived[0]), exchange=5e-4)
    return job_figures(read_job(job(folder, *([*loop(), *each] for each in taken)), Session))


def named(folder: Path, arrived: Arrived) -> list[tuple[str, int]]:
    return [(finding.code, finding.index) for finding in figures(folder, arrived).findings]


def busy(rng: np.random.Generator, count: int) -> Arrived:
    """Each process arrives up to some milliseconds late, now this one, now that one."""
    return [np.minimum(rng.exponential(1.5e-3, 150), 6e-3) for _ in range(count)]


@pytest.mark.parametrize("count", [2, 8])
def test_a_slow_device_on_a_busy_machine(tmp_path, count):
    """It computes 1.5 ms longer in steps of 10 ms. Of many processes another one is last most of the time."""
    found = 0
    for seed in range(SEEDS):
        arrived = busy(np.random.default_rng(seed), count)
        arrived[1] = arrived[1] + 1.5e-3
        job = figures(tmp_path / str(seed), arrived)
        assert {finding.index for finding in job.findings} <= {1}
        found += bool(job.findings)
        assert count < 8 or job.arrivals.last_count[1] < 75
    assert found >= SEEDS - 1


@pytest.mark.parametrize(("count", "share"), [(2, 0.0), (4, 0.0), (2, 0.2), (4, 0.65)])
def test_a_busy_machine_and_a_burst_of_other_work_name_nobody(tmp_path, count, share):
    """One process is 6 ms late for one stretch of the captured time, in which the others wait for it each time."""
    for seed in range(SEEDS):
        rng = np.random.default_rng(seed)
        arrived = busy(rng, count)
        at = rng.integers(0, round(150 * (1 - share)))
        arrived[0][at : at + round(150 * share)] += 6e-3
        assert not named(tmp_path / str(seed), arrived)


def test_one_that_the_others_differ_by_as_much_as(tmp_path):
    rng = np.random.default_rng(0)
    assert not named(tmp_path, [rng.normal(2e-3, 1e-4, 150) + late for late in (0.0, 1e-3, 2e-3, 3e-3)])


def test_a_difference_too_small_to_matter(tmp_path):
    rng = np.random.default_rng(0)
    arrived = [rng.normal(1e-3, 1e-4, 150) + late for late in (0.0, 0.0, 0.4e-3)]
    assert not named(tmp_path / "small", arrived)
    arrived[2] += 0.3e-3
    assert named(tmp_path / "more", arrived) == [("slow-device", 2)]


def test_captures_of_one_host_fit_by_its_clock_where_all_steps_are_alike():
    """The ends are uncertain by 1 ms, and steps differ by less: their pattern would fit one step later as well."""
    rng = np.random.default_rng(3)
    ends = 0.01 * np.cumsum(1 + 0.02 * rng.standard_normal(120))
    first, other = ends + rng.normal(0, 1e-3, 120), ends[5:] + rng.normal(0, 1e-3, 115)
    fit = align(first, other, same_clock=True)
    assert fit[0] == -5
    assert abs(fit[1]) < 5e-4
    assert align(first, other, same_clock=False) is None


def test_captures_of_one_host_that_share_no_moment_do_not_fit():
    ends = 0.01 * np.arange(1, 101)
    assert align(ends, ends + 20.0, same_clock=True) is None
    assert align(0.001 * np.arange(100), 0.001 * np.arange(100) + 0.5e-3, same_clock=True) is None
