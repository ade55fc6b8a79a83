"""Of every small program of `cases/`: what is planted is found first, and nothing is said that is not so."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

from jaxprof.analysis.programs.findings import CODES
from recorder.case_files import Case, Outcome, cases, judge, run_case

NOT_YET: dict[str, str] = {}
"""Cases that do not hold, each with the reason; one that does hold after all fails here, so that it is taken out."""

ALL = cases()
BY_NAME = {case.name: case for case in ALL}


def _marked(case: Case) -> Any:
    marks = [pytest.mark.xfail(strict=True, reason=NOT_YET[case.name])] if case.name in NOT_YET else []
    return pytest.param(case, id=case.name, marks=marks)


@pytest.mark.timeout(240)
@pytest.mark.flaky(reruns=4, reruns_delay=2)
@pytest.mark.parametrize("case", [_marked(case) for case in ALL if case.in_suite])
def test_what_is_found_in_a_program(case: Case, tmp_path: Path) -> None:
    """What rests on samples is right nearly always: a case that does not hold is run again, four times at most.

    How often it takes that, and the long forms, are what bench/findings.py counts.
    """
    for package in case.needs:
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"{package} is not installed")
    outcome = run_case(case, tmp_path)
    faults = judge(case, outcome)
    if faults:
        pytest.fail("\n".join([case.about, *(f"{fault.kind}: {fault.text}" for fault in faults), _said(outcome)]))


def _said(outcome: Outcome) -> str:
    findings = [f"  {one.code} at line {one.line}: {one.message}. {one.advice}" for one in outcome.findings]
    return "\n".join([f"verdict {outcome.verdict}, {outcome.wall_seconds:.1f} s", *findings])


@pytest.mark.parametrize("case", [pytest.param(case, id=case.name) for case in ALL if case.mended])
def test_the_mended_twin_must_not_have_what_was_planted(case: Case) -> None:
    twin = BY_NAME[case.mended]
    planted = set(case.expected[0])
    assert "*" in twin.forbidden or planted <= twin.forbidden
    assert not planted & {code for alternatives in twin.expected for code in alternatives}


@pytest.mark.parametrize("code", [code for code in CODES if code != "program_failed"])  # these programs all end well
def test_every_finding_has_a_case_with_a_mended_twin(code: str) -> None:
    assert any(code in case.expected[0] and case.mended for case in ALL if case.expected)


def test_no_entry_of_the_list_is_of_a_case_that_is_gone() -> None:
    assert NOT_YET.keys() <= BY_NAME.keys()
