"""Home opens on the user's own code: what is listed, what each row does, and that nothing runs unseen."""

import threading

import pytest

from folding import written
from jaxprof import events as e
from jaxprof.base.errors import UsageError
from jaxprof.base.text import REDACTED
from jaxprof.runner import engine_questions
from jaxprof.runner.program import ProgramCommand
from jaxprof.session import Library, LogWriter
from jaxprof.session.library import read_entry
from jaxprof.tui.home.preview import session_summary
from jaxprof.tui.home.start_list import MOST_HERE, WAYS, StartList, own_rows
from tui import recorded
from tui.fakes import NOW, SMALL, info, keep_session, walking

pytestmark = pytest.mark.usefixtures("small_catalogue", "shelf")


@pytest.fixture
def work(tmp_path):
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "train.py").write_text("import jax\nprint('trained')\n")
    (folder / "plot.py").write_text("import matplotlib\n")
    return folder


def entries(walk):
    rows = walk.find(StartList)
    return [row.title for key in rows.keys if (row := rows.row(key))]


def test_programs_of_the_folder_come_before_the_kept_sessions(shelf, work):
    keep_session(shelf, "d", ("selu", "jit", "ok", 1e-3))
    found = own_rows(Library().entries(), work)
    assert [row.title for row in found[:2]] == ["train.py", "selu"]
    assert found[0].program == ProgramCommand(path="train.py", directory=str(work))
    assert len(found) == 2
    for number in range(MOST_HERE):
        (work / f"older{number}.py").write_text("import jax\n")
    few, all_of_them = own_rows([], work), own_rows([], work, most=None)
    assert [row.title for row in few[MOST_HERE:]] == ["More programs here…"]
    assert len(all_of_them) == MOST_HERE + 1
    assert all(row.program is not None for row in all_of_them)


def test_own_code_comes_with_its_last_arguments(shelf, work):
    def keep(name, spec, command):
        header = e.Header(session=name, created="2026-11-18T10:00:00Z", host="box", wall_seconds=NOW, command=command)
        closed = e.RunClosed(run="r1", workload=spec.workload, variant="jit", device="cpu:0", status="ok",
                             wall_seconds=92.7, spent={"compile": 3.0, "device_busy": 1.0})  # fmt: skip
        path = written(shelf / f"{name}.jaxprof", [e.RunPlanned(run="r1", spec=spec), closed], header)
        return read_entry(path)

    def function(file):
        return e.RunSpec(workload=f"{file.name}:step", variant="jit", how="jit", device="cpu:0", target=f"{file}:step",
                         arguments=["f32[8]"])  # fmt: skip

    program = e.RunSpec(workload="train.py", variant="program", how="program", device="host")
    command = ["jaxprof", "script", "--plain", "train.py", "--epochs", "4"]
    here, gone = function(work / "plot.py"), function(work / "gone.py")
    kept = [keep("a", here, []), keep("b", gone, []), keep("c", program, command)]
    measured, script, *sessions = own_rows(kept, work)
    assert (measured.title, measured.asks) == ("step", f"{work / 'plot.py'}:step f32[8]")
    assert script.program == ProgramCommand(path="train.py", arguments=("--epochs", "4"), directory=str(work))
    assert [row.title for row in sessions] == ["plot.py:step", "gone.py:step", "train.py --epochs 4"]
    secret = keep("d", program, [*command, "--token", REDACTED])
    assert own_rows([secret], work)[0].program == ProgramCommand(path="train.py", directory=str(work))


