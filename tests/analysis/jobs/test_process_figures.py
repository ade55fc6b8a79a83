"""One process of a job as a plain value."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

import program_events
from folding import written
from jaxprof import events as e
from jaxprof.analysis.jobs.figures import ProcessFigures, process_figures
from jaxprof.analysis.programs.verdict import PARTS
from jaxprof.session import Session
from jaxprof.session.log.job_folder import read_job
from jaxprof.session_names import session_path
from job_folders import job, loop


def of(folder: Path, *inside: e.Event) -> ProcessFigures:
    [member] = read_job(job(folder, inside), Session).members
    return process_figures(member)


def test_the_windows_of_the_loop_add_up_to_it(tmp_path):
    again = [
        program_events.compiled("metric", reason, began_seconds=program_events.BEGAN + at, compile_seconds=0.37)
        for at, reason in ((1.0, "first"), (6.8, "shape"))
    ]
    lines = [
        program_events.line(86, 0.1, "data", "next()"),
        program_events.line(88, 0.5, "device_busy", "step"),
        program_events.line(88, 0.4, "compile", "metric"),
    ]
    states = {"data": 0.1, "device_busy": 0.5, "compile": 0.4}
    figures = of(tmp_path, *loop(6), *(program_events.sampled(at, 1.0, states, lines) for at in (6, 7, 8)), *again)
    assert len(figures.windows) == 9
    assert figures.loop is not None
    for part in PARTS:
        assert figures.windows.part(part).sum() == pytest.approx(figures.loop.parts[part]), part
    # the compilation of 0.4 s at 6.8 s lies in two windows; the third has the rest of its time in first ones
    assert figures.windows.part("compile")[5:] == pytest.approx([0.0, 0.2, 0.2, 0.0])
    assert figures.windows.seconds == pytest.approx([1.0] * 9)
    assert figures.windows.began_seconds - program_events.BEGAN == pytest.approx(list(range(9)))
    assert figures.windows.samples[:6].sum() == pytest.approx(600)


def test_windows_outside_the_loop_are_left_out(tmp_path):
    before = program_events.sampled(30, 1.0, {"host_busy": 1.0}, [program_events.line(3, 1.0, "host_busy", loop=None)])
    assert len(of(tmp_path, *loop(20), before).windows) == 20


def test_the_value_holds_no_session(tmp_path):
    """It goes to another process, without the whole of what it was made from."""
    figures = of(tmp_path, *loop(), *program_events.shaped(9, "metric"))
    pickled = pickle.dumps(figures)
    assert pickle.loads(pickled) == figures
    assert b"jaxprof.session" not in pickled


def test_a_session_without_a_program(tmp_path):
    written(session_path(tmp_path, 0), [], program_events.HEADER)
    [member] = read_job(tmp_path, Session).members
    figures = process_figures(member)
    assert (figures.status, figures.shares, figures.compiled_again, len(figures.windows)) == ("unknown", None, None, 0)
