"""Home opens on the user's own code: what is listed, what each row does, and that nothing runs unseen."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual.widgets import Input

from jaxprof import events as e
from jaxprof.session.log import LogWriter
from jaxprof.session.log.entry import read_entry
from jaxprof.tui.home.own_code import TOUR, WAYS, OwnCodeList, own_programs
from jaxprof.tui.home.screen import HomeScreen
from jaxprof.tui.home.workloads import WorkloadList
from jaxprof.tui.kit.dialogs import AskText
from jaxprof.tui.kit.script_dialog import ScriptDialog, ScriptForm
from tui.fakes import NOW, Stage, keep_session, screen_text, until

pytestmark = pytest.mark.usefixtures("small_catalogue", "shelf")


def keep_program(shelf: Path, name: str, argv: list[str], directory: Path, how: str = "script") -> Path:
    """Writes the session of a program that was started so."""
    header = e.Header(session=name * 4, created="2026-11-18T10:00:00Z", host="box", wall_seconds=NOW)
    writer = LogWriter(header, shelf / f"{name}.jaxprof")
    spec = e.RunSpec(workload=argv[0], variant="program", how="program", device="host")
    writer.append(e.RunPlanned(run="r1", spec=spec))
    writer.append(e.ProgramStarted(run="r1", argv=argv, how=how, directory=str(directory)))
    writer.append(e.RunClosed(run="r1", workload=argv[0], variant="program", device="host", status="ok"))
    writer.append(e.SessionClosed())
    writer.close()
    return shelf / f"{name}.jaxprof"


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """A folder with a program that imports jax, and one that does not."""
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "train.py").write_text("import jax\nprint('trained')\n")
    (folder / "plot.py").write_text("import matplotlib\n")
    return folder


def listed(stage: Stage) -> list[str]:
    rows = stage.app.screen.query_one(OwnCodeList)
    return [str(key[1]) for key in rows.keys]  # type: ignore[index]


def test_programs_of_before_come_first_and_only_those_that_are_still_there(shelf: Path, work: Path) -> None:
    from jaxprof.session.log import Library

    keep_program(shelf, "a", ["train.py", "--epochs", "3"], work)
    keep_program(shelf, "b", ["gone.py"], work)
    keep_program(shelf, "c", ["cell"], work, how="cell")
    keep_session(shelf, "d", ("selu", "jit", "ok", 1e-3))
    found = own_programs(Library().entries(), work)
    assert [row.title for row in found] == ["train.py --epochs 3", *(way.title for way in WAYS if way.action != TOUR)]
    assert found[0].form == ScriptForm("train.py", "--epochs 3", str(work))


async def test_each_way_has_its_key_and_the_cursor_goes_on_into_the_workloads() -> None:
    stage = Stage()
    async with stage.app.run_test(size=(80, 24)) as pilot:
        own = stage.app.screen.query_one(OwnCodeList)
        assert own.current_row == WAYS[0]
        assert stage.app.focused is own, "your code comes first"
        await pilot.press("end")
        own.show(WAYS)
        assert own.cursor == len(WAYS) - 1, "what a thread brings moves no cursor that the user has moved"

        await until(pilot, lambda: isinstance(stage.app.screen, HomeScreen) and stage.app.screen.whole)
        for index, way in enumerate(WAYS[:-1]):
            await pilot.press(*("plus" if key == "+" else key for key in way.key.split()))
            await until(pilot, lambda: not isinstance(stage.app.screen, HomeScreen), way.title)
            by_key = stage.app.screen
            await pilot.press("escape")
            await until(pilot, lambda: isinstance(stage.app.screen, HomeScreen))
            await pilot.press("home", *["down"] * index, "enter")
            await until(pilot, lambda: not isinstance(stage.app.screen, HomeScreen), way.title)
            assert type(stage.app.screen) is type(by_key)
            await pilot.press("escape")
            await until(pilot, lambda: isinstance(stage.app.screen, HomeScreen))

        await until(pilot, lambda: isinstance(stage.app.screen, HomeScreen) and stage.app.screen.info is not None)
        own, workloads = stage.app.screen.query_one(OwnCodeList), stage.app.screen.query_one(WorkloadList)
        assert stage.app.focused is own
        assert "⏎ Run" not in screen_text(stage.app), "no workload is in view"
        await pilot.press("home", *["down"] * len(WAYS))
        assert stage.app.focused is workloads
        await until(pilot, lambda: "⏎ Run" in screen_text(stage.app))
        await pilot.press("escape")
        assert stage.app.focused is own

        await until(pilot, lambda: isinstance(stage.app.screen, HomeScreen) and stage.app.screen.whole)
        await pilot.press("m", "W")
        await until(pilot, lambda: isinstance(stage.app.screen, AskText))
        assert "jaxprof.record(" in screen_text(stage.app)


async def test_enter_on_a_program_asks_and_enter_again_runs_it(work: Path) -> None:
    stage = Stage()
    stage.app.folder = work
    async with stage.app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: listed(stage)[0] == "train.py")
        assert "plot.py" not in screen_text(stage.app)
        assert "profile train.py" in screen_text(stage.app)
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(stage.app.screen, ScriptDialog) and stage.app.screen.query(Input))
        assert not stage.programs, "nothing runs unseen"
        await pilot.press("enter")
        await until(pilot, lambda: stage.programs)
        program = stage.programs[0].program
        assert (program.path, program.directory) == ("train.py", str(work))


async def test_a_program_that_is_recorded_now_is_followed(shelf: Path) -> None:
    header = e.Header(session="aaaa", created="2026-11-18T10:00:00Z", host="box", wall_seconds=NOW)
    writer = LogWriter(header, shelf / "now.jaxprof")
    spec = e.RunSpec(workload="serve.py", variant="program", how="program", device="host")
    writer.append(e.RunPlanned(run="r1", spec=spec))
    writer.append(e.ProgramStarted(run="r1", argv=["serve.py"], how="record", directory="/"))
    stage = Stage()
    async with stage.app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: "serve.py" in listed(stage))
        assert "running" in screen_text(stage.app)
        await pilot.press("m", "W")
        await until(pilot, lambda: stage.app.session_path == shelf / "now.jaxprof")
        assert stage.app.session_grows
    writer.close()


def test_a_program_that_has_ended_is_not_running_though_its_session_is_held(shelf: Path) -> None:
    header = e.Header(session="bbbb", created="2026-11-18T10:00:00Z", host="box", wall_seconds=NOW)
    writer = LogWriter(header, shelf / "held.jaxprof")
    spec = e.RunSpec(workload="serve.py", variant="program", how="program", device="host")
    writer.append(e.RunPlanned(run="r1", spec=spec))
    assert read_entry(shelf / "held.jaxprof").running
    writer.append(e.RunClosed(run="r1", workload="serve.py", variant="program", device="host", status="ok"))
    entry = read_entry(shelf / "held.jaxprof")
    assert (entry.live, entry.running) == (True, False)
    assert own_programs([entry], shelf) == list(WAYS)
    writer.close()
