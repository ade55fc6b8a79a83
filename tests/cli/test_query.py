import importlib.util
import json

import pytest

from jaxprof.cli.output import ExitCode
from query.conftest import InThisProcess

pytest.importorskip("pyarrow")
pytest.importorskip("duckdb")


@pytest.fixture(autouse=True)
def no_process(monkeypatch):
    monkeypatch.setattr("jaxprof.query.sql_process.SqlProcess", InThisProcess)


VALUES = {
    "'nan'::DOUBLE": None,
    "1.5::DECIMAL(4, 2)": 1.5,
    "TIMESTAMP '2026-11-21 04:05:06'": "2026-11-21T04:05:06",
    "[1, 2]": [1, 2],
    "{'a': 1.5}": {"a": 1.5},
    "'a'::BLOB": "61",
    "TIME '12:00'": "12:00:00",
    "2::HUGEINT ** 70": 2**70,
}


def test_any_value_of_sql_has_a_form_in_json_and_text(call, kept):
    sql = "SELECT " + ", ".join(f"{sql} AS v{number}" for number, sql in enumerate(VALUES))
    (row,) = call("query", "last", sql, "--format", "json").data["rows"]
    assert dict(zip(VALUES, row.values(), strict=True)) == VALUES
    assert call("query", "last", sql).code == ExitCode.OK


def test_rows_that_are_left_out_are_said(call, kept):
    words = ("query", "last", "SELECT seconds FROM samples")
    assert len(call(*words, "--limit", "3").out.splitlines()) == 4
    assert call(*words, "--limit", "1").err.startswith("note: there are more rows than 1; ")
    everything = call(*words, "--full").out.splitlines()[1:]
    said = call(*words, "--limit", "3", "--format", "json")
    assert json.loads(said.out)["truncated"] == {"rows": len(everything) - 3}
    assert len(said.data["rows"]) == 3


def test_a_folder_and_all_kept_sessions(call, kept):
    (kept.parent / "b.jaxprof").write_bytes(kept.read_bytes())
    for given in ([str(kept.parent)], ["--all"], [str(kept), "b", str(kept)]):
        said = call("query", *given, "SELECT session, count(*) AS n FROM runs GROUP BY 1 ORDER BY 1", "--format", "csv")
        assert said.out.splitlines()[1:] == [f"{kept.stem},3", "b,3"], given


def test_the_schema_needs_no_session(call):
    out = call("query", "--schema").out
    assert out.startswith("sessions: ")
    assert "\nkernels: " in out


def test_without_the_extra_it_says_how_to_install_it(call, kept, monkeypatch):
    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "duckdb" else found(name))
    said = call("query", "last", "SELECT 1")
    assert said.code == ExitCode.USAGE
    assert "-m pip install 'duckdb>=2,<3' pyarrow" in said.err
