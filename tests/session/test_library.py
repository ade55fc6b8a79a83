"""The kept sessions, and the folders of jobs among them: one line in the list, and what is done with one is done with
all of it, or not. What is derived from a session has a folder of its own, which goes when the session goes."""

import os
import time
from dataclasses import replace
from pathlib import Path

import pytest

import job_folders
import program_events
from folding import written
from jaxprof import events as e
from jaxprof.base.errors import StorageError, UsageError
from jaxprof.session import Library, LogWriter, new_header
from jaxprof.session.files import copies_folder, lasting_name, state_folder
from jaxprof.session.library import read_entry
from jaxprof.session.lines import is_live
from report import sessions


def make(library, name, changed=None, *, close=True):
    """A session that was last changed at that time (Unix seconds), by default now."""
    text = e.LogLine(run="r1", stream="stdout", text='{"type":"run_closed" is only text here')
    events = [sessions.plan("r1", "jit", "jit"), text, replace(sessions.closed("r1", "jit", 1.0), median_seconds=1e-3)]
    path = library.folder / f"{name}.jaxprof"
    written(path, [*events, e.SessionClosed()] if close else events, new_header())
    if changed is not None:
        os.utime(path, (changed, changed))
    return path


@pytest.fixture
def library(tmp_path):
    return Library(tmp_path / "sessions")


def test_listing_reads_summaries_of_the_newest_first(library):
    make(library, "old", 1e9)
    make(library, "new", close=False)
    (library.folder / "odd.jaxprof").write_text("not one")
    os.utime(library.folder / "odd.jaxprof", (1, 1))
    (library.folder / "folder.jaxprof").mkdir()
    (library.folder / "notes.txt").touch()
    new, old, odd = list(library.entries())
    assert new.name == "new"
    assert new.complete is False
    assert new.live is False
    assert old.name == "old"
    assert old.complete is True
    assert old.workloads == ["selu"]
    assert [closed.median_seconds for closed in old.closed] == [1e-3]
    assert odd.header is None
    assert "neither a session nor a profile" in odd.problem
    assert [entry.name for entry in library.entries(limit=2)] == ["new", "old"]


def test_a_session_is_named_by_its_time_and_its_id(library):
    header = replace(new_header(), created="2026-11-18T11:06:40Z", session="feedbeef")
    assert library.new_path(header) == library.folder / "2026-11-18T11-06-40-feed.jaxprof"


def test_folders_of_sessions_and_copies(tmp_path, monkeypatch):
    monkeypatch.delenv("JAXPROF_HOME")
    for kind in ("state", "cache"):
        monkeypatch.setattr(f"platformdirs.user_{kind}_path", (tmp_path / kind).joinpath)
    assert state_folder() == tmp_path / "state" / "jaxprof"
    assert copies_folder() == tmp_path / "cache" / "jaxprof" / "fetched"


def test_what_vanishes_while_it_is_listed_is_left_out(library, monkeypatch):
    kept, gone = make(library, "kept"), make(library, "gone")
    (library.folder / "nowhere.jaxprof").symlink_to(library.folder / "there is none")
    assert set(library.paths()) == {kept, gone}
    monkeypatch.setattr(Library, "paths", lambda self: [gone, kept])
    gone.unlink()
    assert [entry.name for entry in library.entries()] == ["kept"]


def test_a_job_of_which_a_session_vanishes_is_listed_without_it(library, monkeypatch):
    folder = job(library)
    there = sorted(folder.glob("*.jaxprof"))
    monkeypatch.setattr("jaxprof.session.library._sessions", lambda folder: there)
    there[0].unlink()
    [listed] = library.entries()
    assert [process.path for process in listed.job.processes] == there[1:]
    for path in there[1:]:
        path.unlink()
    assert list(library.entries()) == []


def test_listed_session_is_live_until_complete(library):
    path = library.folder / "now.jaxprof"
    writer = LogWriter(new_header(), path)
    assert read_entry(path).live is True
    assert read_entry(path).complete is False
    writer.append(e.SessionClosed())
    assert read_entry(path).live is False
    assert read_entry(path).complete is True


