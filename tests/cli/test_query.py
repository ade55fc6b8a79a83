from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from cli.calling import Caller
from jaxprof.cli.output import ExitCode
from jaxprof.session import Session
from jaxprof.session.log import load as load_session
from job_folders import job, loop
from query.conftest import InThisProcess

pa = pytest.importorskip("pyarrow")
pytest.importorskip("duckdb")

RUNS = "SELECT run, round(median_seconds, 5) AS median_seconds, check_passed, error FROM runs ORDER BY run"


@pytest.fixture(autouse=True)
def no_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jaxprof.query.asking.SqlProcess", InThisProcess)


def test_json_has_a_row_as_an_object(call: Caller, kept: Path) -> None:
    said = call("query", "last", RUNS, "--format", "json")
    assert json.loads(said.out)["kind"] == "query"
    assert said.data["rows"][1] == {"run": "r2", "median_seconds": 0.00063, "check_passed": True, "error": None}


@pytest.mark.parametrize(
    ("sql", "value"),
    [
        ("'nan'::DOUBLE", None),
        ("sum(1)", 1),
        ("1.5::DECIMAL(4, 2)", 1.5),
        ("TIMESTAMP '2026-11-21 04:05:06'", "2026-11-21T04:05:06"),
        ("DATE '2026-11-21'", "2026-11-21"),
        ("[1, 2]", [1, 2]),
        ("{'a': 1.5}", {"a": 1.5}),
        ("'a'::BLOB", "61"),
        ("TIME '12:00'", "12:00:00"),
        ("2::HUGEINT ** 70", 2**70),
    ],
)
def test_any_value_of_sql_has_a_form_in_json_and_text(call: Caller, kept: Path, sql: str, value: object) -> None:
    said = call("query", "last", f"SELECT {sql} AS v", "--format", "json")
    assert said.data["rows"] == [{"v": value}]
    assert call("query", "last", f"SELECT {sql} AS v").code == ExitCode.OK


@pytest.mark.parametrize("form", ["parquet", "arrow"])
def test_files_of_columns_read_back(call: Caller, kept: Path, tmp_path: Path, form: str) -> None:
    out = tmp_path / f"x.{form}"
    said = call("query", "last", RUNS, "--format", form, "-o", out)
    assert said.code == ExitCode.OK
    assert f"written: {out}" in said.err
    if form == "parquet":
        import pyarrow.parquet

        table = pyarrow.parquet.read_table(out)
    else:
        table = pa.ipc.open_file(out).read_all()
    assert table["median_seconds"].to_pylist()[1:] == [0.00063, None]
    assert call("query", "last", RUNS, "--format", form, "-o", out).code == ExitCode.USAGE
    assert call("query", "last", RUNS, "--format", form, "-o", out, "--force").code == ExitCode.OK


def test_rows_that_are_left_out_are_said(call: Caller, kept: Path) -> None:
    said = call("query", "last", "SELECT seconds FROM samples", "--limit", "3")
    assert len(said.out.splitlines()) == 4
    assert "more than these 3 rows" in said.err
    everything = call("query", "last", "SELECT seconds FROM samples", "--full").out.splitlines()[1:]
    said = call("query", "last", "SELECT seconds FROM samples", "--limit", "3", "--format", "json")
    assert json.loads(said.out)["truncated"] == {"rows": len(everything) - 3}
    assert len(said.data["rows"]) == 3


def test_a_folder_and_all_kept_sessions(call: Caller, kept: Path) -> None:
    (kept.parent / "b.jaxprof").write_bytes(kept.read_bytes())
    for given in ([str(kept.parent)], ["--all"], [str(kept), "b", str(kept)]):
        said = call("query", *given, "SELECT session, count(*) AS n FROM runs GROUP BY 1 ORDER BY 1", "--format", "csv")
        assert said.out.splitlines()[1:] == [f"{kept.stem},3", "b,3"], given


def test_the_schema_needs_no_session(call: Caller) -> None:
    said = call("query", "--schema")
    assert said.out.startswith("sessions: ")
    assert "\nkernels: " in said.out
    one = call("query", "--schema", "phases", "--format", "json")
    (table,) = one.data["tables"]
    assert table["columns"][0]["name"] == "session"
    assert {column["type"] for column in table["columns"]} == {"VARCHAR", "BIGINT", "DOUBLE", "BOOLEAN"}


