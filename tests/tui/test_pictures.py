"""How each screen looks: at one size, three of them at two."""

import os
from functools import partial
from pathlib import Path

import pytest

import job_folders
from jaxprof.tui.home.start_list import StartList
from jaxprof.tui.job.processes import ProcessList
from jaxprof.tui.profiler import Profiler
from tui import hlo_texts, profiles, recorded, session_tapes
from tui.fakes import SMALL, WIDE, Stage, StillDevices, Walk, keep_session, still

pytestmark = pytest.mark.usefixtures("small_catalogue", "one_moment")


@pytest.fixture
def stage(shelf, tmp_path, monkeypatch):
    """An app over three kept sessions and two programs, whose folder has the same name in every picture."""
    keep_session(shelf, "selu-h200", ("selu", "numpy", "ok", 4.37e-3), ("selu", "jit", "ok", 0.63e-3), age_seconds=120)
    keep_session(shelf, "matmul-oom", ("matmul", "jit", "failed", None), complete=False, age_seconds=7200)
    keep_session(shelf, "first", ("selu", "jit", "ok", 0.71e-3), ("hessian", "jit", "ok", 9.2e-6), age_seconds=200_000)
    monkeypatch.setenv("HOME", str(shelf))
    monkeypatch.setattr("jaxprof.tui.home.preview.safe", lambda text: str(text).replace(str(shelf), "~"))
    monkeypatch.setattr("jaxprof.tui.device_monitor.PERIOD_SECONDS", 60.0)
    monkeypatch.setattr("jaxprof.tui.device_monitor.HISTORY", 2)
    return Stage()


async def home(walk, keys="", row=""):
    """Start once everything has come, with the cursor on the second row, or on a workload."""
    devices = walk.app.devices
    screen = await walk.home()
    await walk.until(lambda: sum(isinstance(key, Path) for key in walk.find(StartList).keys) == 3 and devices.asked)
    for _ in range(2):  # as many as are kept: how many came before depends on when JAX was asked
        devices.take(StillDevices().read())
    screen.query_one("#devices").show_devices()
    await walk.press("down")  # of the sessions to the torn one
    if row:
        walk.find(StartList).move_to_key(row)
    await still(walk.pilot)
    await walk.press(keys)


async def job(walk):
    """A job of which one process is late from the middle on."""
    folder = Path(os.environ["JAXPROF_HOME"]) / "train.jaxprof.d"
    folder.mkdir()
    late_from = (job_folders.late_from(10 if index == 1 else 99) for index in range(4))
    walk.app.open_session(job_folders.job(folder, *late_from))
    screen = await walk.on("JobScreen")
    await walk.until(lambda: screen.figures is not None and screen.query_one(ProcessList).grid is not None)


def of(made, mode, keys="", *, view="", tab=""):
    """A screen with a session, a view of a profile or a tab of HLO, and keys that are pressed there."""

    async def go(walk):
        screen = await walk.show(made(), mode, view=view)
        await still(walk.pilot)
        if tab:
            screen.action_tab(tab)
        await walk.press(keys)

    return go


captured, finished = profiles.captured, session_tapes.finished
program = partial(hlo_texts.program_tape, hlo_before=hlo_texts.HLO)
PICTURES = {
    "parameters": (partial(home, keys="e", row="selu"), SMALL),
    "help": (partial(home, keys="?"), SMALL),
    "menu": (partial(home, keys="m", row="selu"), SMALL),
    "sessions": (home, WIDE),
    "example": (partial(home, row="selu"), WIDE),
    "run": (of(session_tapes.sampling, "results"), WIDE),
    "results-small": (of(finished, "results", "down down"), SMALL),
    "results": (of(finished, "results", "down down"), WIDE),
    "sweep": (of(session_tapes.sweep, "results"), WIDE),
    "compared": (of(finished, "results", "down space space c"), WIDE),
    "in-full": (of(finished, "results", "down down enter"), WIDE),
    "kernels-small": (of(program, "hlo"), SMALL),
    "kernels": (of(program, "hlo"), WIDE),
    "hlo": (of(program, "hlo", tab="hlo"), SMALL),
    "roofline": (of(program, "hlo", "m d 'h200 enter", tab="roofline"), WIDE),
    "timeline": (of(captured, "profile", ". + +", view="timeline"), WIDE),
    "compile": (of(captured, "profile", "down", view="compile"), WIDE),
    "memory": (of(captured, "profile", "down", view="memory"), WIDE),
    "program": (of(recorded.finished, "program", "right"), (200, 60)),
    "nested": (of(recorded.finished, "program", "5 m O down down"), WIDE),
}


def drawn(snap_compare, stage, go, size):
    """Whether the screen looks as it did, once nothing moves any more."""

    async def before(pilot):
        await go(Walk(stage, pilot))
        await still(pilot)

    return bool(snap_compare(stage.app, terminal_size=size, run_before=before))


@pytest.mark.parametrize("name", PICTURES)
def test_screens(snap_compare, monkeypatch, stage, name):
    monkeypatch.setattr(Profiler, "session_grows", property(lambda app: name == "run"))
    now = session_tapes.sampling().now
    monkeypatch.setattr("jaxprof.tui.results.run_table.monotonic", lambda: now)
    assert drawn(snap_compare, stage, *PICTURES[name])


@pytest.mark.parametrize("size", [SMALL, WIDE], ids=["small", "wide"])
def test_home(snap_compare, stage, tmp_path, size):
    """On the user's own programs."""
    for name in ("train.py", "model.py"):
        (tmp_path / name).write_text(f'"""What {name} is for."""\n\nimport jax\n\njax.devices()\n')
        os.utime(tmp_path / name, (len(name), len(name)))
    stage.app.folder = tmp_path
    assert drawn(snap_compare, stage, home, size)


def test_job(snap_compare, monkeypatch):
    monkeypatch.setattr("jaxprof.tui.device_monitor.PERIOD_SECONDS", 60.0)
    assert drawn(snap_compare, Stage(light=True), job, WIDE)
