"""SQL reads the tables of sessions and nothing else; what is wrong with it is said in one line."""

from pathlib import Path

import duckdb
import pytest

import jaxprof
from jaxprof.base.database import connect
from jaxprof.base.errors import FileRefusedError, UsageError
from jaxprof.base.limits import QUERY_MEMORY, memory_bound
from jaxprof.base.text import json_text
from jaxprof.query import execution, sql_process
from jaxprof.query.execution import QueriedSession, plain_value, rows_table
from jaxprof.query.sql_process import SqlProcess
from jaxprof.report import csv_lines, text_lines
from pythons import stand_in
from query.conftest import ask, asked


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM read_csv('{file}')",
        "SELECT * FROM glob('{folder}/*')",
        "SELECT * FROM 'https://example.com/x.csv'",
        "SELECT getenv('HOME')",
        "SELECT * FROM secret",
        "COPY runs TO '{new}'",
        "EXPORT DATABASE '{new}'",
        "ATTACH '{new}' AS other",
        "INSTALL httpfs",
        "PRAGMA database_list",
        "SET enable_external_access = true",
        "CREATE TABLE x (a INTEGER)",
        "CALL pragma_version()",
        "EXPLAIN ANALYZE COPY runs TO '{new}'",
        "WITH a AS (INSERT INTO runs SELECT * FROM runs) SELECT 1",
        "SELECT 1; COPY runs TO '{new}'",
        "SELECT * FROM query('COPY runs TO ''{new}''')",
        "PREPARE p AS SELECT 1",
    ],
)
def test_nothing_but_a_select_over_the_tables_is_done(path, tmp_path, sql):
    secret = "variables of this program are no tables"  # noqa: F841 - DuckDB looks for such names
    file, new = tmp_path / "secret.csv", tmp_path / "new"
    file.write_text("a,b\n1,2\n")
    before = sorted(tmp_path.iterdir())
    with pytest.raises(UsageError) as refused:
        list(ask(sql.format(file=file, folder=tmp_path, new=new), [asked(path)]).rows())
    assert "\n" not in refused.value.what
    assert refused.value.hint
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize(
    ("sql", "what", "hint"),
    [
        ("SELECT medn_seconds FROM runs", 'column "medn_seconds" not found', '"median_seconds"'),
        ("SELECT * FROM rnus", "table with name rnus does not exist", '"runs"'),
        ("SELCT 1 FROM runs", 'syntax error at or near "SELCT"', "--schema"),
        ("SELECT CAST(variant AS INTEGER) FROM runs", "could not convert string", "--schema"),
        ("SELECT error('it is so') FROM runs", "it is so", "--schema"),
        ("COPY runs TO 'x'", "COPY is refused", "Give one SELECT"),
        ("SELECT 1; SELECT 2", "2 statements", "Give one SELECT"),
        ("-- nothing", "there is no SQL", "SELECT"),
        ("PIVOT runs ON variant USING sum(samples)", "PIVOT without IN", "Give one SELECT"),
    ],
)
def test_an_error_is_a_line_with_what_duckdb_takes_for_right(path, sql, what, hint):
    with pytest.raises(UsageError) as refused:
        list(ask(sql, [asked(path)]).rows())
    assert what in refused.value.what
    assert hint in refused.value.hint
    assert "LINE 1" not in str(refused.value)


@pytest.mark.parametrize(
    "sql",
    [
        "DESCRIBE runs", "SUMMARIZE runs", "SHOW TABLES", "WITH a AS (SELECT 1 AS x) FROM a", "VALUES (1)", "FROM runs",
        # A table is never empty because it was not seen in the SQL.
        'FROM "KERNELS"', "FROM query_table('ker' || 'nels')", "SELECT * FROM query('FROM ker' || 'nels')",
    ],
)  # fmt: skip
def test_what_only_reads_is_answered(path, sql):
    rows, _ = ask(sql, [asked(path)]).first(100)
    assert rows


def test_only_the_tables_that_are_read_are_made(path, monkeypatch):
    made = []
    before = execution.arrow_table
    monkeypatch.setattr(execution, "arrow_table", lambda table, *read: made.append(table.name) or before(table, *read))
    ask("SELECT 1 FROM runs JOIN samples USING (session, run)", [asked(path)])
    assert made == ["runs", "samples"]


def test_a_session_that_cannot_be_read_is_left_out_or_refused(path, tmp_path):
    bad = tmp_path / "bad.jaxprof"
    bad.write_bytes(b"")
    sql = "SELECT count(DISTINCT session) FROM runs"
    answer = ask(sql, [QueriedSession(path), QueriedSession(bad, optional=True)])
    assert answer.first(1)[0] == [[1]]
    assert answer.notices[0].startswith("bad was left out: ")
    with pytest.raises(FileRefusedError, match="is empty"):
        ask(sql, [QueriedSession(path), QueriedSession(bad)])


def test_the_first_rows_and_whether_there_are_more(path):
    for count, rows, more in ((1, [[0]], True), (3, [[0], [1], [2]], True), (4, [[0], [1], [2], [3]], False)):
        assert ask("FROM range(4) ORDER BY ALL", [asked(path)]).first(count) == (rows, more)


