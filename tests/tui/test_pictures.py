"""How each screen looks: at one size, three of them at two."""

import os
from functools import partial
from pathlib import Path

import pytest
from pytest_textual_snapshot import SVGImageExtension

import job_folders
from jaxprof.tui.home.start_list import StartList
from jaxprof.tui.job.processes import ProcessList
from jaxprof.tui.shell.profiler import Profiler
from tui import hlo_texts, profiles, recorded, session_tapes
from tui.fakes import SMALL, WIDE, Stage, StillDevices, keep_session, still, walking

pytestmark = pytest.mark.usefixtures("small_catalogue", "one_moment")
LARGE = (200, 60)


@pytest.fixture
def stage(shelf, tmp_path, monkeypatch):
    """An app over three kept sessions and two programs, whose folder has the same name in every picture."""
    keep_session(shelf, "selu-h200", ("selu", "numpy", "ok", 4.37e-3), ("selu", "jit", "ok", 0.63e-3), age_seconds=120)
    keep_session(shelf, "matmul-oom", ("matmul", "jit", "failed", None), complete=False, age_seconds=7200)
    keep_session(shelf, "first", ("selu", "jit", "ok", 0.71e-3), ("hessian", "jit", "ok", 9.2e-6), age_seconds=200_000)
    monkeypatch.setenv("HOME", str(shelf))
    monkeypatch.setattr("jaxprof.tui.home.preview.safe", lambda text: str(text).replace(str(shelf), "~"))
    monkeypatch.setattr("jaxprof.tui.shell.device_monitor.PERIOD_SECONDS", 60.0)
    monkeypatch.setattr("jaxprof.tui.shell.device_monitor.HISTORY", 2)
    return Stage()


async def home(walk, keys="", row=""):
    """Start once everything has come, with the cursor on the second row, or on a workload."""
    devices = walk.app.devices
    screen = await walk.home()
    await walk.until(lambda: sum(isinstance(key, Path) for key in walk.find(StartList).keys) == 3 and devices.asked)
    for _ in range(2):  # as many as are kept: how many came before depends on when JAX was asked
        devices.take(StillDevices().read())
    screen.query_one("#devices").show_devices()
    await walk.press("home down")  # of the sessions to the torn one
    if row:
        walk.find(StartList).move_to_key(row)
    await still(walk.pilot)
    await walk.press(keys)


async def job(walk):
    folder = Path(os.environ["JAXPROF_HOME"]) / "train.jaxprof.d"
    folder.mkdir()
    late_from = (job_folders.late_from(10 if index == 1 else 99) for index in range(4))
    walk.app.open_session(job_folders.job(folder, *late_from))
    screen = await walk.on("JobScreen")
    await walk.until(lambda: screen.figures is not None and screen.query_one(ProcessList).grid is not None)


def of(made, mode, keys="", *, says="", view="", tab=""):
    """A screen with a session that says something, a view of a profile or a tab of HLO, and keys that are pressed
    there."""

    async def go(walk):
        screen = await walk.show(made(), mode, says, view=view)
        await still(walk.pilot)
        if tab:
            screen.action_tab(tab)
        await walk.press(keys)

    return go


captured, finished = profiles.captured, session_tapes.finished
program = partial(hlo_texts.program_tape, hlo_before=hlo_texts.HLO)
SCREENS = {
    SMALL: {
        "parameters": partial(home, keys="e", row="selu"),
        "help": partial(home, keys="?"),
        "menu": partial(home, keys="m", row="selu"),
        "results": of(finished, "results", "down down", says="as fast as"),
        "kernels": of(program, "hlo"),
        "hlo": of(program, "hlo", tab="hlo"),
    },
    WIDE: {
        "sessions": home,
        "example": partial(home, row="selu"),
        "run": of(session_tapes.sampling, "results"),
        "sweep": of(session_tapes.sweep, "results", says="log-log"),
        "compared": of(finished, "results", "down space space c", says="as fast as"),
        "results": of(finished, "results", "down down", says="as fast as"),
        "in-full": of(finished, "results", "down down enter", says="as fast as"),
        "kernels": of(program, "hlo"),
        "roofline": of(program, "hlo", "m d 'h200 enter", tab="roofline"),
        "timeline": of(captured, "profile", ". + +", view="timeline"),
        "compile": of(captured, "profile", "down", view="compile"),
        "memory": of(captured, "profile", "down", view="memory"),
        "schedule": of(program, "profile", "right right right", view="memory"),
        "nested": of(recorded.finished, "program", "5 m O down down"),
    },
    LARGE: {"program": of(recorded.finished, "program", "right")},
}
"""By the size of an app, which pictures are taken of it, one after the other."""


@pytest.fixture
def differs(snapshot):
    """Whether a screen, once nothing moves any more, looks otherwise than in the picture of that name."""
    pictures = snapshot.use_extension(SVGImageExtension)

    async def differs(walk, name):
        await still(walk.pilot)
        return pictures(name=name) != walk.app.export_screenshot(title=walk.app.title, simplify=True)

    return differs


@pytest.mark.parametrize("size", SCREENS, ids=["small", "wide", "large"])
async def test_screens(differs, monkeypatch, app_clock, stage, size):
    app_clock.seconds, found = session_tapes.sampling().now, []
    async with walking(size, stage) as walk:
        for name, go in SCREENS[size].items():
            monkeypatch.setattr(Profiler, "session_grows", property(lambda app, name=name: name == "run"))
            await go(walk)
            if await differs(walk, name):
                found.append(name)
            while len(walk.app.screen_stack) > 1:
                await walk.press("escape")
    assert found == []


async def test_home(differs, stage, tmp_path):
    for name in ("train.py", "model.py"):
        (tmp_path / name).write_text(f'"""What {name} is for."""\n\nimport jax\n\njax.devices()\n')
        os.utime(tmp_path / name, (len(name), len(name)))
    stage.app.folder = tmp_path
    async with walking(stage=stage) as walk:
        await home(walk)
        assert not await differs(walk, "wide")
        await walk.pilot.resize_terminal(*SMALL)
        assert not await differs(walk, "small")


async def test_job(differs, monkeypatch):
    monkeypatch.setattr("jaxprof.tui.shell.device_monitor.PERIOD_SECONDS", 60.0)
    async with walking(stage=Stage(light=True)) as walk:
        await job(walk)
        assert not await differs(walk, "steps")
