"""Words that do not fit are refused with what to do instead, and nothing is run, written or ignored: those in
`tests/net/usage.txt`, where the capitals are the sessions of `here`. What the shell offers behind what was typed."""

import json
import re
import shlex
import sys
from textwrap import indent
from unittest.mock import Mock

import pytest
from click.shell_completion import ShellComplete

import program_events
from folding import written
from golden import cases, held_cases
from jaxprof.cli.main import cli
from jaxprof.cli.output import ExitCode
from job_folders import job, loop
from report import sessions
from tui import profiles


@pytest.fixture
def here(kept, tmp_path, monkeypatch):
    folder = tmp_path / "here"
    for inside, text in {
        "dump/module.txt": sessions.HLO,
        "dump/m.after_optimizations.txt": sessions.HLO,
        "dump/x.txt": "",
        "empty.hlo": "",
        "dump/notes.md": "nothing of ours",
        "sides.py": "def step(x):\n    return x\n\ndef step_inputs():\n    return (1.0,)\n",
        "train.py": "open('started', 'w')",
    }.items():
        (folder / inside).parent.mkdir(parents=True, exist_ok=True)
        (folder / inside).write_text(text)
    monkeypatch.chdir(folder)
    tape = profiles.captured()
    again = [program_events.compiled("step", "new_function", compile_seconds=0.1) for _ in range(30)]
    program = program_events.program(*again, wall=10.0)
    return {
        "KEPT": kept,
        "CAPTURED": written(tmp_path / "captured.jaxprof", tape.events, tape.header),
        "PROGRAM": written(tmp_path / "program.jaxprof", program, program_events.HEADER),
        "JOB": job(tmp_path / "run.jaxprof.d", loop(), loop()),
        "MISSING": folder / "trian",
    }


@pytest.mark.process  # the first temporary folder of a process starts its reaper
def test_words_that_do_not_fit(call, here, tmp_path, state_home):
    def there():
        return {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file() and path.suffix != ".pyc"}

    before, told = there(), {}
    for line in cases("usage.txt"):
        words = line
        for name, path in here.items():
            words = words.replace(name, str(path))
        said = call(*shlex.split(words))
        assert said.code == ExitCode.USAGE, (line, said)
        assert said.err.startswith(("jaxprof: ", "Usage: ")), "people read it, also where the answer is in JSON"
        assert not {"s3cr3tvalue", "hunter22"} & set(re.findall(r"\w+", said.err)), line
        assert said.out == "" or json.loads(said.out)["error"]["code"] == "usage", line
        assert there() == before, line
        text = said.err.replace(str(state_home), "HOME").replace(str(tmp_path), "FOLDER")
        told[line] = indent(text.replace(sys.executable, "PYTHON"), "  ")
    held_cases("usage.txt", told)


def offered(*words):
    *typed, incomplete = words
    completion = ShellComplete(cli, {}, "jaxprof", "_JAXPROF_COMPLETE")
    return [item.value for item in completion.get_completions(typed, incomplete)]


def test_completion_fetches_nothing(monkeypatch):
    monkeypatch.setattr("jaxprof.analysis.target.resolve", Mock(side_effect=AssertionError))
    assert offered("gs://bucket/run.jaxprof.d", "--") == offered("--")


def test_a_completion_ends_well(call, monkeypatch):
    for variable, value in (("_JAXPROF_COMPLETE", "bash_complete"), ("COMP_WORDS", "jaxprof ex"), ("COMP_CWORD", "1")):
        monkeypatch.setenv(variable, value)
    said = call()
    assert (said.code, said.out) == (0, "plain,explain\nplain,export\n")


def test_what_is_offered_belongs_to_what_was_typed(kept):
    words = {line: offered(*shlex.split(line.replace("KEPT", str(kept)))) for line in cases("completion.txt")}
    held_cases("completion.txt", {line: "".join(f"  {word}\n" for word in found) for line, found in words.items()})


@pytest.mark.parametrize("words", [("explain",), ("open", "--format", "text"), ("export", "--format", "perfetto")])
def test_unrecorded_program_is_no_damaged_profile(words, call, tmp_path):
    program = tmp_path / "train.py"
    program.write_text('"""Trains."""\nimport jax\n')
    said = call(*words, str(program))
    assert said.code == 2
    assert f"jaxprof script {program}" in said.err
