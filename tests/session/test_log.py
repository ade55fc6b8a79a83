"""Writing and reading a session's log, also when the disk, the file or the writer fails. Events of some types say the
same as the whole session, as far as they go, and leave the long lines unread."""

import fcntl
import json
import os
from contextlib import suppress
from functools import partial
from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from folding import written
from golden import held_cases
from jaxprof import events as e
from jaxprof.base.errors import FileRefusedError
from jaxprof.base.files import open_regular
from jaxprof.session import Follower, LogWriter, Session, lines, load, new_header
from jaxprof.session.library import read_entry
from jaxprof.session.lines import encode_header, events_of, read_header
from report import sessions

PLAN = sessions.plan("r1", "jit", "jit")


def write(path, count=20):
    writer = LogWriter(new_header({"cpu": "x"}, ["jaxprof", "run"]), path)
    writer.append(PLAN)
    for index in range(count):
        writer.append(e.SamplesTaken(run="r1", series="run", seconds=[float(index)]))
    return writer


@pytest.fixture
def path(tmp_path):
    return tmp_path / "a.jaxprof"


@pytest.fixture(scope="module")
def raw(tmp_path_factory):
    """A whole file."""
    path = tmp_path_factory.mktemp("raw") / "a.jaxprof"
    write(path).close()
    return path.read_bytes()


