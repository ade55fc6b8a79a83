"""Named baselines on disk: whole or not at all, with decisions that are never ignored."""

import os
import threading
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from unittest.mock import Mock

import pytest

from jaxprof.errors import FileRefusedError, StorageError, UsageError
from jaxprof.session.log import LogWriter
from jaxprof.session.log.baselines import Baselines, Decision
from report import sessions

DECISION = Decision(
    program="f.py:step jit cpu:0", fact="flops", value=110.0, reason="why", decided="2026-11-22T00:00:00Z"
)


@pytest.fixture
def session(tmp_path):
    path = tmp_path / "s.jaxprof"
    LogWriter(sessions.HEADER, path).close()
    return path


def test_a_baseline_is_a_copy_that_is_found_by_its_name_and_only_its_owner_reads(session):
    baselines = Baselines()
    path = baselines.save("main", session, replace=False)
    assert path.read_bytes() == session.read_bytes()
    assert (baselines.names(), baselines.find("main"), baselines.search("other")) == (["main"], path, None)
    with pytest.raises(UsageError, match="unknown baseline 'mian'"):
        baselines.find("mian")
    baselines.decide("main", [DECISION])
    assert baselines.folder.stat().st_mode & 0o777 == 0o700
    for kept in (path, path.with_name("main.decisions.json")):
        assert kept.stat().st_mode & 0o777 == 0o600
    baselines.delete("main")
    assert (baselines.names(), [left.name for left in baselines.folder.iterdir()]) == ([], [".lock"])
    baselines.save("main", session, replace=False)
    assert baselines.decisions("main") == (), "they were deleted with it"


@pytest.mark.parametrize("name", ["", "..", "a/b", "a:b", "-x", ".x", "x.py", "x.jaxprof", "a\n", "a" * 81, "a b"])
def test_a_path_is_no_name(session, name):
    with pytest.raises(UsageError, match="cannot be the name"):
        Baselines().save(name, session, replace=False)
    assert Baselines().search(name) is None


@pytest.fixture
def main(session):
    """A baseline of that name, with a decision."""
    baselines = Baselines()
    baselines.save("main", session, replace=False)
    baselines.decide("main", [DECISION])
    return baselines


def test_a_taken_name_is_replaced_only_on_purpose_and_the_decisions_go_with_it(main, session):
    with pytest.raises(UsageError, match="already"):
        main.save("main", session, replace=False)
    assert main.decisions("main") == (DECISION,)
    main.save("main", session, replace=True)
    assert main.decisions("main") == ()


def test_after_an_error_everything_is_as_before(main):
    before = {path.name: path.read_bytes() for path in main.folder.iterdir()}
    with suppress(RuntimeError), main.replacing("main", replace=True) as fresh:
        fresh.write_text("half of it")
        raise RuntimeError
    assert {path.name: path.read_bytes() for path in main.folder.iterdir()} == before


def test_decisions_that_are_made_at_once_are_all_kept_and_of_two_about_a_fact_the_later(main):
    made = [replace(DECISION, program=str(number)) for number in range(16)]
    threads = [threading.Thread(target=main.decide, args=("main", [one])) for one in made]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(main.decisions("main")) == {DECISION, *made}
    later = replace(made[0], value=120.0, reason="more")
    main.decide("main", [later])
    assert set(main.decisions("main")) == {DECISION, later, *made[1:]}


DAMAGED = {
    "empty": b"",
    "torn": b'{"schema":1,"dec',
    "another field": b'{"schema":1,"decisions":[{"program":1}]}',
    "deep": b"[" * 100_000,
    "newer": b'{"schema":2,"decisions":[]}',
}


@pytest.mark.parametrize("damage", DAMAGED)
def test_a_file_of_decisions_that_cannot_be_read_is_an_error_that_names_it(main, damage):
    text, said = DAMAGED[damage], "newer jaxprof" if damage == "newer" else "is damaged"
    path = main.find("main").with_name("main.decisions.json")
    path.write_bytes(text)
    for ask in (lambda: main.decisions("main"), lambda: main.decide("main", [DECISION])):
        with pytest.raises(FileRefusedError, match=rf"main\.decisions\.json.*{said}"):
            ask()
    assert path.read_bytes() == text


def test_what_the_file_system_refuses_of_a_baseline_is_told(session):
    baselines = Baselines()
    path = baselines.save("main", session, replace=False)
    path.with_name("main.decisions.json").mkdir()
    with pytest.raises(FileRefusedError, match=r"main\.decisions\.json cannot be read"):
        baselines.decisions("main")
    with pytest.raises(StorageError, match=r"main\.jaxprof cannot be deleted"):
        baselines.delete("main")
    path.with_name("main.decisions.json").rmdir()
    (baselines.folder / ".lock").mkdir()
    with pytest.raises(StorageError, match="baselines cannot be written"):
        baselines.decide("main", [DECISION])
    assert (baselines.names(), baselines.decisions("main")) == (["main"], ())


def test_a_session_that_is_being_written_is_no_baseline_yet(tmp_path):
    path = tmp_path / "live.jaxprof"
    writer = LogWriter(sessions.HEADER, path)
    with pytest.raises(UsageError, match="being written"):
        Baselines().save("main", path, replace=False)
    assert Baselines().names() == []
    writer.close()
    assert Baselines().save("main", path, replace=False).exists()


def test_a_decision_is_on_the_disk_before_it_takes_the_place_of_the_earlier_ones(session, monkeypatch):
    baselines = Baselines()
    path = baselines.save("main", session, replace=False).with_name("main.decisions.json")
    synced = []
    monkeypatch.setattr(os, "fsync", lambda file: synced.append((os.fstat(file).st_size, path.exists())))
    baselines.decide("main", [DECISION])
    assert synced == [(path.stat().st_size, False)]


def test_decisions_that_cannot_be_written_leave_the_earlier_ones(main, monkeypatch):
    before = sorted(main.folder.iterdir())
    with monkeypatch.context() as full:
        full.setattr(Path, "replace", Mock(side_effect=OSError(28, "No space left on device")))
        with pytest.raises(StorageError, match="cannot be written"):
            main.decide("main", [replace(DECISION, value=1.0)])
    assert sorted(main.folder.iterdir()) == before
    assert main.decisions("main") == (DECISION,)