async def test_session_is_one_row_with_what_takes_most(shelf):
    header = e.Header(session="a", created="2026-11-18T10:00:00Z", host="box", wall_seconds=NOW)
    for name, spent in (("serve.py", {}), ("train.py", {"compile": 79.0, "device_busy": 21.0})):
        spec = e.RunSpec(workload=name, variant="program", how="program", device="host")
        closed = e.RunClosed(run="r1", workload=name, variant="program", device="host", status="ok", wall_seconds=92.7,
                             spent=spent)  # fmt: skip
        written(shelf / f"{name}.jaxprof", [e.RunPlanned(run="r1", spec=spec), closed, e.SessionClosed()], header)
    async with walking() as walk:
        await walk.shows("92.7 s ██████▍█ compile 79 %")
        assert "%" not in walk.row("open serve.py"), "what was not sampled takes no share"
        await walk.press("/ 'serve enter")
        await walk.until(lambda: walk.app.session_path is not None and walk.app.session_path.stem == "serve.py")


async def test_each_way_to_start_has_its_key():
    async with walking(SMALL) as walk:
        home = await walk.home()
        rows = walk.find(StartList)
        assert rows.current_row == WAYS[0], "your code comes first"
        await walk.press("end")
        assert rows.current == "hessian"
        rows.show(WAYS[:1])
        assert rows.current == "hessian", "what a thread brings moves no cursor that the user has moved"
        rows.show(WAYS)
        await walk.press("home space", "marks a session, of a program too")

        for index, way in enumerate(WAYS):
            dialogs = []
            for keys in (way.verb[0], f"home {'down ' * index} enter"):
                await walk.press(keys)
                await walk.until(lambda: walk.screen is not home, way.title)
                dialogs.append(type(walk.screen))
                await walk.press("escape")
                await walk.until(lambda: walk.screen is home)
            assert dialogs[0] is dialogs[1]

        await walk.press("home" + " down" * len(WAYS), "matmul · 3 runs")
        await walk.press("tab tab")
        assert walk.app.focused is not rows
        await walk.press("escape")
        assert walk.app.focused is rows


async def test_a_folder_is_no_function_but_a_package_may_be(work, monkeypatch):
    imported = []
    monkeypatch.setattr(engine_questions, "describe", lambda python, targets, given: imported.extend(targets) or [])
    async with walking(SMALL) as walk:
        home = await walk.home()
        home.action_own(str(work))
        await walk.press("enter", "is a folder", "plot.py")
        (work / "__init__.py").touch()  # a package: what it holds, only importing it says
        await walk.press("enter")
        await walk.until(lambda: imported == [str(work)])


async def test_preview_of_another_row_begins_at_its_first_line(shelf):
    for name in "ab":
        keep_session(shelf, name, *[("selu", "jit", "ok", 1e-3)] * 40)
    async with walking(SMALL) as walk:
        await walk.home()
        pane = walk.find("#detail")
        await walk.until(lambda: entries(walk)[:2] == ["selu", "selu"] and pane.max_scroll_y > 9)
        pane.scroll_to(y=9, animate=False)
        await walk.until(lambda: pane.scroll_y == 9)
        await walk.press("down")
        await walk.until(lambda: pane.scroll_y == 0)


async def test_program_recorded_now_is_followed(shelf):
    header = e.Header(session="aaaa", created="2026-11-18T10:00:00Z", host="box", wall_seconds=NOW)
    path = shelf / "now.jaxprof"
    writer = LogWriter(header, path)
    spec = e.RunSpec(workload="serve.py", variant="program", how="program", device="host")
    writer.append(e.RunPlanned(run="r1", spec=spec))
    writer.append(e.ProgramStarted(run="r1", argv=["serve.py"], how="record", directory="/"))
    async with walking(SMALL) as walk:
        await walk.until(lambda: "serve.py" in entries(walk))
        await walk.shows("running")
        await walk.press("home enter")
        await walk.until(lambda: walk.app.session_path == path)
        assert walk.app.session_grows
    assert read_entry(path).running
    writer.append(e.RunClosed(run="r1", workload="serve.py", variant="program", device="host", status="ok"))
    entry = read_entry(path)
    assert entry.live is True, "its session is still held"
    assert entry.running is False, "its session is still held"
    (session,) = own_rows([entry], shelf)
    assert session.note == "just now"
    assert session.entry == entry
    writer.close()


