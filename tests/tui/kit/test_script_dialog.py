"""Asking for a program: what is typed, and what is read of it."""

import shlex

import pytest

from jaxprof.engine.protocol.recording import RecordingOptions
from jaxprof.errors import UsageError
from jaxprof.runner.program import ProgramCommand
from jaxprof.tui.kit.script_dialog import read_command, recorded_command
from tui.fakes import SMALL, walking


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
    recorded = recorded_command(program.argv, str(folder), kept)
    assert (recorded.argv, recorded.options) == (program.argv, RecordingOptions(**options))
    module = read_command("-m package.module x", str(folder))
    assert (module.path, module.module, module.arguments) == ("package.module", True, ("x",))
    assert recorded_command(module.argv, str(folder), {}) == module
    assert recorded_command([], "", {}).path == ""


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


@pytest.mark.usefixtures("catalogue", "shelf")
async def test_a_program_is_started_from_start(folder, monkeypatch):
    monkeypatch.chdir(folder)
    async with walking(SMALL) as walk:
        await walk.home()
        await walk.press("m x")
        await walk.on("FormDialog")
        await walk.until(lambda: walk.app.focused)
        await walk.shows("such as train.py --epochs 1")  # alone it looked like a value
        await walk.press("z enter", "there is no file")
        await walk.press("backspace enter", "no program is given")
        await walk.press("'train.py space '--n space 3", gone="no program is given")
        await walk.press("enter")
        await walk.mode("program")
        program = walk.stage.programs[0].program
        assert (program.path, program.arguments) == ("train.py", ("--n", "3"))
        assert program.options == RecordingOptions()
        walk.stage.programs[0].finish()
