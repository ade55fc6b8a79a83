"""Every table holds what the session says, and NULL where it says nothing. Their rows are in `tests/net`."""

import re
from pathlib import Path

import pytest

from folding import fold
from jaxprof import events as e
from jaxprof.cli.options import VIEWS
from jaxprof.facts import columns
from jaxprof.facts.answers import view_of
from jaxprof.facts.tables import TABLES
from query.conftest import TIMELINE, ask, asked, write
from report import sessions


@pytest.mark.parametrize("name", TABLES)
def test_rows_have_the_columns_of_their_schema(path, name):
    answer = ask(f"SELECT * FROM {name}", [asked(path)])
    assert answer.names == ["session", *(fact.key for fact in TABLES[name].facts)]
    of_session, *filled = (set(column) - {None} for column in zip(*answer.rows(), strict=True))
    assert of_session == {"whole"}
    assert any(filled)


NAMES_IN_SQL = {"compile": "passes", "timeline": "states"}
"""By view, its table if that has another name."""


@pytest.mark.parametrize("view", VIEWS)
def test_the_rows_of_a_view_are_a_table_with_the_same_columns(view):
    facts = view_of(view).facts
    table = TABLES[NAMES_IN_SQL.get(view, view)]
    assert {fact.key for fact in columns(facts)} <= {fact.key for fact in table.facts}


QUESTIONS = re.findall(
    r"^```sql\n(.*?)^```", (Path(__file__).parents[2] / "docs" / "query.md").read_text(), re.MULTILINE | re.DOTALL
)


@pytest.mark.parametrize("sql", QUESTIONS, ids=lambda sql: " ".join(sql.split())[:50])
def test_a_documented_question_is_answered(path, sql):
    found, _ = ask(sql, [asked(path)]).first(1)
    assert found or "times_the_" in sql, "these samples are even, and these kernels have no ceiling"


@pytest.mark.parametrize(
    "sql",
    [
        *QUESTIONS,
        "SELECT runs FROM runs",
        "SUMMARIZE runs",
        "SELECT count(*) FROM runs WHERE status = 'ok' AND check_passed",
        "SELECT COLUMNS('.*_seconds') FROM runs ORDER BY hint",
        "FROM runs NATURAL JOIN phases",
        "FROM query('SELECT code FROM findings')",
        "WITH RECURSIVE a AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM a, samples WHERE n < 3) SELECT count(*) FROM a",
        "SELECT (SELECT max(bytes) FROM kernels k WHERE k.run = r.run) FROM runs r",
    ],
    ids=lambda sql: " ".join(sql.split())[:50],
)
def test_columns_that_are_not_read_change_no_answer(path, sql, monkeypatch):
    answers = [list(ask(sql, [asked(path)]).rows())]
    monkeypatch.setattr("jaxprof.query.database.columns_read", lambda sql, tables: None)
    answers.append(list(ask(sql, [asked(path)]).rows()))
    first, second = (sorted(map(repr, rows)) for rows in answers)
    assert first == second


def test_what_a_query_does_not_read_is_not_derived(path, monkeypatch):
    def derive(*given):
        raise AssertionError("nobody asked")

    monkeypatch.setattr("jaxprof.analysis.runs.run_result.derive_warnings", derive)
    monkeypatch.setattr("jaxprof.analysis.kernels.memory.memory_sums", derive)
    assert ask("SELECT variant, median_seconds FROM runs", [asked(path)]).first(1)[0]
    with pytest.raises(AssertionError, match="nobody asked"):
        ask("SELECT variant, warning_codes FROM runs", [asked(path)])


def test_what_a_timeline_lacks_is_said(path, tmp_path):
    answer = ask("FROM intervals", [asked(path)])
    assert len(answer.first(100)[0]) == sum(len(lane["label"]) for lane in TIMELINE["lanes"])
    assert answer.notices == ["whole: the 2 shortest intervals of run r3 are not in its timeline"]
    damaged = [*sessions.jit_run("r2", ""), e.TextRecorded(run="r2", name="timeline", text="{")]
    answer = ask("SELECT count(*) FROM intervals", [asked(write(tmp_path / "s.jaxprof", damaged))])
    assert answer.first(1)[0] == [[0]]
    assert answer.notices[0].startswith("s: the timeline of run r2 was left out")


def test_what_no_column_can_hold_is_null(tmp_path):
    from jaxprof.facts import SessionFile
    from jaxprof.query.columnar import arrow_table

    run = e.RunPlanned(run="r1", spec=e.RunSpec(workload="a\ud800b", variant="", how="jit", device="cpu:0"))
    memory = e.MemoryReported(run="r1", argument_bytes=1 << 63, output_bytes=0, temporary_bytes=5)
    (row,) = arrow_table(TABLES["runs"], SessionFile(tmp_path, fold(sessions.HEADER, [run, memory]))).to_pylist()
    assert (row["workload"], row["variant"]) == ("a\\ud800b", None)
    assert (row["peak_bytes"], row["temporary_bytes"]) == (None, 5)


def test_the_time_of_reading_a_profile_is_no_time_of_its_run(tmp_path):
    plan = e.RunPlanned(run="r1", spec=e.RunSpec(workload="a", variant="profile", how="imported", device="cpu:0"))
    closed = e.RunClosed(run="r1", workload="a", variant="profile", device="cpu:0", status="ok", wall_seconds=0.5)
    answer = ask("SELECT wall_seconds FROM runs", [asked(write(tmp_path / "p.jaxprof", [plan, closed]))])
    assert answer.first(1)[0] == [[None]]
