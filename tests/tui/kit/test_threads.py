"""No thread of the app can end it."""

from __future__ import annotations

import re
import threading
from pathlib import Path

import pytest
from textual.app import App

import jaxprof.tui
from jaxprof.errors import JaxprofError, UsageError
from jaxprof.session.log import Library
from jaxprof.tui.kit.threads import in_daemon, in_thread
from jaxprof.tui.messages import Failed
from tui.fakes import Stage, screen_text, until


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


async def test_an_expected_error_is_shown_as_it_is_and_not_logged(state: Path) -> None:
    app, error = Listening(), UsageError("no such file", "Look elsewhere.")

    def refuses() -> None:
        raise error

    async with app.run_test() as pilot:
        in_thread(app, refuses, "file")
        await until(pilot, lambda: app.told)
    assert app.told == [error]
    assert not state.exists()


@pytest.mark.defects
def test_a_daemon_tells_what_started_it(state: Path) -> None:
    told: list[JaxprofError] = []
    there = threading.Event()
    in_daemon(broken, "origins", lambda error: (told.append(error), there.set()))
    assert there.wait(20)
    assert "ZeroDivisionError" in told[0].what
    assert (state / "errors.log").exists()


@pytest.mark.defects
@pytest.mark.usefixtures("catalogue", "shelf")
async def test_the_app_goes_on_if_its_list_of_sessions_breaks(monkeypatch: pytest.MonkeyPatch) -> None:
    def entries(self: Library, limit: int | None = None) -> None:
        raise RecursionError("too deep")

    monkeypatch.setattr(Library, "entries", entries)
    stage = Stage()
    async with stage.app.run_test(size=(100, 32), notifications=True) as pilot:
        await until(pilot, lambda: "RecursionError" in screen_text(stage.app))
        await pilot.press("5")
        await until(pilot, lambda: stage.app.current_mode == "sessions")
    assert stage.app.return_code in (0, None)


def test_every_thread_of_the_app_is_started_here() -> None:
    """One that is not could end the app; the one that ends it after a signal may."""
    folder = Path(jaxprof.tui.__file__).parent
    started = {
        str(path.relative_to(folder))
        for path in folder.rglob("*.py")
        if re.search(r"\.run_worker\(|threading\.Thread\(|@work\b", path.read_text(encoding="utf-8"))
    }
    assert started == {"kit/threads.py", "launch.py"}
