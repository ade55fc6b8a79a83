"""An outline says the same as the whole session, as far as it goes, and leaves the long lines unread."""

import json
import os

import pytest

from folding import written
from jaxprof import events as e
from jaxprof.errors import FileRefusedError
from jaxprof.files import open_regular
from jaxprof.session import Session
from jaxprof.session.log import load, read_outline
from jaxprof.session.log import reader as of_outline
from jaxprof.session.log.entry import read_entry
from jaxprof.session.log.reader import events_of, read_header
from report import sessions


@pytest.fixture
def path(tmp_path):
    long = e.LogLine(run="r1", stream="stdout", text="long " * 1000)
    return written(tmp_path / "kept.jaxprof", (*sessions.events(), long), sessions.HEADER)


def figures(session):
    """What an outline has of each run."""
    names = ("id", "plan", "closed", "environment", "status", "check", "cost", "memory")
    return [
        [*(getattr(run, name) for name in names), run.samples("run"), [launch.phases.keys() for launch in run.launches]]
        for run in session.runs.values()
    ]


def test_an_outline_has_the_figures_of_the_whole_session(path):
    assert figures(read_outline(path)) == figures(load(path, Session))


def test_lines_of_other_types_are_not_decoded(path, monkeypatch):
    decoded = []
    decode = of_outline.decode_line

    def noted(line, *damaged):
        decoded.append(line)
        return decode(line, *damaged)

    monkeypatch.setattr(of_outline, "decode_line", noted)
    read_outline(path, ("run_closed",))
    assert decoded
    assert all(line.startswith(b'{"type":"run_closed"') for line in decoded)
    assert not list(read_outline(path).runs["r1"].log)
    assert load(path, Session).runs["r1"].log


def test_an_outline_of_a_newer_version_says_that_it_may_lack_something(path):
    newer = path.with_name("newer.jaxprof")
    newer.write_bytes(path.read_bytes().replace(b'"schema_minor":', b'"schema_minor":9', 1))
    assert any("newer schema" in notice for notice in read_outline(newer).notices)
    with pytest.raises(FileRefusedError):
        read_outline(path.parent)
    with pytest.raises(FileNotFoundError):
        read_outline(path.with_name("missing.jaxprof"))


def test_a_line_may_stand_across_the_blocks_that_are_read(path, monkeypatch):
    def every():
        with open_regular(path) as file:
            read_header(file, path.name)
            return list(events_of(file, of_outline.OUTLINE))

    whole, all_events = read_outline(path), every()
    for block in (1, 7, 100):
        monkeypatch.setattr(of_outline, "_BLOCK_BYTES", block)
        assert every() == all_events, "each once"
        assert figures(read_outline(path)) == figures(whole)
    monkeypatch.setenv("JAXPROF_LIMITS", "line=4000")  # the long line of the log is left out, and what follows is not
    with path.open("ab") as file:
        file.write(b'\n{"type":"run_planned","run":"r9","workload":"w","variant":"v","how":"jit","device":"cpu:0"}\n')
    assert list(read_outline(path).runs) == [*whole.runs, "r9"]


def test_a_file_that_is_truncated_while_it_is_read_ends_there(path):
    """A mapped file would end the process with SIGBUS."""
    with path.open("ab") as file:
        file.write(path.read_bytes().partition(b"\n")[2] * 200)
    with open_regular(path) as file:
        read_header(file, path.name)
        events = events_of(file, of_outline.OUTLINE)
        assert next(events) is not None
        os.truncate(path, 0)
        assert list(events)


@pytest.mark.parametrize("sort", [False, True], ids=["spaces", "sorted"])
def test_a_session_that_another_tool_wrote_again_is_the_same(path, sort):
    lines = path.read_text().splitlines()
    again = path.with_name("again.jaxprof")
    again.write_text("".join(json.dumps(json.loads(line), sort_keys=sort) + "\n" for line in lines))
    other = read_outline(again)
    assert figures(other) == figures(read_outline(path))
    assert not list(other.runs["r1"].log), "types that were not asked for are left out"
    assert len(read_entry(again).planned) == len(read_entry(path).planned) > 0
