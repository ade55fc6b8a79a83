"""No thread of the app can end it."""

from __future__ import annotations

import re
import threading
from pathlib import Path

import pytest
from textual.app import App
from textual.screen import Screen

import jaxprof.tui
from jaxprof.errors import JaxprofError
from jaxprof.tui.kit.threads import in_thread
from jaxprof.tui.messages import Failed
from tui.fakes import until


class Listening(App[None]):
    """An app that keeps what it is told."""

    def __init__(self) -> None:
        super().__init__()
        self.told: list[JaxprofError] = []

    def on_failed(self, message: Failed) -> None:
        self.told.append(message.error)


def broken() -> None:
    raise ZeroDivisionError("division by a kernel")


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("JAXPROF_HOME", str(tmp_path / "state"))
    return tmp_path / "state"


@pytest.mark.defects
async def test_what_escapes_from_a_thread_is_shown_and_its_traceback_kept(state: Path) -> None:
    app = Listening()
    async with app.run_test() as pilot:
        in_thread(app, broken, "kernels")
        await until(pilot, lambda: app.told)
        in_thread(app, lambda: app.told.append(JaxprofError("the next one runs")), "kernels")
        await until(pilot, lambda: len(app.told) == 2)
        assert app.is_running
    assert app.return_code in (0, None)
    assert app.told[0].what == "the thread 'kernels' failed: ZeroDivisionError: division by a kernel"
    log = state / "errors.log"
    assert str(log) in app.told[0].hint
    assert "in broken\n" in log.read_text()
    assert log.stat().st_mode & 0o777 == 0o600


async def test_a_screen_that_has_left_the_app_may_look_for_it_in_vain() -> None:
    app, gone, looked = Listening(), threading.Event(), threading.Event()

    def look() -> None:
        gone.wait(30)
        looked.set()
        raise RuntimeError("the app is not found")

    async with app.run_test() as pilot:
        screen: Screen[None] = Screen()
        app.push_screen(screen)
        await until(pilot, lambda: app.screen is screen)
        in_thread(screen, look, "looks")
        await app.pop_screen()
        gone.set()
        await until(pilot, looked.is_set)
        in_thread(app, lambda: app.told.append(JaxprofError("the next one runs")), "kernels")
        await until(pilot, lambda: app.told)
    assert [error.what for error in app.told] == ["the next one runs"]


def test_every_thread_of_the_app_is_started_here() -> None:
    """One that is not could end the app; the one that ends it after a signal may."""
    folder = Path(jaxprof.tui.__file__).parent
    started = {
        str(path.relative_to(folder))
        for path in folder.rglob("*.py")
        if re.search(r"\.run_worker\(|threading\.Thread\(|@work\b", path.read_text(encoding="utf-8"))
    }
    assert started == {"kit/threads.py", "launch.py"}