any_of = partial(settings, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@any_of(max_examples=60)
@given(cut=st.floats(0, 1))
def test_cut_anywhere_it_still_loads_what_is_whole(tmp_path, raw, cut):
    path, header = tmp_path / "torn.jaxprof", raw.index(b"\n") + 1
    torn = raw[: header + int(cut * (len(raw) - header))]
    path.write_bytes(torn)
    session = load(path, Session)
    assert session.last_seq == torn.count(b"\n") - 1
    assert session.complete is False
    assert bool(session.notices) == (not torn.endswith(b"\n"))


@any_of(max_examples=80)
@given(place=st.floats(0, 1), byte=st.integers(0, 255))
def test_a_changed_byte_is_refused_or_told_but_never_fatal(tmp_path, raw, place, byte):
    path, changed = tmp_path / "a.jaxprof", bytearray(raw)
    changed[int(place * (len(raw) - 1))] = byte
    path.write_bytes(changed)
    with suppress(FileRefusedError):
        session = load(path, Session)
        assert len(session.runs) >= 1 or session.notices


def test_too_long_line_is_left_out_with_a_notice(path, monkeypatch):
    writer = write(path, 2)
    for _ in range(2):
        writer.append(e.LogLine(run="r1", stream="stdout", text="x" * 3000))
    writer.append(e.SessionClosed())
    monkeypatch.setenv("JAXPROF_LIMITS", "line=2000")
    session = load(path, Session)
    (notice,) = session.notices
    assert notice.startswith("lines of more than 1.95 KiB were left out")
    assert notice.endswith("(2 times)")
    assert "JAXPROF_LIMITS=line=" in notice
    assert session.complete is True
    assert session.runs["r1"].samples("run") == [0.0, 1.0]


def test_damaged_and_too_deep_lines_are_left_out(path):
    writer = write(path)
    checks = [e.TrustCheck(code="file", verdict="good"), e.TrustCheck(code="clock", verdict="good")]
    writer.append(e.TrustReported(run="r1", kind="run", rows=checks))
    writer.close()
    bottomless = b'{"type":"compile_passes","run":"r1","tree":' + b'{"name":"a","children":[' * 9000 + b"\n"
    path.write_bytes(path.read_bytes().replace(b'"code":"clock"', b'"code":12345') + bottomless)
    session = load(path, Session)
    assert not session.runs["r1"].trust
    assert session.notices == ["damaged lines were left out (2 times)"]


def test_newer_schema_versions(path):
    header = new_header()
    newer = msgspec.json.decode(encode_header(header))
    newer["schema_minor"] = e.SCHEMA_MINOR + 1
    newer["colour"] = "blue"
    path.write_bytes(
        msgspec.json.encode(newer) + b'\n{"type":"hologram","seq":1}\n{"type":"session_closed","seq":2,"mood":"fine"}\n'
    )
    session = load(path, Session)
    assert session.complete
    assert any("newer schema" in notice for notice in session.notices)
    assert any("hologram" in notice for notice in session.notices)
    newer["schema_major"] = e.SCHEMA_MAJOR + 1
    path.write_bytes(msgspec.json.encode(newer) + b"\n")
    with pytest.raises(FileRefusedError, match="schema 2") as caught:
        load(path, Session)
    assert caught.value.hint == "Upgrade jaxprof."


def test_of_an_unknown_type_the_begin_of_its_name_is_said(path):
    write(path).close()
    with path.open("ab") as file:
        file.write(b'{"type":"' + b"x" * 100 + b'"}\n{"type":""}\n')
    assert [notice.rpartition(": ")[2] for notice in load(path, Session).notices] == ["x" * 60, "no type"]


FOREIGN = (
    b"", b"\n\n", b"hello\n", b"{}\n", b"[1,2]\n", b"\x00\x01\x02\n", b'{"format":"json","session":"ab"}\n',
    b"\x1f\x8b\x08\x00abc\n", b"HloModule jit_f\n", b"  // a comment\n", b"module @jit_f {\n",
    b" #loc = loc(unknown)\n",
    b'{"format":"jaxprof","session":"ab\n', b'{"format":"jaxprof","session":""}\n',
)  # fmt: skip


def test_another_format_is_refused_with_what_it_seems_to_be(tmp_path):
    path, cases = tmp_path / "x.jaxprof", {}
    for content in FOREIGN:
        path.write_bytes(content)
        with pytest.raises(FileRefusedError) as caught:
            load(path, Session)
        cases[repr(content)] = f"  {caught.value.what}\n  {caught.value.hint}\n".replace(str(tmp_path), "FOLDER")
    held_cases("foreign_files.txt", cases)


def test_a_directory_and_a_missing_file_are_refused(tmp_path):
    with pytest.raises(FileRefusedError, match="is a directory"):
        load(tmp_path, Session)
    write(tmp_path / "inside.jaxprof").close()
    with pytest.raises(FileRefusedError) as caught:
        load(tmp_path, Session)
    assert "inside.jaxprof" in caught.value.hint
    with pytest.raises(FileRefusedError, match="no file"):
        load(tmp_path / "nothing", Session)


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="this system does not say which files are open")
def test_following_a_file_as_it_grows(path):
    write(path, 2).close()
    opened = len(os.listdir("/proc/self/fd"))
    follower = Follower(path, Session)
    assert len(os.listdir("/proc/self/fd")) == opened + 1
    assert len(follower.poll()) == 3
    assert follower.poll() == []
    with path.open("ab", buffering=0) as raw:  # half a line, then the rest
        raw.write(b'{"type":"session_cl')
        assert follower.poll() == []
        raw.write(b'osed","seq":9}\n')
        assert [event.type for event in follower.poll()] == ["session_closed"]
    assert follower.session.complete
    follower.finish()
    assert len(os.listdir("/proc/self/fd")) == opened


def test_a_file_that_nobody_writes_has_no_run_that_runs(path):
    written(path, sessions.torn_events(), sessions.HEADER)
    assert [run.shown.status for run in load(path, Session).runs.values()] == ["ok", "interrupted", "cancelled"]
    with path.open("ab") as file:
        fcntl.flock(file.fileno(), fcntl.LOCK_EX)
        assert [run.shown.status for run in load(path, Session).runs.values()] == ["ok", "running", "queued"]


@pytest.mark.parametrize("reason", ["finished", "interrupted", "SIGTERM", None])
def test_a_listing_calls_a_session_what_its_report_does(path, reason):
    end = [] if reason is None else [e.SessionClosed(reason=reason)]
    written(path, [*sessions.numpy_run("r1"), *end], sessions.HEADER)
    said = {"finished": "complete", None: "interrupted"}.get(reason, reason)
    assert read_entry(path).state == load(path, Session).state == said


