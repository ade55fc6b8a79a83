"""Nothing of ours that Textual calls ends the app, and no thread: what escapes is shown once and logged."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest
from textual.actions import SkipAction
from textual.app import App, ComposeResult, SystemCommand
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.message_pump import MessagePump
from textual.reactive import reactive
from textual.screen import Screen
from textual.strip import Strip
from textual.widget import Widget
from textual.widgets import Label

import jaxprof.tui
from jaxprof.errors import JaxprofError, UsageError
from jaxprof.tui.kit import guard
from jaxprof.tui.kit.guard import Guarded, defect, on
from jaxprof.tui.kit.threads import in_thread
from jaxprof.tui.messages import Failed
from tui.fakes import MIDDLE, until, walking

ROOT = Path(jaxprof.tui.__file__).parent
NEEDS_A_WRAPPER = ("validate_", "compute_")
"""Methods of reactive attributes that Textual calls and `Guarded` does not know. Nothing of ours has one."""


def fail() -> None:
    raise ZeroDivisionError("division by a widget")


class Asked(Message):
    """A message that is handled by name."""


class Told(Message):
    """A message that is handled by a decorator."""


class Fragile(Guarded, Widget, can_focus=True):
    """A widget that fails in one place, and counts how often it was called there."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("a", "act", "Act")]
    level: reactive[int] = reactive(0, init=False)

    def __init__(self, place: str) -> None:
        super().__init__()
        self.place, self.calls = place, 0

    def at(self, place: str) -> None:
        if self.place == place:
            self.calls += 1
            fail()

    def compose(self) -> ComposeResult:
        yield Label("made before it failed")
        self.at("compose")

    def on_mount(self) -> None:
        self.at("on_mount")
        if self.place == "set_interval":
            self.set_interval(0.01, lambda: self.at("set_interval"))
        elif self.place == "set_timer":
            self.set_timer(0.01, lambda: self.at("set_timer"))
        elif self.place.startswith("call_"):
            getattr(self, self.place)(self.at, self.place)

    def render(self) -> str:
        self.at("render")
        return "drawn"

    def on_asked(self, message: Asked) -> None:
        self.at("on_asked")

    @on(Told)
    def _was_told(self, message: Told) -> None:
        self.at("on")

    async def action_act(self) -> None:
        self.at("action_act")

    def watch_level(self) -> None:
        self.at("watch_level")


class FragileLines(Fragile):
    """As that, drawn line by line."""

    def render_line(self, y: int) -> Strip:
        self.at("render_line")
        return Strip.blank(self.size.width)


class Listening(Guarded, App[None]):
    """An app of one such widget, which keeps what it is told."""

    def __init__(self, place: str) -> None:
        super().__init__()
        self.fragile = (FragileLines if place == "render_line" else Fragile)(place)
        self.told: list[JaxprofError] = []

    def compose(self) -> ComposeResult:
        yield self.fragile

    def on_failed(self, message: Failed) -> None:
        self.told.append(message.error)

    def get_system_commands(self, screen: Screen[Any]) -> Iterator[SystemCommand]:
        fail()
        yield SystemCommand("Never", "", fail)


@pytest.mark.defects
@pytest.mark.parametrize(
    "place",
    [
        *("compose", "on_mount", "render", "render_line", "on_asked", "on", "action_act", "watch_level"),
        *("set_interval", "set_timer", "call_later", "call_next", "call_after_refresh"),
    ],
)
async def test_what_escapes_is_told_and_the_app_goes_on(place: str, state_home: Path) -> None:
    app = Listening(place)
    async with app.run_test() as pilot:
        app.fragile.focus()
        app.fragile.post_message(Asked())
        app.fragile.post_message(Told())
        await pilot.press("m", "a")
        app.fragile.level = 1
        await until(pilot, lambda: app.told)
        repeats = place in ("set_interval", "render", "render_line")
        calls = app.fragile.calls
        await until(pilot, lambda: app.fragile.refresh() and app.fragile.calls > calls + 2 * repeats - 1)
        (error,) = app.told
        assert app.is_running
        assert app.query(Label), "what was made stays"
    assert app.return_code in (0, None)
    assert error.what.endswith(": ZeroDivisionError: division by a widget")
    assert error.what.startswith("Fragile")
    assert place.startswith(("set_", "call_", "on")) or f".{place} failed" in error.what
    log = (state_home / "errors.log").read_text()
    assert log.count("in fail\n") == 1, "what fails at every redraw is logged once in a while"
    assert str(state_home / "errors.log") in error.hint


async def test_an_expected_error_is_told_as_it_is_and_not_logged(state_home: Path) -> None:
    error = UsageError("no such run", "Choose another one.")

    class Refusing(Fragile):
        def on_asked(self, message: Asked) -> None:
            raise error

    app = Listening("")
    app.fragile = Refusing("")
    async with app.run_test() as pilot:
        app.fragile.post_message(Asked())
        await until(pilot, lambda: app.told)
    assert app.told == [error]
    assert not (state_home / "errors.log").exists()


