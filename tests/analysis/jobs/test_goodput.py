"""What the wall time of a job went to: each cause where it is, and not where it is not."""

import pytest

import program_events as made
from jaxprof.analysis.jobs.figures import CAUSES
from jaxprof.analysis.jobs.job import job_figures
from jaxprof.report.hosts import CAUSE_WORDS
from job_folders import loop, recorded, stderr


def of(*loops, **last):
    """Of a job whose last process ended as `last` says."""
    found = job_figures(recorded(*loops, options={len(loops) - 1: last})).goodput
    assert set(found.causes) == set(CAUSES) == set(CAUSE_WORDS)
    assert sum(found.causes.values()) == pytest.approx(found.seconds)
    assert sum(found.shares.values()) == pytest.approx(1.0)
    return found


def beside(state, share, *more):
    """A loop, and for a share of each second something else."""
    line = made.line(88, 1 - share, "device_busy", "step")
    states = {"device_busy": 1 - share, state: share}
    return [*made.steady(20, states, [line]), made.compiled("step"), *more]


CLEAN, DATA, HOST = loop(data=0.0), loop(data=0.3), loop(data=0.0, host=0.3)
AGAIN = made.compiled("step", "shape", compile_seconds=1.0, trace_seconds=None, lower_seconds=None)
FAILED = [*CLEAN, *stderr("Traceback (most recent call last):", "ValueError: no", seconds=6.0)]


@pytest.mark.parametrize(
    ("loops", "causes"),
    [
        ([CLEAN, CLEAN], {"useful": 40}),
        ([CLEAN, DATA, CLEAN, CLEAN], {"data": 6, "waiting": 18, "useful": 56}),
        ([CLEAN, HOST, CLEAN, CLEAN], {"host": 6, "waiting": 18, "useful": 56}),
        ([DATA, DATA], {"data": 12, "useful": 28}),
        ([CLEAN, loop(10, data=0.0)], {"not_seen": 10, "useful": 30}),  # not in step
        ([beside("import", 0.4)] * 2, {"start": 16, "useful": 24}),
        ([beside("stopped", 0.4)] * 2, {"stopped": 16, "useful": 24}),
        ([beside("waiting", 0.4)] * 2, {"outside_loop": 16, "useful": 24}),
        ([beside("compile", 0.1)] * 2, {"first_compile": 4, "useful": 36}),
        ([beside("compile", 0.1, AGAIN), beside("compile", 0.1)], {"first_compile": 3, "recompile": 1, "useful": 36}),
    ],
)
def test_what_the_seconds_of_a_job_are(loops, causes):
    """What one process does alone, the others wait for, where they are in step."""
    found = of(*loops)
    assert {cause: took for cause, took in found.causes.items() if took > 1e-6} == pytest.approx(causes)


def test_what_comes_after_a_failure_is_not_useful():
    """It raises in its sixth second; both processes hang in the collective for fourteen more."""
    found = of(CLEAN, FAILED, exit_code=1)
    assert found.causes["after_failure"] == pytest.approx(28.0, abs=2.0)
    assert found.causes["useful"] == pytest.approx(12.0, abs=2.0)


def test_a_job_without_a_loop_has_none():
    assert job_figures(recorded([made.compiled()])).goodput is None
