"""Every table holds what the session says, and NULL where the session says nothing. Their rows are in `tests/net`."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from jaxprof import events as e
from jaxprof.query.tables import TABLES
from jaxprof.report.json import to_dict
from jaxprof.session import Session
from jaxprof.session.log import load
from query.conftest import TIMELINE, ask, asked, write
from report import sessions
from tapes import unpacked


def rows(path: Path, sql: str) -> list[list[Any]]:
    found, more = ask(sql, [asked(path, "whole")]).first(10_000)
    assert not more
    return found


@pytest.mark.parametrize("name", TABLES)
def test_every_table_has_rows_under_the_columns_that_its_schema_has(path, name):
    answer = ask(f"SELECT * FROM {name}", [asked(path, "whole")])
    table = answer.table()
    assert answer.names == ["session", *(fact.key for fact in TABLES[name].facts)]
    assert len(table) > 0
    assert set(table["session"].to_pylist()) == {"whole"}
    filled = {column for column in table.column_names if table[column].null_count < len(table)}
    assert len(filled) > 1


def test_figures_are_those_of_the_json(path):
    (compiled,) = [run for run in to_dict(load(path, Session))["runs"] if run["id"] == "r3"]
    (row,) = rows(
        path,
        "SELECT median_seconds, compile_seconds, speedup, flops, peak_bytes, check_passed, status, versus, launches "
        "FROM runs WHERE run = 'r3'",
    )
    phases = compiled["phases"]
    times = [phases["run"]["median_seconds"], phases["compile"]["seconds"], compiled["versus"]["speedup"]]
    assert row == [*times, compiled["flops"], compiled["memory"]["peak_bytes"], True, "ok", "r2", 3]
    launches = rows(path, "SELECT launch, count(*), min(calls_per_sample) FROM samples WHERE run = 'r3' AND "
                          "series = 'run' GROUP BY launch ORDER BY launch")  # fmt: skip
    assert launches == [[1, 7, 4], [2, 7, 4], [3, 7, 4]]
    assert rows(path, "SELECT DISTINCT launch FROM samples WHERE series = 'dispatch'") == [[None]]


def test_the_shortest_intervals_that_a_timeline_left_out_are_named(path):
    answer = ask("FROM intervals", [asked(path, "whole")])
    assert len(answer.first(100)[0]) == sum(len(lane["label"]) for lane in TIMELINE["lanes"])  # type: ignore[arg-type, misc]
    assert answer.notices == ["whole: the 2 shortest intervals of run r3 are not in its timeline"]


def test_what_no_column_can_hold_is_null(tmp_path):
    run = e.RunPlanned(run="r1", spec=e.RunSpec(workload="a\ud800b", variant="", how="jit", device="cpu:0"))
    memory = e.MemoryReported(run="r1", argument_bytes=1 << 63, output_bytes=0, temporary_bytes=5)
    from jaxprof.facts import SessionFile
    from jaxprof.query.columnar import arrow_table

    session = Session(sessions.HEADER)
    session.extend([run, memory])
    (row,) = arrow_table(TABLES["runs"], SessionFile(tmp_path, session)).to_pylist()
    assert (row["workload"], row["variant"]) == ("a\\ud800b", None)
    assert (row["peak_bytes"], row["temporary_bytes"]) == (None, 5)


def test_figures_of_a_real_session_agree_with_each_other(tmp_path):
    measured = unpacked("engines", "measures", tmp_path)
    found = rows(measured, """
        SELECT runs.median_seconds, runs.samples, count(*), median(samples.seconds)
        FROM runs JOIN samples USING (session, run)
        WHERE series = 'run' AND status = 'ok' GROUP BY ALL
    """)  # fmt: skip
    assert len(found) == 2
    for median, count, counted, of_samples in found:
        assert counted == count
        assert of_samples == pytest.approx(median, rel=0.2)


QUESTIONS = re.findall(
    r"^```sql\n(.*?)^```", (Path(__file__).parents[2] / "docs" / "query.md").read_text(), re.MULTILINE | re.DOTALL
)


@pytest.mark.parametrize("sql", QUESTIONS, ids=lambda sql: " ".join(sql.split())[:50])
def test_a_documented_question_is_answered(path, sql):
    found = rows(path, sql)
    assert found or "times_the_" in sql, "these samples are even, and these kernels have no ceiling"


def test_a_damaged_timeline_costs_its_rows_and_is_said(tmp_path):
    damaged = [*sessions.jit_run("r2", ""), e.TextRecorded(run="r2", name="timeline", text="{")]
    answer = ask("SELECT count(*) FROM intervals", [asked(write(tmp_path / "s.jaxprof", damaged))])
    assert answer.first(1)[0] == [[0]]
    assert [notice for notice in answer.notices if notice.startswith("s: the timeline of run r2 was left out")]
