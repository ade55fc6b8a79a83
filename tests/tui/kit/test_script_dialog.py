"""Asking for a program on Start."""

import pytest

from jaxprof.engine.protocol import RecordingOptions
from tui.fakes import SMALL, walking


@pytest.mark.usefixtures("catalogue", "shelf")
async def test_a_program_is_started_from_start(tmp_path, monkeypatch):
    (tmp_path / "train.py").touch()
    monkeypatch.chdir(tmp_path)
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
