"""`jaxprof explain` as it is typed: which file it takes, what it prints, what it refuses."""

from __future__ import annotations

import json

import program_events
from folding import written
from jaxprof.cli.output import ExitCode
from report.sessions import TRANSPOSES


def test_without_a_name_it_is_the_last_session(call, kept):
    said = call("explain", "--format", "json")
    assert said.code == 0
    data = said.data
    assert data["name"] == "2026-11-21T04-05-06-0123"  # not `last`, which is another one tomorrow
    assert data["findings"][0]["code"] == "out-of-memory"
    assert call("explain", "last").out == call("explain", "0123").out == call("explain", kept).out


def test_without_a_session_it_says_how_to_make_one(call, state_home):
    said = call("explain")
    assert said.code == ExitCode.USAGE
    assert "no session is kept yet" in said.err


def test_what_to_ask_next_verifies_a_fix_or_fills_what_is_unknown(call, tmp_path):
    path = written(tmp_path / "quiet.jaxprof", program_events.program(), program_events.HEADER)
    answer = json.loads(call("explain", path, "--format", "json").out)
    assert answer["data"]["findings"] == []
    commands = [unknown["command"] for unknown in answer["data"]["unknown"] if unknown["command"]]
    assert commands[0] == "jaxprof script --plain train.py --epochs 3"
    assert answer["next"][0] == "jaxprof script --format json train.py --epochs 3"
    assert len(answer["next"]) == len(commands)


def test_hlo(call, tmp_path):
    file = tmp_path / "turn.hlo"
    file.write_text(TRANSPOSES)
    assert "layout-copy" in call("explain", file).out
    assert "layout-copy" in call("explain", tmp_path).out