@pytest.fixture
def kept(tmp_path):
    long = e.LogLine(run="r1", stream="stdout", text="long " * 1000)
    return written(tmp_path / "kept.jaxprof", (*sessions.events(), long), sessions.HEADER)


OUTLINE = (
    "run_planned", "worker_started", "environment_read", "phase_ended", "samples_taken", "text_recorded",
    "cost_reported", "memory_reported", "check_reported", "run_closed", "session_closed",
)  # fmt: skip


def read_outline(path, types=OUTLINE):
    """The session of the events of some types."""
    with open_regular(path) as file:
        session = Session(read_header(file, path.name))
        session.extend(events_of(file, types))
    return session


def figures(session):
    """What an outline has of each run."""
    names = ("id", "plan", "closed", "environment", "status", "check", "cost", "memory")
    return [
        [*(getattr(run, name) for name in names), run.samples("run"), [launch.phases.keys() for launch in run.launches]]
        for run in session.runs.values()
    ]


def test_an_outline_has_the_figures_of_the_whole_session(kept):
    assert figures(read_outline(kept)) == figures(load(kept, Session))


def test_an_outline_has_what_follows_a_damaged_line(kept):
    whole = figures(read_outline(kept))
    header, _, rest = kept.read_bytes().partition(b"\n")
    kept.write_bytes(header + b'\n{"type":"run_planned","run":1}\n' + rest)
    assert figures(read_outline(kept)) == whole


def test_lines_of_other_types_are_not_decoded(kept, monkeypatch):
    decoded = []
    decode = lines.decode_line

    def noted(line, *damaged):
        decoded.append(line)
        return decode(line, *damaged)

    monkeypatch.setattr(lines, "decode_line", noted)
    read_outline(kept, ("run_closed",))
    assert decoded
    assert all(line.startswith(b'{"type":"run_closed"') for line in decoded)
    assert not list(read_outline(kept).runs["r1"].log)
    assert load(kept, Session).runs["r1"].log


def test_a_line_may_stand_across_the_blocks_that_are_read(kept, monkeypatch):
    def every():
        with open_regular(kept) as file:
            read_header(file, kept.name)
            return list(events_of(file, OUTLINE))

    whole, all_events = read_outline(kept), every()
    for block in (1, 7, 100):
        monkeypatch.setattr(lines, "BLOCK_BYTES", block)
        assert every() == all_events, "each once"
        assert figures(read_outline(kept)) == figures(whole)
    monkeypatch.setenv("JAXPROF_LIMITS", "line=4000")  # the long line of the log is left out, and what follows is not
    with kept.open("ab") as file:
        file.write(b'\n{"type":"run_planned","run":"r9","workload":"w","variant":"v","how":"jit","device":"cpu:0"}\n')
    assert list(read_outline(kept).runs) == [*whole.runs, "r9"]


def test_a_file_that_is_truncated_while_it_is_read_ends_there(kept):
    """A mapped file would end the process with SIGBUS."""
    with kept.open("ab") as file:
        file.write(kept.read_bytes().partition(b"\n")[2] * 200)
    with open_regular(kept) as file:
        read_header(file, kept.name)
        events = events_of(file, OUTLINE)
        assert next(events) is not None
        os.truncate(kept, 0)
        assert list(events)


@pytest.mark.parametrize("sort", [False, True], ids=["spaces", "sorted"])
def test_a_session_that_another_tool_wrote_again_is_the_same(kept, sort):
    lines = kept.read_text().splitlines()
    again = kept.with_name("again.jaxprof")
    again.write_text("".join(json.dumps(json.loads(line), sort_keys=sort) + "\n" for line in lines))
    other = read_outline(again)
    assert figures(other) == figures(read_outline(kept))
    assert not list(other.runs["r1"].log), "types that were not asked for are left out"
    assert len(read_entry(again).planned) == len(read_entry(kept).planned) > 0
