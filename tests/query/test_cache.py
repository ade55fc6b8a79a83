"""Tables are made once of a session, and anew when it or what they rest on has changed; never beside a session."""

import os

import pytest

from jaxprof.query import asking as cache
from jaxprof.session import log
from jaxprof.session.log import Library
from jaxprof.session.log.state import derived_folder, forget_derived_of_lost
from query.conftest import ask, asked, events, write


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
