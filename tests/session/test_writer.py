"""At its close a log looks at its file: whatever happened to it meanwhile, all of the session is in a file, and the
writer says in which."""

import os
import re
import shutil
import socket
import subprocess
import sys
import warnings
from datetime import datetime
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import Mock

import pytest

from jaxprof import events as e
from jaxprof.base import __version__
from jaxprof.base.errors import StorageError
from jaxprof.base.text import REDACTED
from jaxprof.events import LogLine, SessionClosed
from jaxprof.session import Library, LogWriter, Session, load, new_header
from jaxprof.session import writer as log_writer
from jaxprof.session.lines import encode_header, is_live
from report import sessions
from waiting import SLOWER

EVENTS = sessions.events()


def half_written(path):
    writer = LogWriter(new_header({}), path)
    for event in EVENTS[: len(EVENTS) // 2]:
        writer.append(event)
    return writer


@pytest.fixture
def path(tmp_path):
    return tmp_path / "x.jaxprof"


@pytest.fixture
def writer(path):
    """Of that file, which has half of a session."""
    return half_written(path)


def write_rest(writer):
    for event in EVENTS[len(EVENTS) // 2 :]:
        writer.append(event)


def finish(writer):
    write_rest(writer)
    writer.close()


def is_whole(path):
    read = load(path, Session)
    return read.complete and not read.notices and list(read.runs) == ["r1", "r2", "r3"] and not is_live(path)


def take_its_place(path):
    path.unlink()
    path.write_text("somebody's own")
    path.with_name("x-2.jaxprof").write_text("taken")


def loop_in_its_place(path):
    path.unlink()
    path.symlink_to(path)


HARMS = {
    "deleted": (Path.unlink, "was deleted", "x.jaxprof"),
    "folder deleted": (lambda path: shutil.rmtree(path.parent), "was deleted", "x.jaxprof"),
    "moved away": (lambda path: path.rename(path.parent.parent / "away.jaxprof"), "was deleted", "x.jaxprof"),
    "rotated": (lambda path: path.rename(path.with_suffix(".1")), "was deleted", "x.jaxprof"),
    "replaced": (take_its_place, "was replaced by another file", "x-3.jaxprof"),
    "unreadable": (loop_in_its_place, "could not be read (Too many levels of symbolic links", "x-2.jaxprof"),
}
"""What happens to the file, what is said of it, and the name under which the session is written again."""


@pytest.mark.parametrize("harm", HARMS)
@pytest.mark.parametrize("late", [False, True], ids=["while written", "after the last line"])
def test_changed_file_is_written_again_or_beside(tmp_path, harm, late):
    do, said, name = HARMS[harm]
    path = tmp_path / "folder" / "x.jaxprof"
    writer = half_written(path)
    if late:
        write_rest(writer)
    do(path)
    if not late:
        write_rest(writer)
    writer.close()
    assert (writer.failure, writer.path) == (None, path.with_name(name))
    assert writer.changed.startswith(f"{path} {said}")
    assert writer.is_displaced == (name != path.name)
    assert is_whole(path.with_name(name))
    assert path.with_name(name).stat().st_mode & 0o777 == 0o600
    if harm == "replaced":
        assert path.read_text() == "somebody's own"


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="this system does not say where an open file is")
def test_a_session_that_was_given_another_name_keeps_it(path, writer, tmp_path):
    Library(tmp_path).rename(path, "better")
    finish(writer)
    assert writer.path == tmp_path / "better.jaxprof"
    assert "renamed" in writer.changed
    assert [each.name for each in tmp_path.iterdir()] == ["better.jaxprof"]
    assert is_whole(writer.path)


def test_unchanged_file_is_left_alone(path, writer, tmp_path):
    number = path.stat().st_ino
    finish(writer)
    assert (writer.path, writer.changed, writer.failure) == (path, "", None)
    assert path.stat().st_ino == number
    assert list(tmp_path.iterdir()) == [path]
    writer.append(LogLine(text="late", stream="stdout"))
    assert writer.failure is None


def test_where_it_cannot_be_written_again_nothing_is_lost_either(tmp_path):
    path = tmp_path / "folder" / "x.jaxprof"
    writer = half_written(path)
    shutil.rmtree(path.parent)
    path.parent.write_text("a file in the way")
    finish(writer)
    assert isinstance(writer.failure, StorageError)
    assert "was deleted while it was written" in writer.failure.what
    writer.move_to(tmp_path / "y.jaxprof")
    writer.close()
    assert is_whole(tmp_path / "y.jaxprof")


@pytest.mark.process
def test_a_log_that_is_descriptor_0_is_a_log_like_any_other(tmp_path):
    """As in a program whose standard input is closed (`<&-`)."""
    script = """
import os, sys
from pathlib import Path
os.close(0)
from jaxprof.events import LogLine, SessionClosed
from jaxprof.session import Session
from jaxprof.session import LogWriter, load, new_header
path, synced = Path(sys.argv[1]), []
os.fsync = synced.append
writer = LogWriter(new_header({}), path)
assert os.path.samestat(os.fstat(0), path.stat())
writer.append(LogLine(text="one", stream="stdout"))
path.unlink()
writer.append(SessionClosed())
assert synced == [0], synced
writer.close()
try:
    os.fstat(0)
except OSError:
    pass
else:
    raise AssertionError("it is open still")
read = load(path, Session)
assert read.complete and read.last_seq == 2
"""
    words = [sys.executable, "-c", script, str(tmp_path / "x.jaxprof")]
    done = subprocess.run(
        words, capture_output=True, text=True, timeout=60 * SLOWER, env={**os.environ, "PYTHONPATH": "src"}
    )
    assert done.returncode == 0, done.stderr


def full(file, data, write=os.write):
    """A disk with room for the begin of a line."""
    write(file, bytes(data[:3]))
    raise OSError(28, "No space left on device")


def slowly(file, data, write=os.write):
    return write(file, bytes(data[:100]))


SYNCS_NOTHING = Mock(side_effect=OSError(22, "Invalid argument"))


@pytest.mark.parametrize(
    ("call", "does"),
    [("write", slowly), ("fsync", SYNCS_NOTHING)],
    ids=["slow", "syncs nothing"],
)
def test_what_a_disk_does_costs_no_line(path, writer, monkeypatch, call, does):
    monkeypatch.setattr(os, call, does)
    finish(writer)
    assert writer.failure is None
    assert is_whole(path)


def test_a_log_of_some_megabytes_is_written_again_whole(path, writer):
    line = LogLine(run="r1", text="x" * 1_500_000, stream="stdout")  # more than a part that is read at once
    writer.append(line)
    path.unlink()
    finish(writer)
    assert "was deleted" in writer.changed
    assert is_whole(path)
    assert line.text in (kept.text for kept in load(path, Session).runs["r1"].log)


def test_what_a_full_disk_left_of_a_line_is_not_taken_elsewhere(path, writer, tmp_path, monkeypatch):
    writer.append(LogLine(run="r1", text="x" * 1_500_000, stream="stdout"))
    with monkeypatch.context() as disk:
        disk.setattr(os, "write", full)
        disk.setattr(os, "ftruncate", Mock(side_effect=OSError))
        write_rest(writer)
    assert path.stat().st_size == writer._written.bytes + 3
    writer.move_to(tmp_path / "y.jaxprof")
    writer.close()
    assert is_whole(tmp_path / "y.jaxprof")


def overwrite(path):
    """Writes over the middle of the file, whose size stays."""
    with path.open("r+b") as file:
        file.seek(path.stat().st_size // 2)
        file.write(b"not ours")


def restore_older_state(path):
    with path.open("r+b") as file:
        file.write(b"older\n")
        file.truncate()


def append(path):
    with path.open("ab") as file:
        file.write(b"somebody's own\n")


IN_PLACE = {
    "emptied": (lambda path: os.truncate(path, 0), "was truncated"),
    "cut in a line": (lambda path: os.truncate(path, path.stat().st_size - 5), "was truncated"),
    "an older state": (restore_older_state, "was truncated"),
    "extended": (append, "was changed"),
    "overwritten": (overwrite, "was changed"),
}
"""What another process does to a file that stays where it is, and what is said of it."""


@pytest.mark.parametrize("harm", IN_PLACE)
@pytest.mark.parametrize("late", [False, True], ids=["while written", "after the last line"])
def test_file_changed_by_another_is_written_again(path, writer, tmp_path, harm, late):
    do, said = IN_PLACE[harm]
    number = path.stat().st_ino
    if late:
        write_rest(writer)
    do(path)
    if not late:
        write_rest(writer)
    writer.close()
    changed = f"{path} {said} by another process while it was written; all of it was written again"
    assert writer.changed == changed
    assert writer.lost == 0
    assert writer.is_displaced is False
    assert writer.failure is None
    assert is_whole(path)
    assert path.stat().st_ino == number
    assert list(tmp_path.iterdir()) == [path]


def lines_of(path):
    return [event.text for event in load(path, Session).runs["r1"].log]


def test_a_truncated_file_is_whole_again_long_before_its_end(path, writer, monkeypatch):
    os.truncate(path, 0)
    writer.append(LogLine(run="r1", text="unseen", stream="stdout"))
    assert path.stat().st_size < 1000, "not with each line"
    monkeypatch.setattr(writer, "_check_due", 0.0)
    writer.append(LogLine(run="r1", text="seen", stream="stdout"))
    assert lines_of(path)[-2:] == ["unseen", "seen"], "in what a kill of the writer would leave"
    written = []
    os.truncate(path, 0)
    monkeypatch.setattr(writer, "_write_again", lambda: written.append("again"))
    writer.append(LogLine(run="r1", text="soon", stream="stdout"))
    assert not written, "a file that is always truncated is not always written again"


def test_a_deleted_file_that_was_truncated_is_written_again(path, writer):
    os.truncate(path, 0)
    path.unlink()
    finish(writer)
    assert (writer.changed, writer.lost) == (f"{path} was deleted while it was written; all of it was written again", 0)
    assert is_whole(path)


@pytest.mark.parametrize("deleted", [False, True], ids=["truncated", "and deleted"])
def test_events_beyond_the_copy_are_counted_as_lost(path, monkeypatch, deleted):
    monkeypatch.setenv("JAXPROF_LIMITS", "copy=2k")
    writer = half_written(path)
    monkeypatch.setattr("jaxprof.session.writer._PART_BYTES", 5000)
    for number in range(1000):
        writer.append(LogLine(run="r1", text=f"{number} {os.urandom(100).hex()}", stream="stdout"))
    assert 10 < writer._written.copied_lines < 500
    os.truncate(path, 0)
    if deleted:
        path.unlink()
    else:
        monkeypatch.setattr(writer, "_check_due", 0.0)
        writer.append(LogLine(run="r1", text="after", stream="stdout"))
        assert lines_of(path)[-1] == "after"
    writer.append(SessionClosed())
    writer.close()
    read = load(path, Session)
    lost = 1 + writer._seq - read_events(path)
    assert writer.lost == lost > 400
    assert writer.changed.endswith(f"{lost} events of it are lost")
    (notice,) = read.notices
    assert notice == f"{lost} events are missing: another process changed the file while it was written"
    assert read.complete is True
    assert next(iter(read.runs)) == "r1"


def read_events(path):
    """How many events a session has, with the warning of what is missing."""
    return path.read_bytes().count(b"\n") - 1


def test_truncated_file_on_a_full_disk_moves_elsewhere(path, writer, tmp_path, monkeypatch):
    write_rest(writer)
    os.truncate(path, 0)
    with monkeypatch.context() as disk:
        disk.setattr(os, "write", full)
        writer.close()
    assert "No space left" in writer.failure.what
    writer.move_to(tmp_path / "y.jaxprof")
    writer.close()
    assert is_whole(tmp_path / "y.jaxprof")


def test_the_end_of_a_run_is_on_the_disk_before_it_is_told(path, monkeypatch):
    synced = []
    writer = LogWriter(new_header({}), path)
    monkeypatch.setattr(os, "fsync", lambda file: synced.append(os.fstat(file).st_ino))
    said = [(event.type, len(synced)) for event in EVENTS if writer.append(event) and synced]
    writer.close()
    assert set(synced) == {path.stat().st_ino}
    assert said[0] == ("run_closed", 1)
    closing = sum(event.type in ("run_closed", "session_closed") for event in EVENTS)
    assert len(synced) == closing > 1


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="this system does not say which files are open")
@pytest.mark.parametrize("harm", [lambda path: None, Path.unlink], ids=["unharmed", "deleted"])
def test_a_closed_log_leaves_no_file_open(path, harm):
    before = len(os.listdir("/proc/self/fd"))
    writer = half_written(path)
    with pytest.raises(StorageError):
        LogWriter(new_header(), path, replace_existing=True)  # somebody else's
    harm(path)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ResourceWarning)  # none is left to the garbage collector
        finish(writer)
    assert len(os.listdir("/proc/self/fd")) == before


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="this system does not say which files are open")
@pytest.mark.parametrize("name", ["x.jaxprof", None], ids=["a file", "memory alone"])
def test_a_move_that_fails_leaves_no_file_open_and_loses_nothing(tmp_path, monkeypatch, name):
    writer = half_written(tmp_path / name if name else None)
    before = len(os.listdir("/proc/self/fd"))
    with monkeypatch.context() as disk:
        disk.setattr(os, "write", full)
        with pytest.raises(StorageError, match="No space left"):
            writer.move_to(tmp_path / "y.jaxprof")
    (tmp_path / "taken.jaxprof").write_text("somebody's own")
    with pytest.raises(StorageError, match="already exists"):
        writer.move_to(tmp_path / "taken.jaxprof")
    assert len(os.listdir("/proc/self/fd")) == before
    writer.move_to(tmp_path / "z.jaxprof")
    finish(writer)
    assert (writer.path, writer.changed) == (tmp_path / "z.jaxprof", "")
    assert is_whole(tmp_path / "z.jaxprof")