def test_repeated_names_are_numbered(path):
    assert ask("SELECT a.run, b.run, 1 FROM runs a, runs b", [asked(path)]).names == ["run", "run_1", "1"]


@pytest.mark.process
def test_a_call_that_asks_nobody_is_ended_with_its_process(path, monkeypatch):
    monkeypatch.setenv("JAXPROF_LIMITS", "query_time=1")
    sql = "SELECT 1 UNION ALL SELECT levenshtein(repeat('ab', 100000), repeat('ba', 100000))"  # 40 s, and no interrupt
    with (
        pytest.raises(UsageError, match="more than 1 s") as late,
        execution.execute(SqlProcess(), sql, [asked(path)]) as answer,
    ):
        list(answer.rows())
    assert "JAXPROF_LIMITS=query_time=4" in late.value.hint


@pytest.mark.process
def test_a_process_that_ends_before_its_answer_is_an_error(path, tmp_path, monkeypatch):
    monkeypatch.setattr(sql_process.sys, "executable", str(stand_in(tmp_path, "exit 1")))
    with pytest.raises(UsageError, match="ended with 1"), SqlProcess() as process:
        execution.execute(process, "SELECT 1", [asked(path)])


def test_a_query_that_needs_too_much_memory_says_so(path, monkeypatch):
    monkeypatch.setenv("JAXPROF_LIMITS", "query_memory=64MiB")
    with pytest.raises(UsageError, match=r"needs more than 64\.0 MiB"):
        list(ask("SELECT len(list(range)) FROM range(100000000)", [asked(path)]).rows())


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="the size of a process is read from /proc")
def test_a_value_that_is_too_large_does_not_take_the_machine():
    import resource

    before = resource.getrlimit(resource.RLIMIT_AS)
    with memory_bound(), pytest.raises(MemoryError):
        bytearray(3 * QUERY_MEMORY.most)
    assert resource.getrlimit(resource.RLIMIT_AS) == before


@pytest.mark.process
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="the size of a process is read from /proc")
def test_a_child_that_starts_meanwhile_is_not_bounded():
    import resource

    with memory_bound():
        process = SqlProcess()
    with process:
        assert resource.prlimit(process._process.pid, resource.RLIMIT_AS) == resource.getrlimit(resource.RLIMIT_AS)


def test_no_progress_bar_on_stdout(tmp_path):
    for connection in (connect(), connect(folder=tmp_path)):
        assert connection.execute("SELECT current_setting('enable_progress_bar')").fetchone() == (False,)
        with pytest.raises(duckdb.Error, match="locked"):
            connection.execute("SET enable_progress_bar = true")
    found = [path.name for path in Path(jaxprof.__file__).parent.rglob("*.py") if "duckdb.connect(" in path.read_text()]
    assert found == ["database.py"]


def test_only_the_folder_that_is_given_can_be_read(tmp_path):
    (tmp_path / "here").mkdir()
    for name in ("here/x.csv", "y.csv"):
        (tmp_path / name).write_text("a\n1\n")
    connection = connect(folder=tmp_path / "here")
    assert connection.execute(f"SELECT * FROM '{tmp_path}/here/x.csv'").fetchall() == [(1,)]
    for each in (connection, connect()):
        with pytest.raises(duckdb.Error):
            each.execute(f"SELECT * FROM '{tmp_path}/y.csv'")


def test_what_holds_of_many_sessions_is_one_notice(tmp_path):
    sources = []
    for number in range(40):
        path = tmp_path / f"s{number}.jaxprof"
        path.write_text("nothing" if number < 30 else f"<{number}>")
        sources.append(QueriedSession(path, optional=True))
    (notice,) = ask("SELECT * FROM runs", sources).notices
    assert notice.startswith("s0, s1, s2 and 37 more were left out: it is neither a session nor a profile")


def test_no_more_notices_than_anybody_reads(path, monkeypatch):
    session = jaxprof.load(path)
    monkeypatch.setattr(type(session), "notices", [f"notice {number}" for number in range(50)], raising=False)
    notices = ask("SELECT * FROM runs", [QueriedSession(path, session)]).notices
    assert len(notices) == 21
    assert notices[-1] == "30 further notices: query fewer sessions to read them"


@pytest.mark.parametrize("what", ["*", "COLUMNS(*)::VARCHAR", "[COLUMNS(*)]", "{'a': COLUMNS(*)}"])
def test_a_value_of_every_type_has_a_form(path, what):
    answer = ask(f"SELECT {what} FROM test_all_types()", [asked(path)])
    rows = list(answer.rows())
    assert len(rows) == 3
    plain = [plain_value(value) for row in rows for value in row]
    json_text([value for value in plain if not isinstance(value, float)])  # raises for NaN within a container
    assert "\n".join(csv_lines(rows_table(answer.reader.schema, rows)))
    assert list(text_lines(rows_table(answer.reader.schema, rows), indent="", all_columns=True))


def test_a_value_that_is_too_large_to_print_is_refused(path, monkeypatch):
    monkeypatch.setenv("JAXPROF_LIMITS", "query_memory=64MiB")
    with pytest.raises(UsageError, match="a part of the answer needs more than 64"):
        list(ask("SELECT repeat('x', 20000000)", [asked(path)]).rows())
