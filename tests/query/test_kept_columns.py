"""Kept columns answer as the session does, and only for the session, the code and the limits that they are from."""

import json
import os
import shutil
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jaxprof import events as e
from jaxprof.facts.tables import TABLES
from jaxprof.query import execution, kept_columns
from jaxprof.query.execution import QueriedSession, tables_of
from jaxprof.session import Library
from query.conftest import events, write

RECORDED = sorted(Path(__file__, "../../../screenshots/sessions").resolve().glob("*.jaxprof"))
SQL = "FROM runs JOIN sessions USING (session)"
PURE = {fact.key for name in ("runs", "sessions") for fact in TABLES[name].facts} - {"path", "from_file"}


@pytest.fixture
def session(tmp_path, monkeypatch):
    monkeypatch.setenv("JAXPROF_HOME", str(tmp_path))
    monkeypatch.setattr(kept_columns, "_SETTLED_NS", 0)
    (tmp_path / "sessions").mkdir()
    path = tmp_path / "sessions" / "one.jaxprof"
    write(path, [e.WarningRaised(code="", message="what the file lacks"), *events()])
    return path


def answers(path, needed=PURE, sql=SQL):
    found, notices = tables_of(sql, [QueriedSession(path, optional=True)], needed)
    return {name: table.to_pylist() for name, table in found.items() if len(table)}, notices


@pytest.fixture
def reads(monkeypatch):
    """The names of the sessions that were read."""
    names, load = [], execution.load
    monkeypatch.setattr(execution, "load", lambda path, kind: names.append(path.name) or load(path, kind))
    return names


@pytest.mark.parametrize("recorded", RECORDED, ids=lambda path: path.stem)
def test_every_column_of_a_recorded_session_is_the_same(session, reads, recorded):
    shutil.copyfile(recorded, session)
    assert answers(session) == answers(session)
    assert reads == ["one.jaxprof"]


def test_a_second_query_has_the_same_rows_and_notices(session, reads):
    first = answers(session, {"median_seconds"})
    assert first[1] == ["one: what the file lacks"]
    assert answers(session, {"median_seconds"}) == first
    assert len(reads) == 1
    more = answers(session, {"variant"})
    assert len(reads) == 2
    assert answers(session, {"median_seconds", "variant"})[0] != more[0]
    assert len(reads) == 2


def test_a_session_that_changed_is_read_again(session, reads, tmp_path):
    whole = session.read_bytes()
    before = answers(session)
    written = session.stat()
    session.write_bytes(whole.replace(b'"variant":"jit"', b'"variant":"jjj"'))
    os.utime(session, ns=(written.st_atime_ns, written.st_mtime_ns))
    assert answers(session) != before, "of the same size and time"
    session.write_bytes(whole[:-60])
    assert answers(session)[1] != before[1], "truncated"
    other = tmp_path / "other"
    write(other, events()[:-1])
    other.replace(session)
    assert len(answers(session)[0]["runs"]) == len(before[0]["runs"]), "replaced"
    assert len(reads) == 4


def test_a_session_without_its_end_is_not_kept(session, reads):
    lines = session.read_bytes().splitlines(keepends=True)
    session.write_bytes(b"".join(line for line in lines if b'"session_closed"' not in line))
    assert answers(session) == answers(session)
    assert len(reads) == 2


def test_a_session_that_was_just_written_is_not_kept(session, reads, monkeypatch):
    monkeypatch.setattr(kept_columns, "_SETTLED_NS", 10**12)  # a change within a tick of that clock would not show
    assert answers(session) == answers(session)
    assert len(reads) == 2


@pytest.mark.parametrize("column", ["path", "from_file"])
def test_a_column_about_more_than_the_file_is_not_kept(session, reads, column):
    assert answers(session, {column}) == answers(session, {column})
    assert len(reads) == 2


def test_other_code_and_other_limits_read_again(session, reads, monkeypatch):
    answers(session)
    monkeypatch.setattr(kept_columns, "__version__", "0.0.9")
    answers(session)
    monkeypatch.setenv("JAXPROF_LIMITS", "line=1KiB")
    assert any("lines of more than" in notice for notice in answers(session)[1])
    assert len(reads) == 3


def kept_file(session):
    return session.parents[1] / "columns.json"


def damage(session, change):
    file = kept_file(session)
    content = json.loads(file.read_bytes())
    change(content["sessions"]["one.jaxprof"])
    file.write_text(json.dumps(content))


@pytest.mark.parametrize("change", [
    lambda kept: kept.clear(),
    lambda kept: kept.update(notices=[1]),
    lambda kept: kept["columns"].pop("runs"),
    lambda kept: kept["columns"]["runs"].update(run="r1"),
    lambda kept: kept["columns"]["runs"].update(run=["r1"]),
    lambda kept: kept["columns"]["runs"].update(variant=[{}] * 4),
    lambda kept: kept["columns"]["runs"].update(samples=[1e300, 1, 1, 1]),
    lambda kept: kept["columns"]["runs"].update(median_seconds=["1", None, None, None]),
    lambda kept: kept["columns"]["runs"].update(check_passed=[1, None, None, None]),
])  # fmt: skip
def test_what_does_not_fit_is_derived_and_written_again(session, reads, change):
    before = answers(session)
    damage(session, change)
    assert answers(session) == before
    assert answers(session) == before
    assert len(reads) == 2


DAMAGED = {
    "empty": b"",
    "null": b"null",
    "bytes": b"\xff" * 9,
    "deep": b"[" * 100_000,
    "deep_entry": b'{"made_by":"","sessions":' + b'{"a":' * 100_000,
}


@pytest.mark.parametrize("content", DAMAGED.values(), ids=DAMAGED)
def test_a_damaged_file_is_left_out(session, content):
    before = answers(session)
    kept_file(session).write_bytes(content)
    assert answers(session) == before


@settings(max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.data())
def test_a_changed_file_of_columns_does_no_harm(session, data):
    if not kept_file(session).exists():
        answers(session)
    whole = kept_file(session).read_bytes()
    at = data.draw(st.integers(0, len(whole) - 1))
    changed = whole[:at] + data.draw(st.binary(max_size=4)) + whole[at + data.draw(st.integers(0, 4)) :]
    kept_file(session).write_bytes(changed)
    answers(session)
    kept_file(session).write_bytes(whole)


def test_a_home_that_cannot_be_written_is_read_each_time(session, reads):
    kept_file(session).mkdir()
    assert answers(session) == answers(session)
    assert len(reads) == 2
    assert not any(kept_file(session).iterdir())


def test_the_columns_are_the_owners_and_leave_with_a_session(session):
    other = write(session.with_name("two.jaxprof"))
    answers(session)
    session.unlink()
    answers(other)
    file = kept_file(session)
    assert list(json.loads(file.read_bytes())["sessions"]) == ["two.jaxprof"]
    assert file.stat().st_mode & 0o777 == 0o600
    Library().delete(other)
    assert not file.exists()


def test_sessions_elsewhere_are_not_kept(session, reads, tmp_path):
    elsewhere = write(tmp_path / "one.jaxprof")
    answers(session)
    answers(elsewhere), answers(elsewhere)
    assert reads == ["one.jaxprof"] * 3