@pytest.mark.usefixtures("one_moment")
@pytest.mark.parametrize(
    ("statuses", "trouble"), [("failed", "1 failed"), ("ok", ""), ("ok failed crashed", "1 failed, 1 crashed")]
)
def test_a_whole_session_whose_run_failed_says_so(shelf, statuses, trouble):
    runs = [("train.py", f"v{number}", status, None) for number, status in enumerate(statuses.split())]
    entry = read_entry(keep_session(shelf, "d", *runs))
    assert entry.complete
    (row,) = own_rows([entry], shelf)
    assert (row.trouble, row.note) == (trouble, "just now")
    state = next(line.plain for line in session_summary(entry, None, 80) if line.plain.startswith("state"))
    assert state.split(maxsplit=1)[1] == ", ".join(filter(None, ("complete", trouble)))


@pytest.mark.usefixtures("one_moment")
async def test_age_of_a_session_fits_beside_its_failure(shelf):
    keep_session(shelf, "d", ("train.py", "jit", "failed", None), ("a.py", "jit", "crashed", None), age_seconds=7200)
    for size, words in ((SMALL, "✗ 2 h ago"), ((120, 32), "1 failed, 1 crashed, 2 h ago")):
        async with walking(size) as walk:
            await walk.shows(words)


async def test_preview_of_a_program_agrees_with_its_summary(shelf):
    tape = recorded.finished()
    writer = LogWriter(tape.header, shelf / "train.jaxprof")
    for event in tape.events:
        writer.append(event)
    writer.close()
    async with walking((200, 60)) as walk:
        await walk.shows("costs most", gone="variant")
        assert "device busy 9.8 s (48 %)" in walk.row("costs most")
        await walk.press("home enter")
        await walk.on("ProgramScreen")
        await walk.shows("device 48 %")


async def test_one_thread_reads_the_programs_that_the_cursor_passes(shelf, monkeypatch):
    for name in ("first", "second", "third"):
        tape = recorded.finished()
        written(shelf / f"{name}.jaxprof", tape.events, tape.header)
    read, go = [], threading.Event()

    def cost_of(entry):
        read.append(entry.name)
        go.wait(30)
        return f"what {entry.name} costs"

    monkeypatch.setattr("jaxprof.tui.home.preview.cost_of", cost_of)
    async with walking() as walk:
        rows = walk.find(StartList)
        await walk.until(lambda: read)
        for _ in range(2):
            await walk.press("down", rows.keys[0].parent.name)
            await walk.pause()
        last = rows.entry.name
        assert len(read) == 1
        go.set()
        await walk.shows(f"what {last} costs")
        assert read == [read[0], last]


async def test_arguments_of_a_script_go_after_its_name(work):
    async with walking(SMALL) as walk:
        home = await walk.home()
        home.action_program(ProgramCommand(path="train.py", directory=str(work)))
        await walk.shows("Profile a script")
        await walk.press("space '--epochs space 4", "train.py --epochs 4")


async def test_file_lists_its_functions_and_errors_stay(work, monkeypatch):
    (work / "mine.py").write_text('def step(w, x):\n    """Update."""\n\ndef _inner():\n    pass\n')
    described = []

    def describe(interpreter, targets, arguments):
        described.append((*targets, *arguments))
        if not arguments:
            raise UsageError("step takes (w, x), and nothing says what they are")
        return [info("mine.py:step")]

    monkeypatch.setattr(engine_questions, "describe", describe)
    async with walking(SMALL) as walk:
        home = await walk.home()
        await walk.press(f"+ '{work / 'mine.py'} enter", "Which function of mine.py?", "step(w, x)", "Update.")
        assert "_inner" not in walk.text
        assert not described, "the file is read, not imported"
        await walk.press("enter", "Add a function")
        await walk.press("enter", "nothing says what they are")
        assert walk.screen is not home
        await walk.press("'f32[8] space 'f32[8] enter")
        await walk.until(lambda: walk.screen is home)
        assert described[-1] == (f"{work / 'mine.py'}:step", "f32[8]", "f32[8]")