class Leaving(Fragile):
    """It looks for another widget, which is there no longer, when it is asked and when it leaves."""

    def on_asked(self, message: Asked) -> None:
        self.query_one("#gone")

    def on_unmount(self) -> None:
        self.query_one("#gone")


@pytest.mark.defects
@pytest.mark.parametrize("asked", [True, False])
async def test_a_widget_that_is_missed_is_a_defect_only_while_the_app_runs(asked: bool, state_home: Path) -> None:
    app = Listening("")
    app.fragile = Leaving("")
    async with app.run_test() as pilot:
        if asked:
            app.fragile.post_message(Asked())
            await until(pilot, lambda: app.told)
    log = state_home / "errors.log"
    assert (log.read_text() if log.exists() else "").count("NoMatches: ") == asked


async def test_an_action_may_still_leave_its_key_to_the_next() -> None:
    class Skipping(Fragile):
        async def action_act(self) -> None:
            raise SkipAction

    class Taking(Listening):
        BINDINGS: ClassVar[list[BindingType]] = [Binding("a", "act", "Act")]
        taken = 0

        def action_act(self) -> None:
            self.taken += 1

    app = Taking("")
    app.fragile = Skipping("")
    async with app.run_test() as pilot:
        app.fragile.focus()
        await pilot.press("m", "a")
        assert (app.taken, app.told) == (1, [])


@pytest.mark.defects
def test_the_log_does_not_grow_for_ever_and_needs_no_place(state_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard, "LARGEST_LOG_BYTES", 100)
    sizes = []
    for _ in range(3):
        defect(ValueError("x" * 200), "it failed")
        sizes.append((state_home / "errors.log").stat().st_size)
    assert sizes[0] == sizes[1] == sizes[2]
    monkeypatch.setenv("JAXPROF_HOME", str(state_home / "errors.log"))
    assert "could not be written" in defect(ValueError("x"), "it failed").hint


@pytest.mark.defects
@pytest.mark.usefixtures("catalogue", "shelf")
async def test_the_app_shows_it_and_every_screen_still_opens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jaxprof.tui.home.screen.HomeScreen.action_own", guard.guarded(lambda self: fail()))
    async with walking(MIDDLE) as walk:
        await walk.shows("selu")
        await walk.press("+", "ZeroDivisionError")
        await walk.press("6 5 4 3 2")
        await walk.mode("run")
    assert walk.app.return_code in (0, None)


def modules() -> dict[str, str]:
    """The source of each module of the app."""
    files = {path: path.relative_to(ROOT.parent.parent).with_suffix("").parts for path in sorted(ROOT.rglob("*.py"))}
    return {".".join(parts).removesuffix(".__init__"): path.read_text() for path, parts in files.items()}


def nodes() -> list[type[MessagePump]]:
    """Every class of the app that Textual runs."""
    loaded = [importlib.import_module(name) for name in modules()]
    classes = {cls for module in loaded for _, cls in inspect.getmembers(module, inspect.isclass)}
    ours = [cls for cls in classes if issubclass(cls, MessagePump) and cls.__module__.startswith("jaxprof.tui")]
    return sorted(ours, key=lambda cls: cls.__qualname__)


def test_every_widget_screen_and_app_is_guarded() -> None:
    assert len(nodes()) > 60
    assert [cls.__qualname__ for cls in nodes() if not issubclass(cls, Guarded)] == []
    assert [
        f"{cls.__qualname__}.{name}" for cls in nodes() for name in vars(cls) if name.startswith(NEEDS_A_WRAPPER)
    ] == []


def test_textuals_own_decorators_are_used_nowhere_else() -> None:
    found = {
        module
        for module, source in modules().items()
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.ImportFrom)
        and node.module == "textual"
        and {"on", "work"} & {n.name for n in node.names}
    }
    assert found == set()


# -- threads -----------------------------------------------------------------------------------------------------------


def broken() -> None:
    raise ZeroDivisionError("division by a kernel")


@pytest.mark.defects
async def test_what_escapes_from_a_thread_is_shown_and_its_traceback_kept(state_home: Path) -> None:
    app = Listening("")
    async with app.run_test() as pilot:
        in_thread(app, broken, "kernels")
        await until(pilot, lambda: app.told)
        in_thread(app, lambda: app.told.append(JaxprofError("the next one runs")), "kernels")
        await until(pilot, lambda: len(app.told) == 2)
        assert app.is_running
    assert app.return_code in (0, None)
    assert app.told[0].what == "the thread 'kernels' failed: ZeroDivisionError: division by a kernel"
    log = state_home / "errors.log"
    assert str(log) in app.told[0].hint
    assert "in broken\n" in log.read_text()
    assert log.stat().st_mode & 0o777 == 0o600


async def test_a_screen_that_has_left_the_app_may_look_for_it_in_vain() -> None:
    app, gone, looked = Listening(""), threading.Event(), threading.Event()

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
    started = {
        str(path.relative_to(ROOT))
        for path in ROOT.rglob("*.py")
        if re.search(r"\.run_worker\(|threading\.Thread\(|@work\b", path.read_text(encoding="utf-8"))
    }
    assert started == {"kit/threads.py", "launch.py"}
