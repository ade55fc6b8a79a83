from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from jaxprof import events as e
from jaxprof.errors import StorageError, UsageError
from jaxprof.session.log import Library, LogWriter, new_header
from jaxprof.session.log.entry import read_entry
from jaxprof.session.log.reader import is_live


def make(library: Library, name: str, age_days: float = 0.0, *, close: bool = True) -> Path:
    path = library.folder / f"{name}.jaxprof"
    writer = LogWriter(new_header(), path)
    writer.append(e.RunPlanned(run="r1", spec=e.RunSpec(workload="selu", variant="jit", how="jit", device="cpu:0")))
    writer.append(e.LogLine(run="r1", stream="stdout", text='{"type":"run_closed" is only text here'))
    writer.append(
        e.RunClosed(run="r1", workload="selu", variant="jit", device="cpu:0", status="ok", median_seconds=1e-3)
    )
    if close:
        writer.append(e.SessionClosed())
    writer.close()
    stamp = time.time() - age_days * 86_400
    os.utime(path, (stamp, stamp))
    return path


@pytest.fixture
def library(tmp_path: Path) -> Library:
    return Library(tmp_path / "sessions")


def test_listing_reads_summaries_of_the_newest_first(library):
    make(library, "old", 2)
    make(library, "new", close=False)
    (library.folder / "odd.jaxprof").write_text("not one")
    os.utime(library.folder / "odd.jaxprof", (1, 1))
    (library.folder / "folder.jaxprof").mkdir()
    (library.folder / "notes.txt").touch()
    new, old, odd = list(library.entries())
    assert (new.name, new.complete, new.live) == ("new", False, False)
    assert (old.name, old.complete, old.workloads) == ("old", True, ["selu"])
    assert [closed.median_seconds for closed in old.closed] == [1e-3]
    assert odd.header is None
    assert "neither a session nor a profile" in odd.problem
    assert library.size_bytes() == sum(entry.size_bytes for entry in (new, old, odd))
    assert [entry.name for entry in library.entries(limit=2)] == ["new", "old"]


def test_what_vanishes_while_it_is_listed_is_left_out(library, monkeypatch):
    kept, gone = make(library, "kept"), make(library, "gone")
    (library.folder / "nowhere.jaxprof").symlink_to(library.folder / "there is none")
    assert set(library.paths()) == {kept, gone}
    monkeypatch.setattr(Library, "paths", lambda self: [gone, kept])
    gone.unlink()
    assert [entry.name for entry in library.entries()] == ["kept"]


def test_a_session_that_is_being_written_is_listed_as_live_until_it_is_complete(library):
    path = library.folder / "now.jaxprof"
    writer = LogWriter(new_header(), path)
    assert (read_entry(path).live, read_entry(path).complete) == (True, False)
    writer.append(e.SessionClosed())
    assert (read_entry(path).live, read_entry(path).complete) == (False, True)


def test_find(library, tmp_path):
    one, two = make(library, "alpha-1", 1), make(library, "alpha-2")
    for name, found in (("alpha-1", one), ("alpha-1.jaxprof", one), (str(two), two), ("last", two), ("a-2", two)):
        assert library.find(name) == found
    with pytest.raises(UsageError, match="2 sessions"):
        library.find("alpha")
    with pytest.raises(UsageError) as caught:
        library.find("alhpa-1")
    assert "alpha-1" in caught.value.hint
    assert Library(tmp_path / "none").search("last") is None
    elsewhere = library.copy(one, tmp_path)
    assert (library.name_of(one), library.name_of(elsewhere)) == ("alpha-1", str(elsewhere))


def test_rename_copy_delete(library, tmp_path):
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
    copied = library.copy(renamed, tmp_path)
    assert copied.read_bytes() == renamed.read_bytes()
    assert copied == tmp_path / "c.jaxprof"
    assert copied.stat().st_mode & 0o777 == 0o600
    again = library.copy(library.folder / "b.jaxprof", copied, replace=True)
    assert again.read_bytes() == (library.folder / "b.jaxprof").read_bytes()
    deeper = library.copy(renamed, tmp_path / "one" / "two" / "d.jaxprof")
    assert deeper.read_bytes() == renamed.read_bytes()
    with pytest.raises(StorageError):
        library.copy(renamed, tmp_path)
    library.delete(renamed)
    library.delete(renamed)  # gone already: no error
    assert not renamed.exists()


def test_what_the_file_system_refuses_is_told_and_changes_nothing(library, tmp_path):
    path = make(library, "a")
    folder = library.folder / "b.jaxprof"
    (folder / "inside").mkdir(parents=True)
    too_long = "x" * 300
    with pytest.raises(StorageError, match=r"a\.jaxprof cannot be renamed: File name too long"):
        library.rename(path, too_long)
    with pytest.raises(StorageError, match="cannot be copied to"):
        library.copy(path, tmp_path / too_long)
    with pytest.raises(StorageError, match=r"b\.jaxprof cannot be deleted"):
        library.delete(folder)
    assert library.search(too_long) is None
    assert sorted(each.name for each in library.folder.iterdir()) == ["a.jaxprof", "b.jaxprof"]
    assert sorted(each.name for each in tmp_path.iterdir() if each != library.folder) == []


def test_prune_spares_the_newest_and_the_living(library):
    paths = [make(library, f"s{index}", age_days=index) for index in range(4)]
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
