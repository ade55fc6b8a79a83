"""The command of a program: what is typed, what a session has of it, and what is read of both."""

import shlex

import pytest

from jaxprof.base.errors import UsageError
from jaxprof.engine.protocol import RecordingOptions
from jaxprof.runner.program import ProgramCommand, read_command


@pytest.fixture
def folder(tmp_path):
    """A folder with a program and a folder."""
    (tmp_path / "train.py").write_text("print(1)\n")
    (tmp_path / "models").mkdir()
    return tmp_path


def test_a_command_line_becomes_a_program_and_back(folder):
    program = read_command("train.py --name 'a b' -n 3", str(folder))
    assert program == ProgramCommand(path="train.py", arguments=("--name", "a b", "-n", "3"), directory=str(folder))
    assert read_command(shlex.join(program.argv), str(folder)) == program
    options = {"capture_steps": 5, "capture_after_seconds": 10.0, "function": "train.step"}
    kept = {**options, "capture_seconds": "two", "values": True}  # what a file may say besides is left out
    recorded = ProgramCommand.of(program.argv, str(folder), kept)
    assert (recorded.argv, recorded.options) == (program.argv, RecordingOptions(**options))
    module = read_command("-m package.module x", str(folder))
    assert module.path == "package.module"
    assert module.module is True
    assert module.arguments == ("x",)
    assert ProgramCommand.of(module.argv, str(folder), {}) == module
    assert ProgramCommand.of([], "", {}).path == ""


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("", "no program is given"),
        ("nothing.py", "there is no file"),
        ("models", "is a directory"),
        ("-m not-a.module", "not a module name"),
        ("-m", "not a module name"),
        ("train.py --name 'open", "cannot be split"),
    ],
)
def test_what_cannot_be_read_is_refused(text, what, folder):
    with pytest.raises(UsageError, match=what):
        read_command(text, str(folder))
