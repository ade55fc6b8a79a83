"""Asking for a program: what is typed, what is read of it, and what completes it."""

import pytest

from jaxprof.engine.protocol.recording import RecordingOptions
from jaxprof.errors import UsageError
from jaxprof.runner.program import ProgramCommand
from jaxprof.tui.kit.script_dialog import (
    ScriptForm,
    form_of_argv,
    read_arguments,
    read_form,
    read_program,
)
from tui.fakes import HOSTILE, SMALL, walking


@pytest.fixture
def folder(tmp_path):
    """A folder with a program, a package and a folder."""
    (tmp_path / "train.py").write_text("print(1)\n")
    (tmp_path / "notes.txt").write_text("")
    (tmp_path / f"tr{HOSTILE.replace('/', '')}.py").write_text("")
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "net.py").write_text("")
    return tmp_path


def test_a_form_becomes_a_program_and_back(folder):
    options = {"capture_steps": 5, "capture_after_seconds": 10.0, "function": "train.step"}
    form = ScriptForm("train.py", "--name 'a b' -n 3", str(folder), tuple(options.items()))
    program = read_form(form)
    assert program == ProgramCommand(
        path="train.py",
        arguments=("--name", "a b", "-n", "3"),
        directory=str(folder),
        options=RecordingOptions(**options),
    )
    kept = {**options, "capture_seconds": "two", "values": True}  # what a file may say besides is left out
    assert form_of_argv(tuple(program.argv), str(folder), kept) == form
    module = read_form(ScriptForm("-m package.module", directory=str(folder)))
    assert (module.path, module.module) == ("package.module", True)
    assert form_of_argv(tuple(module.argv), str(folder), {}).program == "-m package.module"


@pytest.mark.parametrize(
    ("read", "text", "what"),
    [
        (read_program, "", "no program is given"),
        (read_program, "nothing.py", "there is no file"),
        (read_program, "models", "is a directory"),
        (read_program, "-m not-a.module", "not a module name"),
        (read_program, "-m", "not a module name"),
        (read_arguments, "--name 'open", "cannot be split"),
    ],
)
def test_what_cannot_be_read_is_refused(read, text, what, folder):
    with pytest.raises(UsageError, match=what):
        read(*((text, folder) if read is read_program else (text,)))


@pytest.mark.usefixtures("catalogue", "shelf")
async def test_a_program_is_started_from_home(folder, monkeypatch):
    monkeypatch.chdir(folder)
    async with walking(SMALL) as walk:
        await walk.until(lambda: getattr(walk.screen, "info", None))
        await walk.press("m x")
        await walk.on("FormDialog")
        await walk.until(lambda: walk.app.focused)
        # Typed in order: where the second error shows, the first would.
        await walk.press("z down ''open up", "cannot be split", gone="there is no file")
        await walk.press("backspace down" + " backspace" * 5 + " up enter", "no program is given")
        await walk.press("'train.py", "train.py")
        await walk.press("down '--n space 3 enter", "train.py --n 3")
        await walk.mode("program")
        program = walk.stage.programs[0].program
        assert (program.path, program.arguments) == ("train.py", ("--n", "3"))
        assert program.options == RecordingOptions()
        walk.stage.programs[0].finish()