def test_replaced_session_is_private(tmp_path):
    path = tmp_path / "state" / "x.jaxprof"
    finish(half_written(path))
    assert path.parent.stat().st_mode & 0o777 == 0o700
    path.chmod(0o644)
    with pytest.raises(StorageError, match="already exists"):
        LogWriter(new_header(), path)
    assert is_whole(path)
    writer = LogWriter(new_header({}), path, replace_existing=True)
    assert path.read_bytes() == encode_header(writer.header)
    writer.close()
    assert writer.changed == ""
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_header_says_what_made_the_session_where_and_when(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["python", "train.py", "--api-key", "sk-abcdefghijklmnopqrstuvwxyz"])

    class Moment(datetime):
        @classmethod
        def now(cls, tz=None):
            return cls(2026, 11, 18, 11, 6, 40, tzinfo=tz)

    monkeypatch.setattr(log_writer, "time", SimpleNamespace(time=lambda: 1_795_000_000.0, monotonic=lambda: 60.5))
    monkeypatch.setattr(log_writer, "datetime", Moment)
    header = new_header({"cpu": "x"})
    assert (header.jaxprof, header.host, header.environment) == (__version__, socket.gethostname(), {"cpu": "x"})
    assert header.command == ["python", "train.py", "--api-key", REDACTED]
    assert (header.wall_seconds, header.monotonic_seconds) == (1_795_000_000.0, 60.5)
    assert header.created == "2026-11-18T11:06:40Z"


def test_no_secret_among_the_arguments_of_a_run(tmp_path):
    spec = e.RunSpec(
        workload="f", variant="jit", how="jit", device="cpu:0",
        arguments=("token=f32[8]", "{'w': f32[4], 'api_key': 'hunter2', 'pin': 1234}", "'https://bob:hunter2@host'"),
        argv=("train.py", "--password", "hunter2"),
        parameters={"n": 3, "secret": "hunter2", "mode": "fast"},
    )  # fmt: skip
    writer = LogWriter(new_header(), tmp_path / "s.jaxprof")
    kept = writer.append(e.RunPlanned(run="r1", spec=spec)).spec
    writer.close()
    assert not re.search("hunter2|1234", (tmp_path / "s.jaxprof").read_text())
    assert kept.arguments[0] == "token=f32[8]"
    assert kept.arguments[1].startswith("{'w': f32[4], 'api_key': [redacted], ")
    assert kept.parameters == {"n": 3, "secret": "[redacted]", "mode": "fast"}
