"""An outline says the same as the whole session, as far as it goes, and leaves the long lines unread."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

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
def path(tmp_path: Path) -> Path:
    path = tmp_path / "kept.jaxprof"
    written(path, (*sessions.events(), e.LogLine(run="r1", stream="stdout", text="long " * 1000)), sessions.HEADER)
    return path


def test_an_outline_has_the_figures_of_the_whole_session(path):
    short, whole = read_outline(path), load(path, Session)
    assert list(short.runs) == list(whole.runs)
    for run in whole.runs.values():
        other = short.runs[run.id]
        for name in ("plan", "closed", "environment", "status", "check", "cost", "memory"):
            assert getattr(other, name) == getattr(run, name)
        assert [launch.phases.keys() for launch in other.launches] == [launch.phases.keys() for launch in run.launches]
        assert other.samples("run") == run.samples("run")


def test_lines_of_other_types_are_not_decoded(path, monkeypatch):
    decoded: list[bytes] = []
    decode = of_outline.decode_line

    def noted(line: bytes, *damaged: Callable[[str], object]) -> e.Event:
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
    def every() -> list[e.Event]:
        with open_regular(path) as file:
            read_header(file, path.name)
            return list(events_of(file, of_outline.OUTLINE))

    whole, all_events = read_outline(path), every()
    for block in (1, 7, 100):
        monkeypatch.setattr(of_outline, "_BLOCK_BYTES", block)
        short = read_outline(path)
        assert every() == all_events, "each once"
        assert [run.plan for run in short.runs.values()] == [run.plan for run in whole.runs.values()]
        assert short.complete == whole.complete
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
    short, other = read_outline(path), read_outline(again)
    assert [(run.id, run.closed) for run in other.runs.values()] == [
        (run.id, run.closed) for run in short.runs.values()
    ]
    assert not list(other.runs["r1"].log), "types that were not asked for are left out"
    assert len(read_entry(again).planned) == len(read_entry(path).planned) > 0
