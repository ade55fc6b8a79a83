"""What is said of real programs, from their tapes: the cause first, its verdict and line, and nothing else; and how the
programs and runs ended."""

import pytest

from case_files import CASES, judge, outcome_of, read_case
from golden import figures_text, held_cases
from jaxprof.session import Session, load
from recorder.running import notes_of
from tapes import names, unpacked


@pytest.mark.parametrize("name", names("programs"))
def test_planted_cause_is_the_first_finding(name, tmp_path):
    outcome = outcome_of(unpacked("programs", name, tmp_path))
    faults = [f"{fault.kind}: {fault.text}" for fault in judge(read_case(CASES / f"{name}.py"), outcome)]
    assert faults == [], outcome.findings


def test_how_programs_ended(tmp_path):
    told = {}
    for name in names("endings"):
        session = load(unpacked("endings", name, tmp_path), Session)
        (run,) = session.runs.values()
        ended = run.program.ended
        said = {"complete": session.complete, "status": run.status, "code": ended.exit_code, "notes": notes_of(run)}
        reasons = [row.reason_code for row in run.program.compiled if row.function == "step"]
        told[name] = figures_text({**said, "compiled": reasons, "error": ended.error})
    held_cases("endings.txt", told)


def test_how_runs_ended(tmp_path):
    told = {}
    for name in names("engines"):
        session = load(unpacked("engines", name, tmp_path), Session)
        runs = [run for run in session.runs.values() if run.plan.variant == "jit"]
        told[name] = figures_text(*(f"{run.status}: {run.error}".partition("\n")[0] for run in runs))
        assert all((len(run.samples("run")) > 0) == (run.status == "ok") for run in runs)
    held_cases("engines.txt", told)