def test_find(library, tmp_path, monkeypatch):
    one, two = make(library, "alpha-1", 1e9), make(library, "alpha-2")
    for name, found in (("alpha-1", one), ("alpha-1.jaxprof", one), (str(two), two), ("last", two), ("a-2", two)):
        assert library.find(name) == found
    with pytest.raises(UsageError, match="2 sessions"):
        library.find("alpha")
    with pytest.raises(UsageError) as caught:
        library.find("alhpa-1")
    assert "alpha-1" in caught.value.hint
    nothing_kept = Library(tmp_path / "none")
    assert nothing_kept.search("alpha") is None
    with pytest.raises(UsageError, match="no session is kept yet"):
        nothing_kept.search("last")
    elsewhere = tmp_path / one.name
    monkeypatch.setenv("JAXPROF_HOME", str(tmp_path))
    assert (lasting_name(one), lasting_name(elsewhere)) == ("alpha-1", str(elsewhere))
    assert lasting_name(Path("./-rf.jaxprof")) == "./-rf.jaxprof", "an option otherwise"
    assert lasting_name(one.with_name("-rf.jaxprof")) == str(one.with_name("-rf.jaxprof"))


def test_rename_delete(library):
    path = make(library, "a")
    make(library, "b")
    with pytest.raises(StorageError):
        library.rename(path, "b")
    for bad in ("", " ", ".", "..", ".jaxprof", "x/y", "a\nb", "a\x7f"):
        with pytest.raises(UsageError):
            library.rename(path, bad)
    assert library.rename(path, " a.jaxprof ") == path, "its own name"
    renamed = library.rename(path, "c")
    assert renamed.exists()
    assert not path.exists()
    library.delete(renamed)
    library.delete(renamed)  # gone already: no error
    assert not renamed.exists()


def test_library_reports_what_the_file_system_refuses(library):
    path = make(library, "a")
    folder = library.folder / "b.jaxprof"
    (folder / "inside").mkdir(parents=True)
    too_long = "x" * 300
    with pytest.raises(StorageError, match=r"a\.jaxprof cannot be renamed: File name too long"):
        library.rename(path, too_long)
    with pytest.raises(StorageError, match=r"b\.jaxprof cannot be deleted"):
        library.delete(folder)
    assert library.search(too_long) is None
    assert sorted(each.name for each in library.folder.iterdir()) == ["a.jaxprof", "b.jaxprof"]


def test_prune_spares_the_newest_and_the_living(library):
    paths = [make(library, f"s{index}", time.time() - 86_400 * index) for index in range(4)]
    live = LogWriter(new_header(), library.folder / "live.jaxprof")
    os.utime(library.folder / "live.jaxprof", (1, 1))
    assert is_live(library.folder / "live.jaxprof")
    assert len(library.prunable(max_bytes=0)) == 4
    with pytest.raises(StorageError, match="being written"):
        library.delete(library.folder / "live.jaxprof")
    live.close()
    assert not is_live(library.folder / "live.jaxprof")
    (library.folder / "live.jaxprof").unlink()
    sizes = [path.stat().st_size for path in paths]
    assert library.prunable(max_bytes=sum(sizes)) == library.prunable(keep=4) == library.prunable() == []
    assert library.prunable(max_bytes=sum(sizes[:2])) == library.prunable(keep=2) == paths[2:]
    assert library.prunable(max_bytes=sum(sizes[:2]) - 1) == paths[1:]
    assert library.prunable(keep=3, older_than_days=1.5) == paths[2:], "one reason is enough"


def job(library, name="train", *, count=3, changed=2e9):
    """A job of processes that ended well, with a roll-up."""
    folder = library.folder / f"{name}.jaxprof.d"
    folder.mkdir(parents=True)
    for index in range(count):
        job_folders.process(folder, index, count)
        os.utime(folder / f"process-{index:05}.jaxprof", (changed, changed))
    (folder / "rollup" / "steps").mkdir(parents=True)
    (folder / "rollup" / "steps" / "process-00000.parquet").write_bytes(b"12345")
    (folder / "capture.json").write_text("{}")
    return folder


def test_a_job_is_one_entry_between_the_sessions(library):
    old, new = make(library, "old", 1e9), make(library, "new", 3e9)
    folder = job(library)
    (library.folder / "empty.jaxprof.d").mkdir()
    assert [entry.path for entry in library.entries()] == [new, folder, old]
    assert [entry.path for entry in library.entries(1)] == [new]
    assert library.paths() == [new, old]
    entry = list(library.entries())[1]
    assert entry.name == "train.jaxprof.d"
    assert entry.workloads == ["train.py"]
    assert entry.problem == ""
    assert entry.complete is True
    assert entry.live is False
    assert entry.modified_seconds == 2e9
    assert entry.size_bytes == sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    assert entry.job.by_status == {"ok": 3}
    assert entry.job.missing == 0
    assert entry.job.count == 3
    assert entry.job.hosts == ["node0", "node1", "node2"]


