"""Pictures of Home, Sessions, their dialogs and the help."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from jaxprof.tui.home.own_code import WAYS, OwnCodeList
from jaxprof.tui.home.screen import HomeScreen
from jaxprof.tui.kit.session_list import SessionList, SessionTable
from jaxprof.tui.sessions.screen import SessionsScreen
from tui.fakes import Stage, keep_session, still, until

pytestmark = pytest.mark.usefixtures("catalogue", "one_moment")
SIZES = [(80, 24), (120, 40)]


@pytest.fixture
def stage(shelf: Path, monkeypatch: pytest.MonkeyPatch) -> Stage:
    """An app over three kept sessions, whose folder has the same name in every picture."""
    keep_session(shelf, "selu-h200", ("selu", "numpy", "ok", 4.37e-3), ("selu", "jit", "ok", 0.63e-3), age_seconds=120)
    keep_session(shelf, "matmul-oom", ("matmul", "jit", "failed", None), complete=False, age_seconds=7200)
    keep_session(shelf, "first", ("hessian", "jit", "ok", 9.2e-6), age_seconds=200_000)
    monkeypatch.setenv("HOME", str(shelf))
    monkeypatch.setattr("jaxprof.tui.sessions.screen.safe", lambda text: str(text).replace(str(shelf), "~"))
    monkeypatch.setattr("jaxprof.tui.device_monitor.PERIOD_SECONDS", 60.0)
    return Stage()


async def home(pilot: Pilot[Any]) -> None:
    """Home once everything has come."""
    app = pilot.app

    def there() -> bool:
        screen = app.screen
        return (
            isinstance(screen, HomeScreen)
            and screen.info is not None
            and len(screen.query_one("#recent", SessionList).keys) == 3
            and app.devices.asked  # type: ignore[attr-defined]
            and bool(app.devices.get("cuda:0").history)  # type: ignore[attr-defined]
        )

    # readings of the accelerator come when it was followed, which is when JAX was asked
    from tui.fakes import StillDevices

    app.devices.take(StillDevices().read())  # type: ignore[attr-defined]
    await until(pilot, there)
    app.screen.query_one("#devices").show_devices()  # type: ignore[attr-defined]
    await pilot.press("down")
    await still(pilot)


async def sessions(pilot: Pilot[Any]) -> None:
    """Sessions, with the torn one in view."""
    await home(pilot)
    await pilot.press("1")
    await until(pilot, lambda: isinstance(pilot.app.screen, SessionsScreen))
    await until(pilot, lambda: len(pilot.app.screen.query_one(SessionTable).keys) == 3)
    await pilot.press("down")
    await still(pilot)


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
        await until(pilot, lambda: len(pilot.app.screen.query_one(OwnCodeList).keys) > len(WAYS))
        await home(pilot)

    assert snap_compare(stage.app, terminal_size=size, run_before=opened)


@pytest.mark.parametrize(
    ("place", "keys", "size"),
    [
        (home, ["space", "space"], (120, 40)),
        (home, ["e"], (80, 24)),
        (home, ["question_mark"], (80, 24)),
        (home, ["m"], (80, 24)),
        (sessions, [], (120, 40)),
        (sessions, ["m", "P"], (80, 24)),
    ],
    ids=["marks", "parameters", "help", "menu", "sessions", "prune"],
)
def test_pictures(
    snap_compare: Any,
    stage: Stage,
    place: Callable[[Pilot[Any]], Awaitable[None]],
    keys: list[str],
    size: tuple[int, int],
) -> None:
    async def go(pilot: Pilot[Any]) -> None:
        await place(pilot)
        await pilot.press(*keys)
        await still(pilot)

    assert snap_compare(stage.app, terminal_size=size, run_before=go)
