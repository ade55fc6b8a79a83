"""`jaxprof history`: of a phase or a fact; and what is no point in it is counted."""

from __future__ import annotations

from pathlib import Path

import pytest

import kept_histories as kept
from jaxprof.cli.output import ExitCode


@pytest.fixture
def folder(state_home: Path) -> Path:
    return state_home / "sessions"


def test_a_phase_and_a_fact(call, folder):
    for number, flops in enumerate([2e9, 2e9, 3e9]):
        kept.keep(folder, number, kept.run("r1", 0.01, flops=flops))
    assert "compile, 40.0 ms; 3 points" in call("history", "matmul", "--phase", "compile").out
    out = call("history", "matmul", "--fact", "flops").out
    assert ("1 change, exact" in out, "more: 2.00 G → 3.00 G (+50 %)" in out) == (True, True)
    assert "not measured together" not in out
    assert call("history", "--phase", "run", "--fact", "flops").code == ExitCode.USAGE


def test_what_is_left_out_is_counted(call, folder):
    kept.keep(folder, 0, [*kept.run("r1", 0.01, passed=False), *kept.run("r2", 0.02, status="failed")])
    (folder / "copy.jaxprof").write_bytes((folder / "session-000.jaxprof").read_bytes())
    (folder / "foreign.jaxprof").write_text("hello\x1b[31m\n")
    out = " ".join(call("history", "matmul").out.split())
    for said in (
        "1 wrong result left aside",
        "Runs that are no points: 1 failed.",
        "1 file holds a session that another file holds, too.",
        "1 file not read: foreign.jaxprof",
    ):
        assert said in out
    assert "\x1b" not in out
