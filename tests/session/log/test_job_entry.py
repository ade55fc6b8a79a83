"""The folder of a job in the list of sessions: one line, and what is done with it is done with all of it, or not."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import job_folders
from jaxprof.errors import StorageError
from jaxprof.session.log import Library, LogWriter, new_header
from jaxprof.session.log.state import make_derived_folder


@pytest.fixture
def library(tmp_path: Path, state_home: Path) -> Library:
    return Library(tmp_path / "sessions")


def job(library: Library, name: str = "train", *, count: int = 3, changed: float = 2e9) -> Path:
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


def session(library: Library, name: str, changed: float) -> Path:
    path = library.folder / f"{name}.jaxprof"
    LogWriter(new_header(), path).close()
    os.utime(path, (changed, changed))
    return path


def test_a_job_is_one_entry_between_the_sessions(library):
    old, new = session(library, "old", 1e9), session(library, "new", 3e9)
    folder = job(library)
    (library.folder / "empty.jaxprof.d").mkdir()
    assert [entry.path for entry in library.listed()] == [new, folder, old]
    assert [entry.path for entry in library.listed(1)] == [new]
    assert library.paths() == [new, old]
    entry = list(library.listed())[1]
    assert (entry.name, entry.workloads, entry.problem) == ("train.jaxprof.d", ["train.py"], "")
    assert (entry.complete, entry.live, entry.modified_seconds) == (True, False, 2e9)
    assert entry.size_bytes == sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    assert entry.job is not None
    assert (entry.job.by_status, entry.job.missing, entry.job.count) == ({"ok": 3}, 0, 3)
    assert entry.job.hosts == ["node0", "node1", "node2"]


def test_how_each_process_ended_is_read_from_its_end(library):
    folder = job(library, count=4)
    (folder / "process-00001.jaxprof").write_bytes(
        (folder / "process-00001.jaxprof").read_bytes().replace(b'"status":"ok"', b'"status":"failed"')
    )
    cut = (folder / "process-00002.jaxprof").read_bytes().splitlines(keepends=True)
    (folder / "process-00002.jaxprof").write_bytes(b"".join(cut[:3]))
    (folder / "process-00003.jaxprof").unlink()
    (folder / "process-00000.jaxprof").rename(folder / "process-00000-2.jaxprof")
    (folder / "process-00000.jaxprof").write_text("an attempt before, which is none")
    [entry] = library.listed()
    assert entry.job is not None
    assert [each.status for each in entry.job.processes] == ["ok", "failed", "interrupted"]
    assert entry.job.missing == 1
    assert not entry.complete


def test_names_find_a_job_only_where_one_will_do(library):
    folder, old = job(library), session(library, "old", 1e9)
    for name in ("train", "train.jaxprof.d", "last", "trai"):
        assert library.search(name, jobs=True) == folder
    assert library.search("last") == old
    assert library.search("train") is None
    session(library, "new", 3e9)
    assert library.search("last", jobs=True) == library.folder / "new.jaxprof"


def test_delete_takes_the_whole_folder_and_what_was_derived_and_no_folder_that_holds_anything_else(library):
    folder, kept = job(library), job(library, "other")
    derived = make_derived_folder(folder / "process-00001.jaxprof")
    (kept / "model.ckpt").write_text("a week of training")
    before = sorted(kept.rglob("*"))
    library.delete(folder)
    with pytest.raises(StorageError, match=r"it also holds model\.ckpt"):
        library.delete(kept)
    assert (folder.exists(), derived.exists(), sorted(kept.rglob("*"))) == (False, False, before)


def test_a_job_that_runs_is_neither_deleted_nor_renamed_nor_pruned(library):
    folder = job(library)
    (folder / "process-00001.jaxprof").unlink()
    writer = LogWriter(new_header(), folder / "process-00001.jaxprof")
    try:
        [entry] = library.listed()
        assert (entry.live, entry.running) == (True, True)
        for what in (library.delete, lambda path: library.rename(path, "x")):
            with pytest.raises(StorageError, match="its processes are running"):
                what(folder)
        assert library.prunable(keep=0) == []
    finally:
        writer.close()
    assert library.prunable(keep=0) == [folder]


def test_rename_keeps_it_a_job(library):
    folder = job(library)
    derived = make_derived_folder(folder / "process-00001.jaxprof")
    renamed = library.rename(folder, "better.jaxprof.d")
    assert (renamed.name, derived.exists()) == ("better.jaxprof.d", False)
    assert [entry.path for entry in library.listed()] == [renamed]
    job(library)
    with pytest.raises(StorageError, match="already exists"):
        library.rename(renamed, "train")


def test_a_copy_is_whole_and_never_over_another(library, tmp_path):
    folder = job(library)
    (tmp_path / "elsewhere").mkdir()
    copied = library.copy(folder, tmp_path / "elsewhere")
    assert copied == tmp_path / "elsewhere" / folder.name
    assert len(list(copied.rglob("*"))) == len(list(folder.rglob("*")))
    with pytest.raises(StorageError, match="already exists"):
        library.copy(folder, copied, replace=True)
    new, old = session(library, "new", 3e9), session(library, "old", 1e9)
    assert library.prunable(keep=1) == [folder, old]
    assert library.prunable(max_bytes=new.stat().st_size + 10) == [folder, old], "by the size of all of it"


def test_jobs_in_the_current_folder_are_listed_and_never_pruned(state_home, tmp_path, monkeypatch):
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    folder = job(Library(here))
    library = Library()
    assert [entry.path for entry in library.listed()] == [folder]
    assert library.search("last", jobs=True) == folder
    assert library.prunable(keep=0) == []
