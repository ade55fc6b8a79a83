"""The figures of one process of a job."""

import pickle
from pathlib import Path

import pytest

import program_events
from folding import fold
from golden import figures_text, held
from jaxprof.analysis.jobs.figures import process_figures
from jaxprof.analysis.programs.verdict import PARTS
from jaxprof.session.log.job_folder import JobMember
from job_folders import loop, recorded


def test_the_windows_of_the_loop_add_up_to_it():
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
    outside = [program_events.line(3, 1.0, "host_busy", loop=None)]
    before = program_events.sampled(30, 1.0, {"host_busy": 1.0}, outside)
    windows = [program_events.sampled(at, 1.0, states, lines) for at in (6, 7, 8)]
    [member] = recorded([*loop(6), *windows, *again, before]).members
    figures = process_figures(member)
    for part in PARTS:
        assert figures.windows.part(part).sum() == pytest.approx(figures.loop.parts[part]), part
    # the compilation of 0.4 s at 6.8 s lies in two windows; the third has the rest of its time in first ones
    held("windows_of_a_loop.txt", figures_text(figures.windows))
    assert pickle.loads(pickle.dumps(figures)) == figures, "it goes to another process"


def test_a_session_without_a_program():
    session = fold(program_events.HEADER, [])
    figures = process_figures(JobMember(0, Path("process-00000.jaxprof"), session, live=False))
    assert (figures.status, figures.shares, figures.compiled_again, len(figures.windows)) == ("unknown", None, None, 0)
