"""Answers in JSON: one envelope for all commands, errors included, and commands to go on with that are understood."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cli.calling import start
from folding import written
from jaxprof.cli.main import wants_json
from tui import profiles


@pytest.fixture
def captured(state_home: Path) -> Path:
    """A kept session with captures."""
    tape = profiles.captured()
    return written(state_home / "sessions" / "2026-11-21T05-05-06-captured.jaxprof", tape.events, tape.header)


def test_the_options_of_a_command_are_kept_in_what_it_names_next(call, captured):
    said = json.loads(call("hlo", captured, "--run", "r2", "--kernels", "--top", "1", "--format", "json").out)
    assert f"jaxprof hlo {captured} --run r2 --findings --format json" in said["next"]


def test_all_of_a_session_is_what_the_api_has(call, captured):
    import jaxprof

    data = call("show", captured, "--format", "json", "--full").data
    assert data["session"].pop("path") == str(captured)
    assert data == json.loads(json.dumps(jaxprof.load(captured).to_dict()))


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("show last --format json", True),
        ("show last --format=json", True),
        ("show last --format text", False),
        ("show json --format", False),
        ("show last -- --format json", False),
        ("script --format json train.py", True),
        ("script train.py --format json", False),
        ("script -m package --format=json", False),
    ],
)
def test_whether_json_is_requested_is_seen_in_words_that_cannot_be_read(line, wanted):
    assert wants_json(line.split()) is wanted


PROGRAM = """
import sys

import jax

print("hello", *sys.argv[1:])
print("trouble", file=sys.stderr)
jax.jit(lambda x: x + 1)(1.0)
"""


@pytest.mark.process
def test_a_recorded_program_leaves_stdout_to_the_answer(state_home, tmp_path):
    (tmp_path / "train.py").write_text(PROGRAM)
    process = start("script", "--format", "json", "--out", "s.jaxprof", "train.py", "--format", "json", cwd=tmp_path)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    answer = json.loads(out)
    assert answer["kind"] == "session"
    assert answer["data"]["program"]["argv"] == ["train.py", "--format", "json"]
    assert answer["data"]["session"]["path"] == str(tmp_path / "s.jaxprof")
    assert "hello --format json" in err
    assert "trouble" in err
