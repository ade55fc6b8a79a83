"""The figures of one process of a job, and what the wall time of a job went to: each cause where it is, and not where
it is not."""

import pickle

import pytest

import program_events as made
from folding import fold
from golden import figures_text, held, held_cases
from jaxprof.analysis.programs import PARTS
from jaxprof.facts.jobs import CAUSE_WORDS
from jaxprof.jobs.figures import CAUSES, process_figures
from job_folders import job_figures, loop, recorded, stderr


def test_the_windows_of_the_loop_add_up_to_it():
    again = [
        made.compiled("metric", reason, began_seconds=made.BEGAN + at, compile_seconds=0.37)
        for at, reason in ((1.0, "first"), (6.8, "shape"))
    ]
    lines = [
        made.line(86, 0.1, "data", "next()"),
        made.line(88, 0.5, "device_busy", "step"),
        made.line(88, 0.4, "compile", "metric"),
    ]
    states = {"data": 0.1, "device_busy": 0.5, "compile": 0.4}
    outside = [made.line(3, 1.0, "host_busy", loop=None)]
    before = made.sampled(30, 1.0, {"host_busy": 1.0}, outside)
    windows = [made.sampled(at, 1.0, states, lines) for at in (6, 7, 8)]
    (figures,) = recorded([*loop(6), *windows, *again, before]).figures.values()
    for part in PARTS:
        assert figures.windows.part(part).sum() == pytest.approx(figures.loop.parts[part]), part
    # the compilation of 0.4 s at 6.8 s lies in two windows; the third has the rest of its time in first ones
    held("windows_of_a_loop.txt", figures_text(figures.windows))
    assert pickle.loads(pickle.dumps(figures)) == figures, "it goes to another process"


def test_a_session_without_a_program():
    session = fold(made.HEADER, [])
    figures = process_figures(0, "process-00000.jaxprof", session)
    assert figures.status == "unknown"
    assert figures.shares is None
    assert figures.compiled_again is None
    assert len(figures.windows) == 0


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
JOBS = {
    "useful": [CLEAN, CLEAN],
    "one fetches, and the others wait for it": [CLEAN, DATA, CLEAN, CLEAN],
    "one works on its host": [CLEAN, HOST, CLEAN, CLEAN],
    "all fetch": [DATA, DATA],
    "they are not in step": [CLEAN, loop(10, data=0.0)],
    "a start": [beside("import", 0.4)] * 2,
    "paused": [beside("paused", 0.4)] * 2,
    "outside the loop": [beside("waiting", 0.4)] * 2,
    "first compilations": [beside("compile", 0.1)] * 2,
    "one compiles again": [beside("compile", 0.1, AGAIN), beside("compile", 0.1)],
}


def test_what_the_seconds_of_a_job_are():
    told = {}
    for case, loops in JOBS.items():
        told[case] = figures_text({cause: took for cause, took in of(*loops).causes.items() if took > 1e-6})
    held_cases("goodput.txt", told)


def test_what_comes_after_a_failure_is_not_useful():
    """It raises in its sixth second; both processes hang in the collective for fourteen more."""
    found = of(CLEAN, FAILED, exit_code=1)
    assert found.causes["after_failure"] == pytest.approx(28.0, abs=2.0)
    assert found.causes["useful"] == pytest.approx(12.0, abs=2.0)


def test_time_after_the_last_step_of_a_stalled_job_is_lost():
    """Both wait in the collective of a step for six of ten seconds, as one sleeps."""
    device = [made.line(88, 1.0, "device_busy", "step")]
    inside = [*made.steady(10, {"device_busy": 1.0}, device), made.compiled("step")]
    live = {index: {"is_live": True} for index in range(2)}
    stands = [made.stands(25.0, until=30.0, kind=kind) for kind in ("host", "sync")]
    found = job_figures(recorded(*([*inside, each] for each in stands), options=live)).goodput
    assert found.causes["standstill"] == pytest.approx(50.0, abs=1.0)
    assert found.causes["useful"] == pytest.approx(10.0, abs=1.0)


def test_a_job_without_a_loop_has_none():
    assert job_figures(recorded([made.compiled()])).goodput is None