def test_how_each_process_ended_is_read_from_its_end(library):
    again, failed, cut, gone = sorted(job(library, count=4).glob("*.jaxprof"))
    failed.write_bytes(failed.read_bytes().replace(b'"status":"ok"', b'"status":"failed"'))
    cut.write_bytes(b"".join(cut.read_bytes().splitlines(keepends=True)[:3]))
    gone.unlink()
    again.rename(again.with_name("process-00000-2.jaxprof"))
    again.write_text("an attempt before, which is none")
    [entry] = library.entries()
    assert [each.status for each in entry.job.processes] == ["ok", "failed", "interrupted"]
    assert entry.job.missing == 1
    assert entry.complete is False


def test_find_jobs_by_name_and_last(library):
    folder, old = job(library), make(library, "old", 1e9)
    for name in ("train", "train.jaxprof.d", "trai"):
        assert library.search(name) == library.search(name, jobs=True) == folder
    assert (library.search("last"), library.search("last", jobs=True)) == (old, folder)
    make(library, "new", 3e9)
    assert library.search("last", jobs=True) == library.folder / "new.jaxprof"
    make(library, "train")
    with pytest.raises(UsageError, match="2 sessions") as caught:
        library.search("train")
    assert str(folder) in caught.value.hint
    assert library.search("train.jaxprof.d") == folder


def test_a_script_finds_its_newest_session(library, tmp_path, monkeypatch):
    def recorded(name, folder, changed, script="train.py"):
        (tmp_path / folder).mkdir(exist_ok=True)
        monkeypatch.setattr(program_events, "FOLDER", str(tmp_path / folder))
        path = written(library.folder / f"{name}.jaxprof", program_events.program(argv=[script]), new_header())
        os.utime(path, (changed, changed))
        return path

    recorded("one", "here", 1e9)
    two = recorded("two", "here", 2e9)
    recorded("three", "here", 3e9, "other.py")
    for name in ("train", "train.py", str(tmp_path / "here" / "train.py")):
        assert library.of_script(name) == two
    there = recorded("four", "there", 4e9)
    with pytest.raises(UsageError, match=r"train\.py was recorded in 2 folders") as caught:
        library.of_script("train.py")
    assert f"four of {tmp_path / 'there'}, two of {tmp_path / 'here'}" in caught.value.hint
    for folder, found in (("here", two), ("there", there)):
        monkeypatch.chdir(tmp_path / folder)
        assert library.of_script("train") == found
    program = tmp_path / "elsewhere" / "train.py"
    program.parent.mkdir()
    program.write_text("")
    assert library.of_script(str(program)) is None, "which was not recorded"
    assert library.of_script("trainer") is None


def test_delete_refuses_folders_with_other_files(library):
    folder, kept = job(library), job(library, "other")
    (kept / "model.ckpt").write_text("a week of training")
    before = sorted(kept.rglob("*"))
    library.delete(folder)
    with pytest.raises(StorageError, match=r"it also holds model\.ckpt"):
        library.delete(kept)
    assert not folder.exists()
    assert sorted(kept.rglob("*")) == before


def test_running_job_is_not_deleted_renamed_or_pruned(library):
    folder = job(library)
    (folder / "process-00001.jaxprof").unlink()
    writer = LogWriter(new_header(), folder / "process-00001.jaxprof")
    try:
        [entry] = library.entries()
        assert entry.live is True
        assert entry.running is True
        for what in (library.delete, lambda path: library.rename(path, "x")):
            with pytest.raises(StorageError, match="it is being written"):
                what(folder)
        assert library.prunable(keep=0) == []
    finally:
        writer.close()
    assert library.prunable(keep=0) == [folder]


def test_rename_keeps_it_a_job(library):
    folder = job(library)
    renamed = library.rename(folder, "better.jaxprof.d")
    assert renamed.name == "better.jaxprof.d"
    assert [entry.path for entry in library.entries()] == [renamed]
    job(library)
    with pytest.raises(StorageError, match="already exists"):
        library.rename(renamed, "train")


def test_a_job_is_pruned_by_the_size_of_all_of_it(library):
    folder = job(library)
    new, old = make(library, "new", 3e9), make(library, "old", 1e9)
    assert library.prunable(keep=1) == [folder, old]
    assert library.prunable(max_bytes=new.stat().st_size + 10) == [folder, old], "by the size of all of it"


def test_jobs_in_the_current_folder_are_listed_and_never_pruned(state_home, tmp_path, monkeypatch):
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    folder = job(Library(here))
    library = Library()
    assert [entry.path for entry in library.entries()] == [folder]
    assert library.search("last", jobs=True) == folder
    assert library.prunable(keep=0) == []
