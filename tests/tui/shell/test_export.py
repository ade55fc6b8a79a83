"""Export: the session in view as a file for others."""

import pytest

from tui import profiles, recorded
from tui.fakes import SMALL, walking


@pytest.mark.parametrize(
    ("keys", "ending", "begin"), [("enter", ".html", "<!doctype html>"), ("down enter", ".md", "```text\n")]
)
async def test_session_is_written_in_the_form_that_is_chosen(keys, ending, begin, tmp_path):
    async with walking(SMALL) as walk:
        walk.app.folder = tmp_path
        await walk.show(recorded.finished(), "program")
        await walk.press("m E", "Export this session")
        await walk.press(keys, "Export as")
        await walk.press("enter", "Written")
        (file,) = tmp_path.iterdir()
        assert file.name.endswith(ending)
        assert file.read_text().lower().startswith(begin)


async def test_export_replaces_no_file_and_says_so_in_the_dialog(tmp_path):
    async with walking(SMALL) as walk:
        walk.app.folder = tmp_path
        await walk.show(recorded.finished(), "program")
        await walk.press("m E", "Export this session")
        await walk.press("down enter", "Export as")
        name = walk.screen.query_one("Input").value
        with open(name, "w") as file:
            file.write("mine")
        await walk.press("enter", "already exists")
        with open(name) as file:
            assert file.read() == "mine"


async def test_timeline_for_perfetto_needs_a_capture(tmp_path):
    async with walking(SMALL) as walk:
        walk.app.folder = tmp_path
        await walk.show(recorded.finished(), "program")
        await walk.press("m E", "Export this session")
        await walk.press("down down enter", "Export as Timeline")
        await walk.press("enter", "has a timeline")
        assert not list(tmp_path.iterdir())
        await walk.press("escape")
        await walk.show(profiles.captured(), "profile")
        await walk.press("m E", "Export this session")
        await walk.press("down down enter", "Export as Timeline")
        await walk.press("enter", "Written")
        (file,) = tmp_path.iterdir()
        assert '"traceEvents"' in file.read_text()
