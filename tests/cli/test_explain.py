"""`jaxprof explain` as it is typed: which file it takes, what it prints, what it refuses; and whether a
source is still the recorded one."""

import json
import os
import re
import shlex
import socket
import sys
from dataclasses import replace

import pytest

import program_events
from cli.compiled import compiled
from folding import written
from jaxprof import events as e
from jaxprof.cli.output import ExitCode
from jaxprof.session.files import FETCHED, FETCHED_FROM, copies_folder


def test_without_a_name_it_is_the_last_session(call, kept):
    said = call("explain", "--format", "json")
    assert said.code == 0
    data = said.data
    assert data["name"] == "2026-11-21T04-05-06-0123"  # not `last`, which is another one tomorrow
    assert data["findings"][0]["code"] == "out_of_memory"
    assert call("explain", "last").out == call("explain", "0123").out == call("explain", kept).out


@pytest.mark.parametrize(
    "words",
    ["explain", "explain last", "open last", "hlo last", "compare last last", "gate last --base last --fail-on flops"],
)
def test_without_a_session_it_says_how_to_make_one(words, call, state_home):
    said = call(*words.split())
    assert said.code == ExitCode.USAGE
    assert "no session is kept yet" in said.err


def test_the_findings_of_hlo_alone_are_those_of_hlo(call, tmp_path):
    file = tmp_path / "a step.hlo"
    file.write_text(STEP_HLO)
    said = call("explain", file)
    assert said.code == ExitCode.USAGE
    assert f"jaxprof hlo '{file}' --findings" in " ".join(said.err.split())


def test_next_commands_only_read(call, tmp_path):
    path = written(tmp_path / "quiet.jaxprof", program_events.program(), program_events.HEADER)
    answer = json.loads(call("explain", path, "--format", "json").out)
    commands = [unknown["command"] for unknown in answer["data"]["unknown"] if unknown["command"]]
    assert commands[0] == "jaxprof script --plain train.py --epochs 3"
    assert [shlex.split(line)[1:3] for line in answer["next"]] == [["open", str(path)]] * 3


@pytest.mark.parametrize(("stood", "code"), [(30.0, ExitCode.STANDS_STILL), (15.0, ExitCode.OK)])
def test_exit_code_of_a_standstill(call, tmp_path, stood, code):
    events = program_events.program(program_events.stands(stood), exit_code=130, wall=50.0)
    path = written(tmp_path / "stands.jaxprof", events, program_events.HEADER)
    said = call("explain", path, "--fail-on", "standstill")
    assert (said.code, call("explain", path).code) == (code, ExitCode.OK)
    assert ("1. standstill" in said.out) is (code != ExitCode.OK)


def test_counted_findings_are_printed(call, tmp_path):
    slow = [program_events.compiled(f"f{number}", "new_function", compile_seconds=1.0, count=20) for number in range(8)]
    path = written(tmp_path / "many.jaxprof", program_events.program(*slow, wall=20.0), program_events.HEADER)
    numbered = re.compile(r"^\d+\. ", re.MULTILINE)
    short, full = call("explain", path).out, call("explain", path, "--full").out
    left_out = int(re.search(r"and (\d+) more: --full has them", short)[1])
    assert (len(numbered.findall(short)), len(numbered.findall(full))) == (5, 5 + left_out)
    assert len(numbered.findall(call("explain", path, "--format", "markdown", "--full").out)) == 5 + left_out
    assert len(numbered.findall(call("explain", path, "--limit", "2").out)) == 2


def test_full_cuts_nothing_in_any_form(call, tmp_path, monkeypatch):
    monkeypatch.setattr("jaxprof.report.explain._SENTENCE_LIMITS", (20,))
    path = written(tmp_path / "one.jaxprof", program_events.program(*program_events.shaped(9)), program_events.HEADER)
    cut, whole = (call("explain", path, "--format", "json", *full).data for full in ((), ("--full",)))
    fixes = [(one["fix"], other["fix"]) for one, other in zip(cut["findings"], whole["findings"], strict=True)]
    assert fixes
    assert all(len(one) <= 20 < len(other) for one, other in fixes)


STEP = """
import jax

def step(state, update):
    return jax.tree.map(lambda old, more: old * 0.5 + more[0, 0], state, update)
"""
STEP_HLO = """HloModule jit_step, is_scheduled=true

%fused (a: f32[2048,1024]) -> f32[2048,1024] {
  %a = f32[2048,1024]{1,0} parameter(0)
  ROOT %sum = f32[2048,1024]{1,0} add(%a, %a)
}

%fused.1 (b: f32[2048,1024]) -> f32[2048,1024] {
  %b = f32[2048,1024]{1,0} parameter(0)
  ROOT %sum.1 = f32[2048,1024]{1,0} add(%b, %b)
}

ENTRY %main (state.0: f32[2048,1024], state.1: f32[2048,1024]) -> (f32[2048,1024], f32[2048,1024]) {
  %state.0 = f32[2048,1024]{1,0} parameter(0)
  %state.1 = f32[2048,1024]{1,0} parameter(1)
  %one = f32[2048,1024]{1,0} fusion(%state.0), kind=kLoop, calls=%fused
  %two = f32[2048,1024]{1,0} fusion(%state.1), kind=kLoop, calls=%fused.1
  ROOT %out = (f32[2048,1024]{1,0}, f32[2048,1024]{1,0}) tuple(%one, %two)
}
"""


def measured(folder, source=STEP, **changes):
    """A session of a measured function whose program shows that it holds its old state beside the new one."""
    file = folder / "train.py"
    file.write_text(source)
    os.utime(file, (1, 1))
    array, small = "f32[2048,1024]", "f32[1,1]"
    events = compiled(
        STEP_HLO, e.WorkerStarted(run="r1", pid=100, python=sys.executable), e.RunFinished(run="r1", status="ok"),
        workload="train.py:step", how="jit", target=f"{file}:step",
        arguments=(f'{{"a":{array},"b":{array}}}', f'{{"a":{small},"b":{small}}}'),
    )  # fmt: skip
    header = replace(program_events.HEADER, **{"host": socket.gethostname(), **changes})
    return written(folder / "runs.jaxprof", events, header)


def test_nothing_that_was_fetched_is_started(call, tmp_path):
    for folder in (copies_folder(), tmp_path / "of another home" / FETCHED / "0123456789abcdef"):
        folder.mkdir(parents=True)
        (folder / FETCHED_FROM).write_text("https://host/s.jaxprof")
        said = call("run", "--yes", "--from", measured(folder, "open('started', 'w')"))
        assert said.code == ExitCode.USAGE
        assert "files fetched from a URL are never run" in said.err
        assert not (folder / "started").exists()
