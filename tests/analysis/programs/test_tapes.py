"""What is said of real programs, from their tapes: the cause first, its verdict and line, and nothing else; and how the
programs and runs ended."""

from __future__ import annotations

import pytest

from jaxprof.session import Session
from jaxprof.session.log import load
from recorder.case_files import CASES, judge, outcome_of, read_case
from recorder.running import notes_of
from tapes import names, unpacked


@pytest.mark.parametrize("name", names("programs"))
def test_the_planted_cause_is_found_first_and_nothing_is_said_that_is_not_so(name, tmp_path):
    outcome = outcome_of(unpacked("programs", name, tmp_path))
    faults = [f"{fault.kind}: {fault.text}" for fault in judge(read_case(CASES / f"{name}.py"), outcome)]
    assert faults == [], outcome.findings


@pytest.mark.parametrize(
    ("name", "status", "code", "notes", "error"),
    [
        ("ends", "ok", 0, [], ""),
        ("exits", "failed", 3, [], ""),
        ("raises", "failed", 1, [], "ValueError: nan"),
        ("raises_in_jit", "failed", 1, [], "AttributeError: "),
        ("killed", "crashed", 137, ["not_unwound"], ""),
        ("terminated", "crashed", 143, ["not_unwound"], ""),
        ("leaves_at_once", "failed", 4, ["not_unwound"], ""),
        ("interrupted", "cancelled", 130, [], ""),
    ],
)
def test_how_a_program_ended(name, status, code, notes, error, tmp_path):
    session = load(unpacked("endings", name, tmp_path), Session)
    (run,) = session.runs.values()
    assert (session.complete, run.status, run.program.ended.exit_code, notes_of(run)) == (True, status, code, notes)
    assert run.program.ended.error.startswith(error)
    assert bool(run.program.ended.error) == bool(error)
    assert [row.reason_code for row in run.program.compiled if row.function == "step"] == ["first", "shape", "shape"]


@pytest.mark.parametrize(
    ("name", "statuses", "error"),
    [
        ("measures", ["ok"], ""),
        ("talks", ["ok"], ""),
        ("raises", ["failed"], "ValueError: never"),
        ("raises_when_called", ["failed"], ""),
        ("killed", ["crashed"], "killed (SIGKILL)"),
    ],
)
def test_how_a_run_ended(name, statuses, error, tmp_path):
    session = load(unpacked("engines", name, tmp_path), Session)
    runs = [run for run in session.runs.values() if run.plan.variant == "jit"]
    assert [run.status for run in runs] == statuses
    assert all(error in run.error for run in runs)
    assert all((len(run.samples("run")) > 0) == (run.status == "ok") for run in runs)
