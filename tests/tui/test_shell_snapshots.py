"""Pictures of Home, Sessions, their dialogs and the help."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from jaxprof.tui.home.own_code import WAYS, OwnCodeList
from jaxprof.tui.home.screen import HomeScreen
from jaxprof.tui.kit.session_list import SessionTable
from jaxprof.tui.sessions.screen import SessionsScreen
from tui.fakes import Stage, StillDevices, Walk, keep_session, still

pytestmark = pytest.mark.usefixtures("catalogue", "one_moment")
SIZES = [(80, 24), (120, 40)]


@pytest.fixture
def stage(shelf: Path, monkeypatch: pytest.MonkeyPatch) -> Stage:
    """An app over three kept sessions, whose folder has the same name in every picture."""
    keep_session(shelf, "selu-h200", ("selu", "numpy", "ok", 4.37e-3), ("selu", "jit", "ok", 0.63e-3), age_seconds=120)
    keep_session(shelf, "matmul-oom", ("matmul", "jit", "failed", None), complete=False, age_seconds=7200)
    keep_session(shelf, "first", ("hessian", "jit", "ok", 9.2e-6), age_seconds=200_000)
    monkeypatch.setenv("HOME", str(shelf))
    monkeypatch.setattr("jaxprof.tui.kit.session_list.safe", lambda text: str(text).replace(str(shelf), "~"))
    monkeypatch.setattr("jaxprof.tui.device_monitor.PERIOD_SECONDS", 60.0)
    monkeypatch.setattr("jaxprof.tui.device_monitor.HISTORY", 2)
    return Stage()


async def home(walk: Walk) -> None:
    """Home once everything has come."""
    devices = walk.app.devices
    screen = await walk.on(HomeScreen)
    await walk.until(
        lambda: screen.info is not None and sum(key[3] is not None for key in walk.find(OwnCodeList).keys) == 3
    )
    await walk.until(lambda: devices.asked)
    for _ in range(2):  # as many as are kept: how many came before depends on when JAX was asked
        devices.take(StillDevices().read())
    screen.query_one("#devices").show_devices()
    await walk.press("down")
    await still(walk.pilot)


@pytest.mark.parametrize("size", SIZES, ids=str)
def test_home_as_it_opens(
    snap_compare: Any, stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: tuple[int, int]
) -> None:
    """On the user's own programs."""
    monkeypatch.setattr(HomeScreen, "AUTO_FOCUS", "#own-code")
    for name in ("train.py", "model.py"):
        (tmp_path / name).write_text(f'"""What {name} is for."""\n\nimport jax\n\njax.devices()\n')
        os.utime(tmp_path / name, (len(name), len(name)))
    stage.app.folder = tmp_path

    async def opened(pilot: Pilot[Any]) -> None:
        walk = Walk(stage, pilot)
        await walk.until(lambda: len(walk.find(OwnCodeList).keys) > len(WAYS))
        await home(walk)

    assert snap_compare(stage.app, terminal_size=size, run_before=opened)


@pytest.mark.parametrize(
    ("keys", "size"),
    [("e", (80, 24)), ("?", (80, 24)), ("m", (80, 24)), ("1", (120, 40))],
    ids=["parameters", "help", "menu", "sessions"],
)
def test_pictures(snap_compare: Any, stage: Stage, keys: str, size: tuple[int, int]) -> None:
    async def go(pilot: Pilot[Any]) -> None:
        walk = Walk(stage, pilot)
        await home(walk)
        await walk.press(keys)
        if keys == "1":
            await walk.on(SessionsScreen)
            await walk.until(lambda: len(walk.find(SessionTable).keys) == 3)
            await walk.press("down")  # to the torn one
        await still(pilot)

    assert snap_compare(stage.app, terminal_size=size, run_before=go)
