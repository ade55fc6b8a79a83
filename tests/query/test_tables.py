"""Every table holds what the session says, and NULL where it says nothing. Tables are made once of a session, and
anew when it or what they rest on has changed; never beside a session. Their rows are in `tests/net`."""

import os
import re
from pathlib import Path

import pytest

from folding import fold
from jaxprof import events as e
from jaxprof.query import asking as cache
from jaxprof.query.tables import TABLES
from jaxprof.session import log
from jaxprof.session.log import Library
from jaxprof.session.log.state import derived_folder, forget_derived_of_lost
from query.conftest import TIMELINE, ask, asked, events, write
from report import sessions


@pytest.mark.parametrize("name", TABLES)
def test_every_table_has_rows_under_the_columns_that_its_schema_has(path, name):
    answer = ask(f"SELECT * FROM {name}", [asked(path, "whole")])
    table = answer.table()
    assert answer.names == ["session", *(fact.key for fact in TABLES[name].facts)]
    assert len(table) > 0
    assert set(table["session"].to_pylist()) == {"whole"}
    filled = {column for column in table.column_names if table[column].null_count < len(table)}
    assert len(filled) > 1


QUESTIONS = re.findall(
    r"^```sql\n(.*?)^```", (Path(__file__).parents[2] / "docs" / "query.md").read_text(), re.MULTILINE | re.DOTALL
)


@pytest.mark.parametrize("sql", QUESTIONS, ids=lambda sql: " ".join(sql.split())[:50])
def test_a_documented_question_is_answered(path, sql):
    found, _ = ask(sql, [asked(path)]).first(1)
    assert found or "times_the_" in sql, "these samples are even, and these kernels have no ceiling"


def test_what_a_timeline_lacks_is_said(path, tmp_path):
    answer = ask("FROM intervals", [asked(path)])
    assert len(answer.first(100)[0]) == sum(len(lane["label"]) for lane in TIMELINE["lanes"])
    assert answer.notices == ["s: the 2 shortest intervals of run r3 are not in its timeline"]
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


def count(path, table="runs"):
    rows, _ = ask(f"SELECT count(*) FROM {table}", [asked(path)]).first(1)
    return int(rows[0][0])


@pytest.fixture
def no_reading(monkeypatch):
    """From now on no session can be read."""

    def refuse(*_):
        raise AssertionError("the session was read")

    monkeypatch.setattr(log, "load", refuse)
    return monkeypatch


def test_the_second_query_does_not_read_the_session(path, request):
    first = ask("SELECT * FROM intervals", [asked(path)])
    rows, notices = first.table().to_pylist(), first.notices
    request.getfixturevalue("no_reading")
    again = ask("SELECT * FROM intervals", [asked(path)])
    assert again.table().to_pylist() == rows
    assert again.notices == notices != []
    with pytest.raises(AssertionError):
        count(path, "kernels")


def test_a_session_that_has_grown_or_changed_is_read_anew(tmp_path):
    path = write(tmp_path / "s.jaxprof", events()[:-20])
    before = count(path)
    path.unlink()
    write(path)
    assert count(path) == 4 != before
    samples = count(path, "samples")
    text = path.read_bytes()
    path.write_bytes(text.replace(b'"samples_taken"', b'"sample0_taken"'))
    os.utime(path, ns=(1, 1))
    assert count(path, "samples") < samples


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: b"{}\n" + data,
        lambda data: data[: len(data) // 2],
        lambda data: data[:-9] + bytes([data[-9] ^ 1]) + data[-8:],
        lambda data: data.replace(b"r3", b"r9"),
    ],
)
def test_a_damaged_copy_is_as_good_as_none(path, damage):
    right = ask("SELECT * FROM runs", [asked(path)]).table()
    kept = derived_folder(path) / "runs.arrow"
    whole = kept.read_bytes()
    kept.write_bytes(damage(whole))  # type: ignore[operator]
    assert ask("SELECT * FROM runs", [asked(path)]).table() == right
    assert kept.read_bytes() == whole


@pytest.mark.parametrize("name", ["__version__", "_FORMAT"])
def test_a_copy_of_another_jaxprof_is_made_anew(path, monkeypatch, name, request):
    count(path)
    monkeypatch.setattr(cache, name, "another")
    request.getfixturevalue("no_reading")
    with pytest.raises(AssertionError):
        count(path)


def test_a_state_folder_that_cannot_be_written_costs_no_answer(path, state_home):
    state_home.rmdir()
    state_home.write_text("a file, where a folder should be")
    assert count(path) == 4


def test_copies_go_with_their_session(tmp_path, state_home):
    library = Library()
    library.folder.mkdir(parents=True)
    first, second = write(library.folder / "a.jaxprof"), write(library.folder / "b.jaxprof")
    elsewhere = write(tmp_path / "c.jaxprof")
    for each in (first, second, elsewhere):
        count(each)
    library.delete(first)
    renamed = library.rename(second, "d")
    assert count(renamed) == 4
    forget_derived_of_lost()
    paths = (first, second, renamed, elsewhere)
    assert [derived_folder(path).exists() for path in paths] == [False, False, True, True]
    elsewhere.unlink()
    forget_derived_of_lost()
    assert [derived_folder(path).exists() for path in paths] == [False, False, True, False]