@pytest.mark.parametrize(
    ("words", "what"),
    [
        ((), "there is no SQL"),
        (("last",), "'last' is none"),
        (("SELECT 1",), "no session was named"),
        (("last", " "), "there is no SQL"),
        (("nothing", "SELECT 1"), "unknown session"),
        (("--all", "last", "SELECT 1"), "--all is every kept session"),
        (("last", "SELECT 1", "-o", "x"), "--out is for parquet and arrow"),
        (("last", "SELECT 1", "--force"), "--force"),
        (("last", "SELECT 1", "--format", "csv", "--limit", "3"), "--limit bounds an answer in text or json"),
        (("last", "SELECT 1", "--limit", "0"), "0 is not in the range"),
        (("--schema", "runz"), "unknown table"),
        (("--schema", "--format", "csv"), "--schema has no csv form"),
        (("last", "SELECT INTERVAL 1 DAY", "--format", "parquet"), "Parquet cannot hold"),
        (("last", "SELECT error('no') FROM runs", "--format", "csv"), "SQL: no"),
        (("last", "SELECT * FROM read_csv('/etc/passwd')"), "cannot access file"),
    ],
)
def test_what_is_wrong_is_said_in_a_line(call: Caller, kept: Path, words: tuple[str, ...], what: str) -> None:
    said = call("query", *words)
    assert said.code == ExitCode.USAGE
    assert what in said.err
    assert "Traceback" not in said.err
    assert said.out == ""


def test_without_the_extra_it_says_how_to_install_it(call: Caller, kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import importlib.util

    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "duckdb" else found(name))
    said = call("query", "last", "SELECT 1")
    assert said.code == ExitCode.USAGE
    assert "`query` needs duckdb, which is not installed" in said.err
    assert "-m pip install 'duckdb>=2,<3' pyarrow" in said.err


def test_all_processes_of_a_job_in_one_sql(call: Caller, tmp_path: Path) -> None:
    folder = job(tmp_path / "run.jaxprof.d", loop(), loop(data=0.3), loop())
    sql = "SELECT process, host, session, round(data_share, 2) AS data FROM processes ORDER BY data DESC, process"
    rows = call("query", folder, sql, "--format", "json").data["rows"]
    assert rows == [
        {"process": 1, "host": "node1", "session": "process-00001", "data": 0.3},
        {"process": 0, "host": "node0", "session": "process-00000", "data": 0.02},
        {"process": 2, "host": "node2", "session": "process-00002", "data": 0.02},
    ]
    joined = "SELECT process, sum(seconds) AS seconds FROM lines JOIN processes USING (session) GROUP BY ALL"
    assert len(call("query", folder, joined, "--format", "json").data["rows"]) == 3


def test_the_table_of_processes_needs_no_session_where_roll_ups_hold_them(
    tmp_path: Path, call: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    from jaxprof.rollup.making import roll_up

    folder = tmp_path / "train.jaxprof.d"
    folder.mkdir()
    job(folder, loop(), loop(data=0.3), loop())
    sql = "SELECT * FROM processes ORDER BY process"
    expected = call("query", folder, sql, "--format", "json").data["rows"]
    assert len(expected) == 3
    shutil.rmtree(os.environ["JAXPROF_HOME"], ignore_errors=True)  # with the copies of the tables
    for path in sorted(folder.glob("*.jaxprof")):
        assert not roll_up(path, folder).error
    read: list[str] = []

    def load(path: Path, kind: type[Session]) -> Session:
        read.append(path.name)
        return load_session(path, kind)

    monkeypatch.setattr("jaxprof.session.log.load", load)
    assert call("query", folder, sql, "--format", "json").data["rows"] == expected
    assert not read
    with (folder / "process-00001.jaxprof").open("ab") as file:
        file.write(b" ")
    assert call("query", folder, sql, "--format", "json").data["rows"] == expected
    assert read == ["process-00001.jaxprof"], "its roll-up is not of all of it"
