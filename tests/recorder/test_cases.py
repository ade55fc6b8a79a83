"""Of a small program of `bench/cases/` and its mended twin: what is planted is found at its line, and not in the twin.

What is said of the others: `tests/tapes`, from what they once sent; and bench/findings.py counts how often it is right.
Each finding for itself has its pair of events in tests/analysis/programs/test_findings.py.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from jaxprof.analysis.programs.findings import CODES
from recorder.case_files import Outcome, cases, judge, run_case

ALL = cases()
BY_NAME = {case.name: case for case in ALL}


@pytest.mark.process
def test_what_is_planted_is_found_and_not_in_the_mended_twin(tmp_path: Path) -> None:
    case = BY_NAME["tabular_queue"]
    outcome = run_case(case, tmp_path)
    faults = [fault for fault in judge(case, outcome) if fault.kind in ("run", "missing", "line")]
    assert not faults, _said(outcome)
    mended = run_case(BY_NAME[case.mended], tmp_path)
    assert mended.exit_code == 0
    assert not {one.code for one in mended.findings} & set(case.expected[0]), _said(mended)


def _said(outcome: Outcome) -> str:
    findings = [f"  {one.code} at line {one.line}: {one.message}. {one.advice}" for one in outcome.findings]
    return "\n".join([f"verdict {outcome.verdict}, {outcome.wall_seconds:.1f} s", *findings])


def test_the_mended_twin_must_not_have_what_was_planted() -> None:
    for case in ALL:
        if case.mended:
            twin = BY_NAME[case.mended]
            planted = set(case.expected[0])
            assert "*" in twin.forbidden or planted <= twin.forbidden
            assert not planted & {code for alternatives in twin.expected for code in alternatives}


def test_every_finding_has_a_case_with_a_mended_twin() -> None:
    paired = {code for case in ALL if case.expected and case.mended for code in case.expected[0]}
    assert paired >= set(CODES) - {"program_failed"}  # these programs all end well
