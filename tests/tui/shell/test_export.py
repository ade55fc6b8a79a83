"""Export: the session in view as a file for others."""

import gzip
from threading import Event

import pytest

from folding import fold
from jaxprof import events as e
from jaxprof.tui.shell.profiler import Profiler
from report import sessions
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
        await walk.press("2 enter", "Written")


async def test_export_is_written_once_and_not_left_behind(tmp_path, monkeypatch):
    writes, go_on = [], Event()

    def to_page(session, name):
        writes.append(name)
        assert go_on.wait(20)
        return "<!doctype html>"

    monkeypatch.setattr("jaxprof.report.page.document.to_page", to_page)
    async with walking(SMALL) as walk:
        walk.app.folder = tmp_path
        await walk.show(recorded.finished(), "program")
        await walk.press("m E", "Export this session")
        await walk.press("enter", "Export as Page")
        await walk.press("enter", "Writing…")
        await walk.press("enter z")
        assert len(writes) == 1
        await walk.press("escape", gone="Export as Page")
        go_on.set()
        await walk.until(lambda: not list(walk.app.workers))
        assert not list(tmp_path.iterdir()), "the dialog was left before the file was whole"
        assert "Written" not in walk.said
        await walk.press("m E", "Export this session")
        await walk.press("enter", "Export as Page")
        await walk.press("'.gz enter", "Written")
        (file,) = tmp_path.iterdir()
        assert gzip.decompress(file.read_bytes()) == b"<!doctype html>"


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


async def test_of_several_timelines_that_of_the_run_in_view_is_written(tmp_path):
    runs = [*sessions.numpy_run("r1")]
    for run in ("r2", "r3"):
        text = e.TextRecorded(run=run, name="timeline", text=profiles.timeline(name=f"kernel_of_{run}"))
        runs += [*sessions.jit_run(run, "r1"), text]
    async with walking(SMALL) as walk:
        walk.app.folder = tmp_path
        await walk.show(fold(sessions.HEADER, runs), "results")
        await walk.press("home m E", "Export this session")
        await walk.press("down down enter", "Export as Timeline")
        await walk.press("enter", "2 runs")  # NumPy has none
        await walk.press("escape down down m E", "Export this session")
        await walk.press("down down enter", "Export as Timeline")
        await walk.press("enter", "Written")
        (file,) = tmp_path.iterdir()
        assert "kernel_of_r3" in file.read_text()


async def test_session_that_is_being_written_is_not_exported(monkeypatch):
    async with walking(SMALL) as walk:
        await walk.show(recorded.finished(), "program")
        monkeypatch.setattr(Profiler, "session_grows", property(lambda app: True))
        await walk.press("m E", "the session is still being written", "Press m, then E once it has ended")
        assert "Export this session" not in walk.text
