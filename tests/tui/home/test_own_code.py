"""Home opens on the user's own code: what is listed, what each row does, and that nothing runs unseen."""

import pytest

from jaxprof import events as e
from jaxprof.session.log import Library, LogWriter
from jaxprof.session.log.entry import read_entry
from jaxprof.tui.home.own_code import TOUR, WAYS, OwnCodeList, own_programs
from jaxprof.tui.home.screen import HomeScreen
from jaxprof.tui.home.workloads import WorkloadList
from jaxprof.tui.kit.script_dialog import ScriptForm
from tui.fakes import NOW, SMALL, keep_session, walking

pytestmark = pytest.mark.usefixtures("small_catalogue", "shelf")


@pytest.fixture
def work(tmp_path):
    """A folder with a program that imports jax, and one that does not."""
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "train.py").write_text("import jax\nprint('trained')\n")
    (folder / "plot.py").write_text("import matplotlib\n")
    return folder


def listed(walk):
    rows = walk.find(OwnCodeList)
    return [rows.row(key).title for key in rows.keys]


def test_programs_of_the_folder_come_before_the_kept_sessions(shelf, work):
    keep_session(shelf, "d", ("selu", "jit", "ok", 1e-3))
    found = own_programs(Library().listed(), work)
    assert [row.title for row in found[:2]] == ["train.py", "selu"]
    assert found[0].form == ScriptForm("train.py", directory=str(work))
    assert found[2:] == [way for way in WAYS if way.action != TOUR]


async def test_each_way_has_its_key_and_the_cursor_goes_on_into_the_workloads():
    async with walking(SMALL) as walk:
        home = await walk.on(HomeScreen)
        own, workloads = walk.find(OwnCodeList), walk.find(WorkloadList)
        assert own.current_row == WAYS[0]
        assert walk.app.focused is own, "your code comes first"
        await walk.press("end")
        own.show(WAYS)
        assert own.cursor == len(WAYS) - 1, "what a thread brings moves no cursor that the user has moved"

        for index, way in enumerate(WAYS[:-1]):
            dialogs = []
            for keys in (way.key, f"home {'down ' * index} enter"):
                await walk.press(keys)
                await walk.until(lambda: walk.screen is not home, way.title)
                dialogs.append(type(walk.screen))
                await walk.press("escape")
                await walk.until(lambda: walk.screen is home)
            assert dialogs[0] is dialogs[1]

        await walk.until(lambda: home.info is not None)
        assert walk.app.focused is own
        assert "⏎ Run" not in walk.text, "no workload is in view"
        await walk.press("home" + " down" * len(WAYS), "⏎ Run")
        assert walk.app.focused is workloads
        await walk.press("escape")
        assert walk.app.focused is own


async def test_a_program_that_is_recorded_now_is_followed_and_one_that_has_ended_is_not_running(shelf):
    header = e.Header(session="aaaa", created="2026-11-18T10:00:00Z", host="box", wall_seconds=NOW)
    path = shelf / "now.jaxprof"
    writer = LogWriter(header, path)
    spec = e.RunSpec(workload="serve.py", variant="program", how="program", device="host")
    writer.append(e.RunPlanned(run="r1", spec=spec))
    writer.append(e.ProgramStarted(run="r1", argv=["serve.py"], how="record", directory="/"))
    async with walking(SMALL) as walk:
        await walk.until(lambda: "serve.py" in listed(walk))
        await walk.shows("running")
        await walk.press("home enter")
        await walk.until(lambda: walk.app.session_path == path)
        assert walk.app.session_grows
    assert read_entry(path).running
    writer.append(e.RunClosed(run="r1", workload="serve.py", variant="program", device="host", status="ok"))
    entry = read_entry(path)
    assert (entry.live, entry.running) == (True, False), "its session is still held"
    (session, *ways) = own_programs([entry], shelf)
    assert session.note == "just now"
    assert (session.entry, ways) == (entry, [way for way in WAYS if way.action != TOUR])
    writer.close()
