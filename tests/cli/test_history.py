from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest

import kept_histories as kept
from cli.calling import Caller
from jaxprof.cli.output import ExitCode
from jaxprof.text import columns

APART = "not measured together"


@pytest.fixture
def folder(state_home: Path) -> Path:
    return state_home / "sessions"


def slower(folder: Path) -> None:
    for number, median in enumerate(kept.medians((0.010, 9), (0.0125, 8))):
        kept.keep(folder, number, kept.run("r1", median, jax="0.10.2" if number < 9 else "0.11.0"))


def test_a_change_is_said_with_its_place_its_size_and_what_changed_with_it(call: Caller, folder: Path) -> None:
    slower(folder)
    said = call("history", "matmul")
    assert said.code == 0
    lines = said.out.splitlines()
    (at,) = [number for number, line in enumerate(lines) if "══" in line]
    assert "slower: 10.1 ms → 12.5 ms (0.81×), p = 0.0025" in lines[at]
    assert "jax 0.10.2 → 0.11.0" in " ".join(said.out.split())
    before, after = (number for number, line in enumerate(lines) if "session-008" in line or "session-009" in line)
    assert before < at < after
    assert " ".join(said.out.split()).count(APART) == 1
    assert "1 lasting change (e-divisive" in said.out
    assert max(map(columns, lines)) <= 80


def test_without_a_workload_each_measurement_has_a_line(call: Caller, folder: Path) -> None:
    slower(folder)
    kept.keep(folder, 30, kept.run("r1", 0.02, workload="selu", variant="eager"))
    out = call("history").out
    (line,) = [line for line in out.splitlines() if "matmul jit" in line]
    assert "17" in line
    assert "0.81× 2026-01-07" in line
    assert "▁" in line
    assert len([line for line in out.splitlines() if "selu eager" in line]) == 1


def test_an_empty_library(call: Caller) -> None:
    assert call("history").out == "steady call, median in 0 sessions, the latest first\n  no points\n"
    assert call("history", "--format", "json").data["series"] == []
    said = call("history", "matmul")
    assert said.code == ExitCode.USAGE
    assert "Traceback" not in said.err


def test_json_has_the_points_and_the_changes(call: Caller, folder: Path) -> None:
    slower(folder)
    data = call("history", "matmul", "--format", "json").data
    (series,) = data["series"]
    (change,) = series["changes"]
    assert change["measured_together"] is False
    assert change["ratio"] == pytest.approx(0.8, rel=0.03)
    assert {"name": "jax", "before": "0.10.2", "after": "0.11.0"} in change["changed"]
    assert [point["session"] for point in series["points"]][9] == change["first_session"]
    assert series["points"][0]["low"] < series["points"][0]["value"] < series["points"][0]["high"]


def test_csv_has_a_row_for_each_point_and_markdown_a_section(call: Caller, folder: Path) -> None:
    slower(folder)
    rows = list(csv.DictReader(io.StringIO(call("history", "--format", "csv").out)))
    assert len(rows) == 17
    assert [bool(row["change_ratio"]) for row in rows].index(True) == 9
    assert {row["unit"] for row in rows} == {"second"}
    markdown = call("history", "--format", "markdown").out
    assert "### matmul jit · n = 1\u202f000 · cpu" in markdown
    assert "slower: 10.1 ms → 12.5 ms" in markdown


def test_a_phase_and_a_fact(call: Caller, folder: Path) -> None:
    for number, flops in enumerate([2e9, 2e9, 3e9]):
        kept.keep(folder, number, kept.run("r1", 0.01, flops=flops))
    assert "compile, 40.0 ms; 3 points" in call("history", "matmul", "--phase", "compile").out
    out = call("history", "matmul", "--fact", "flops").out
    assert "1 change, exact" in out
    assert "the same in 3 points" in call("history", "matmul", "--fact", "bytes").out
    assert "more: 2.00 G → 3.00 G (+50 %)" in out
    assert APART not in out
    assert call("history", "--phase", "run", "--fact", "flops").code == ExitCode.USAGE


def test_what_is_left_out_is_counted(call: Caller, folder: Path) -> None:
    kept.keep(folder, 0, [*kept.run("r1", 0.01, passed=False), *kept.run("r2", 0.02, status="failed")])
    (folder / "copy.jaxprof").write_bytes((folder / "session-000.jaxprof").read_bytes())
    (folder / "foreign.jaxprof").write_text("hello\x1b[31m\n")
    out = call("history", "matmul").out
    assert " wrong " in out
    assert "1 wrong result left aside" in " ".join(out.split())
    assert "Runs that are no points: 1 failed." in out
    assert "1 file holds a session that another file holds, too." in out
    assert "1 file not read: foreign.jaxprof" in out
    assert "\x1b" not in out
