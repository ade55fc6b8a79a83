"""Nothing of ours that Textual calls ends the app, and no thread: what escapes is shown once and logged."""

import ast
import importlib
import inspect
import re
import threading
from pathlib import Path
from typing import ClassVar

import pytest
from textual.actions import SkipAction
from textual.app import App, SystemCommand
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.message_pump import MessagePump
from textual.reactive import reactive
from textual.screen import Screen
from textual.widget import Widget
from textual.widgets import Label

import jaxprof.tui
from jaxprof.base.errors import JaxprofError, UsageError
from jaxprof.tui.kit import guard
from jaxprof.tui.kit.guard import Guarded, defect, in_thread, on
from tui.fakes import screen_text, until

ROOT = Path(jaxprof.tui.__file__).parent
NEEDS_A_WRAPPER = ("validate_", "compute_")
"""Methods of reactive attributes that Textual calls and `Guarded` does not know. Nothing of ours has one."""


def fail():
    raise ZeroDivisionError("division by a widget")


class Asked(Message):
    """A message that is handled by name."""


class Told(Message):
    """A message that is handled by a decorator."""


class Fragile(Guarded, Widget, can_focus=True):
    """A widget that is called in each way, and counts how often it failed."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("a", "act", "Act")]
    level: reactive[int] = reactive(0, init=False)
    calls, place = 0, ""

    def broken(self):
        self.calls += 1
        fail()

    def compose(self):
        yield Label("made before it failed")
        if self.place == "compose":
            self.broken()

    def on_mount(self):
        if self.place.startswith("set_"):
            getattr(self, self.place)(0.01, self.broken)
        elif self.place.startswith("call_"):
            getattr(self, self.place)(self.broken)

    async def action_act(self):
        if self.place == "action_act":
            self.broken()


def failing_in(place):
    def method(self, *_):
        self.broken()

    method.__name__ = place
    given = {place: on(Told)(method) if place == "on" else method} if place in BY_NAME else {}
    return type(f"_{place}", (Fragile,), {"place": place, **given})()


class Listening(Guarded, App[None]):
    """An app of such widgets, which keeps what it is told."""

    CSS = "Fragile { height: 2; }"

    def __init__(self, *fragile):
        super().__init__()
        self.fragile = fragile
        self.told = []

    def compose(self):
        yield from self.fragile

    def tell(self, error, title=""):
        self.told.append(error)

    def get_system_commands(self, screen):
        fail()
        yield SystemCommand("Never", "", fail)


BY_NAME = ("on_mount", "render", "render_line", "on_asked", "watch_level", "on")
PLACES = (
    *BY_NAME,
    "compose",
    "action_act",
    "set_timer",
    "set_interval",
    "call_later",
    "call_next",
    "call_after_refresh",
)


@pytest.mark.defects
async def test_what_escapes_is_told_once_and_the_app_goes_on(state_home):
    fragile = {place: failing_in(place) for place in PLACES}
    app = Listening(*fragile.values())
    async with app.run_test(size=(80, 40)) as pilot:
        for one in fragile.values():
            one.post_message(Asked())
            one.post_message(Told())
            one.level = 1
        fragile["action_act"].focus()
        await pilot.press("m", "a")

        def told():
            return screen_text(app) and {re.split(r"[.:]", error.what)[0][1:] for error in app.told}

        await until(pilot, lambda: told() == set(PLACES))
        for one in (fragile[place] for place in ("render", "render_line", "set_interval")):
            calls = one.calls
            await until(pilot, lambda one=one, calls=calls: one.refresh() and told() and one.calls > calls + 1)
        assert app.is_running
        assert len(app.query(Label)) == len(PLACES), "what was made stays"
    assert app.return_code in (0, None)
    assert len(app.told) == len(PLACES)
    log = state_home / "errors.log"
    for error in app.told:
        assert error.what.endswith(": ZeroDivisionError: division by a widget")
        assert str(log) in error.hint
    assert log.read_text().count("in fail\n") == len(PLACES), "what fails at every redraw is logged once in a while"


class Refusing(Fragile):
    """What it is asked for cannot be done."""

    def on_asked(self, message):
        raise UsageError("no such run", "Choose another one.")


class Leaving(Fragile):
    """It looks for another widget, which is there no longer, when it is asked and when it leaves."""

    def on_asked(self, message):
        self.query_one("#gone")

    def on_unmount(self):
        self.query_one("#gone")


@pytest.mark.defects
@pytest.mark.parametrize(("kind", "logged"), [(Refusing, 0), (Leaving, 1)])
async def test_refusal_is_no_defect(state_home, kind, logged):
    app = Listening(kind())
    async with app.run_test() as pilot:
        app.fragile[0].post_message(Asked())
        await until(pilot, lambda: app.told)
    assert len(app.told) == 1
    log = state_home / "errors.log"
    assert (log.read_text().count("NoMatches: ") if log.exists() else 0) == logged


async def test_an_action_may_still_leave_its_key_to_the_next():
    class Skipping(Fragile):
        async def action_act(self):
            raise SkipAction

    class Taking(Listening):
        BINDINGS: ClassVar[list[BindingType]] = [Binding("a", "act", "Act")]
        taken = 0

        def action_act(self):
            self.taken += 1

    app = Taking(Skipping())
    async with app.run_test() as pilot:
        app.fragile[0].focus()
        await pilot.press("m", "a")
        assert (app.taken, app.told) == (1, [])


@pytest.mark.defects
def test_the_log_does_not_grow_for_ever_and_needs_no_place(state_home, monkeypatch):
    monkeypatch.setattr(guard, "LARGEST_LOG_BYTES", 100)
    sizes = []
    for _ in range(3):
        defect(ValueError("x" * 200), "it failed")
        sizes.append((state_home / "errors.log").stat().st_size)
    assert sizes[0] == sizes[1] == sizes[2]
    monkeypatch.setenv("JAXPROF_HOME", str(state_home / "errors.log"))
    assert "could not be written" in defect(ValueError("x"), "it failed").hint


def modules():
    """The source of each module of the app."""
    files = {path: path.relative_to(ROOT.parent.parent).with_suffix("").parts for path in sorted(ROOT.rglob("*.py"))}
    return {".".join(parts).removesuffix(".__init__"): path.read_text() for path, parts in files.items()}


def nodes():
    """Every class of the app that Textual runs."""
    loaded = [importlib.import_module(name) for name in modules()]
    classes = {cls for module in loaded for _, cls in inspect.getmembers(module, inspect.isclass)}
    ours = [cls for cls in classes if issubclass(cls, MessagePump) and cls.__module__.startswith("jaxprof.tui")]
    return sorted(ours, key=lambda cls: cls.__qualname__)


def test_every_widget_screen_and_app_is_guarded():
    assert len(nodes()) > 50
    assert [cls.__qualname__ for cls in nodes() if not issubclass(cls, Guarded)] == []
    assert [
        f"{cls.__qualname__}.{name}" for cls in nodes() for name in vars(cls) if name.startswith(NEEDS_A_WRAPPER)
    ] == []


def test_textuals_own_decorators_and_threads_are_used_here_alone():
    """A thread that is not of `in_thread` could end the app; the one that ends it after a signal may."""
    imported, started = set(), set()
    for module, source in modules().items():
        if re.search(r"\.run_worker\(|threading\.Thread\(|@work\b", source):
            started.add(module)
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.ImportFrom) and node.module == "textual":
                imported |= {"on", "work"} & {name.name for name in node.names}
    assert imported == set()
    assert started == {"jaxprof.tui.kit.guard", "jaxprof.tui.shell.launch"}


# -- threads -----------------------------------------------------------------------------------------------------------


@pytest.mark.defects
async def test_exception_of_a_thread_is_shown_and_kept(state_home):
    app = Listening()
    async with app.run_test() as pilot:
        in_thread(app, fail, "kernels")
        await until(pilot, lambda: app.told)
        in_thread(app, lambda: app.told.append(JaxprofError("the next one runs")), "kernels")
        await until(pilot, lambda: len(app.told) == 2)
        assert app.is_running
    assert app.return_code in (0, None)
    assert app.told[0].what == "the thread 'kernels' failed: ZeroDivisionError: division by a widget"
    log = state_home / "errors.log"
    assert str(log) in app.told[0].hint
    assert "in fail\n" in log.read_text()
    assert log.stat().st_mode & 0o777 == 0o600


async def test_a_screen_that_has_left_the_app_may_look_for_it_in_vain():
    app, gone, looked = Listening(), threading.Event(), threading.Event()

    def look():
        gone.wait(30)
        looked.set()
        raise RuntimeError("the app is not found")

    async with app.run_test() as pilot:
        screen = Screen()
        app.push_screen(screen)
        await until(pilot, lambda: app.screen is screen)
        in_thread(screen, look, "looks")
        await app.pop_screen()
        gone.set()
        await until(pilot, looked.is_set)
        in_thread(app, lambda: app.told.append(JaxprofError("the next one runs")), "kernels")
        await until(pilot, lambda: app.told)
    assert [error.what for error in app.told] == ["the next one runs"]


async def test_answer_of_an_outdated_thread_is_dropped():
    app, go, begun, ended = Listening(), threading.Event(), [], []

    def slow(raises):
        begun.append(raises)
        go.wait(30)
        ended.append(raises)
        if raises:
            raise JaxprofError("of the one before")
        return "the one before"

    found = []
    async with app.run_test() as pilot:
        for raises in (False, True):
            in_thread(app, lambda raises=raises: slow(raises), "explanation", then=found.append)
            await until(pilot, lambda raises=raises: raises in begun)
        in_thread(app, lambda: "the last", "explanation", then=found.append)
        await until(pilot, lambda: found)
        go.set()
        await until(pilot, lambda: len(ended) == 2)
        in_thread(app, lambda: "another", "another", then=found.append)
        await until(pilot, lambda: len(found) > 1)
    assert (found, app.told) == (["the last", "another"], [])
