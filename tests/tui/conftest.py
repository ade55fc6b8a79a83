"""What the tests of the app have in common: a small catalogue, one time of day."""

import asyncio
import time
from functools import cache, partialmethod
from types import SimpleNamespace

import pytest
from textual import _callback
from textual._compositor import Compositor
from textual.app import App
from textual.css import stylesheet
from textual.css.model import RuleSet
from textual.pilot import Pilot
from textual.widget import Widget
from textual.widgets import Input

from jaxprof.tui import clock
from jaxprof.tui.kit import guard
from tui.fakes import CARDS, NOW, PATIENCE_SECONDS, Needs, drawn

REST_SECONDS = 0.002
_parse, _tokenize = stylesheet.parse, stylesheet.tokenize_values
_rules, _tokens = {}, {}


def _tokenize_once(values):
    key = tuple(values.items())
    if key not in _tokens:
        _tokens[key] = _tokenize(values)
    return _tokens[key]


def _parse_once(scope, css, read_from, variable_tokens, **options):
    key = scope, css, read_from, id(variable_tokens), *options.items()
    if key not in _rules:
        _rules[key] = list(_parse(scope, css, read_from, variable_tokens=variable_tokens, **options))
    return _rules[key]


@pytest.fixture(autouse=True)
def styles_parsed_once(monkeypatch):
    """Each test starts an app of its own: parsing the same styles and their variables anew is half of its time."""
    monkeypatch.setattr(stylesheet, "tokenize_values", _tokenize_once)
    monkeypatch.setattr(stylesheet, "parse", _parse_once)
    # Each style of each widget looks all rules up in a set: Textual's own hash is the same, and written in Python.
    monkeypatch.setattr(RuleSet, "__hash__", object.__hash__)


def _is_taken(node):
    """Whether it has dealt with all its messages, and waits for the next."""
    queue = node._message_queue
    return node._closing or node._closed or (queue.empty() and bool(queue.ready_event._waiters))


async def _until_taken(pilot, timeout=PATIENCE_SECONDS):
    """Waits until the app, the screen and its widgets have dealt with their messages.

    Pilot's own sends each of them one more and waits for all, before and after each key and in each pause.
    """
    app, rounds, end = pilot.app, 0, time.monotonic() + timeout
    while True:
        await asyncio.sleep(0 if rounds < 20 else REST_SECONDS)
        rounds += 1
        if not app.screen_stack or app._exception is not None:
            return False
        if all(map(_is_taken, (app, *app.screen.walk_children(with_self=True)))):
            return True
        assert time.monotonic() < end, "messages are never dealt with"


async def _until_idle(min_sleep=0.0, max_sleep=1.0):
    """Waits until no thread of the process has worked for three short rests.

    Pilot's own looks once in 20 ms, twice for each key: more than half of the time of a test that presses keys.
    """
    end, rested = time.monotonic() + max_sleep, 0
    while rested < 3 and time.monotonic() < end:
        worked = time.process_time()
        await asyncio.sleep(REST_SECONDS)
        rested = rested + 1 if time.process_time() - worked < REST_SECONDS / 5 else 0


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch):
    """What waits for the user's eye or hand is waited for no longer than a test needs."""
    monkeypatch.setattr(Pilot, "_wait_for_screen", _until_taken)
    for module in ("app", "pilot"):
        monkeypatch.setattr(f"textual.{module}.wait_for_idle", _until_idle)
    monkeypatch.setattr("textual.screen.UPDATE_PERIOD", REST_SECONDS)
    monkeypatch.setattr(App, "delay_update", partialmethod(App.delay_update, REST_SECONDS))  # at each change of mode
    monkeypatch.setattr("jaxprof.tui.home.screen.SETTLE_SECONDS", REST_SECONDS)
    monkeypatch.setattr("jaxprof.tui.shell.profiler.REFRESH_MOST_SECONDS", 0.0)


@pytest.fixture(autouse=True)
def drawn_when_looked_at(monkeypatch):
    """A frame is drawn when a test looks, and when a picture is taken.

    Without a terminal Textual draws every frame and throws it away: nearly half of the time of these tests. What was
    drawn stays until a widget or the layout has changed.
    """
    render = Compositor.render_update

    def render_update(compositor, full=False, **options):
        return render(compositor, full, **options) if full else compositor._dirty_regions.clear()

    def forgetting(method):
        def call(*args, **options):
            drawn.clear()
            return method(*args, **options)

        return call

    monkeypatch.setattr(Compositor, "render_update", forgetting(render_update))
    for kind, name in ((Compositor, "reflow"), (Compositor, "reflow_visible"), (Widget, "_set_dirty")):
        monkeypatch.setattr(kind, name, forgetting(getattr(kind, name)))
    yield
    drawn.clear()


if hasattr(asyncio, "eager_task_factory"):  # not before Python 3.12, neither here nor there

    @pytest.fixture(autouse=True)
    async def tasks_as_in_a_terminal():
        """Starts tasks as they start in a terminal.

        `App.run` sets the eager task factory: a widget that is mounted is composed and mounted at once, before the line
        after that which mounts it. `App.run_test`, which Pilot works through, leaves the loop as it is, so what leans
        on the order of mounting is not seen to fail.
        """
        asyncio.get_running_loop().set_task_factory(asyncio.eager_task_factory)


@pytest.fixture(autouse=True)
def parameters_counted_once(monkeypatch):
    """Textual asks for the signature of each function that it calls later, at each call."""
    monkeypatch.setattr(_callback, "_count_parameters", cache(_callback._count_parameters))


@pytest.fixture(autouse=True)
def no_defects(request, monkeypatch):
    """What escapes from our code is shown and logged, and the app goes on: here it fails the test, unless the test is
    marked `defects`."""
    found = []
    log = guard.log_defect

    def kept(text):
        found.append(text)
        return log(text)

    monkeypatch.setattr(guard, "log_defect", kept)
    yield
    if found and not request.node.get_closest_marker("defects"):
        pytest.fail("".join(found), pytrace=False)


@pytest.fixture(autouse=True)
def cursors_that_stay(monkeypatch):
    """A cursor that blinks is seen in a picture, or is not: on a loaded machine half a second passes."""
    made = Input.__init__

    def make(self, *args, **kwargs):
        made(self, *args, **kwargs)
        self.set_reactive(Input.cursor_blink, False)

    monkeypatch.setattr(Input, "__init__", make)


@pytest.fixture
def shelf(state_home):
    folder = state_home / "sessions"
    folder.mkdir()
    return folder


@pytest.fixture
def catalogue(small_catalogue, monkeypatch):
    """Three workloads, and Start begins with them: tests of what is done with workloads begin there."""
    monkeypatch.setattr("jaxprof.tui.home.start_list.WAYS", ())


@pytest.fixture
def small_catalogue(monkeypatch):
    monkeypatch.setattr("jaxprof.tui.home.screen.names", lambda: [info.name for info in CARDS])
    monkeypatch.setattr("jaxprof.workloads.infos", lambda: list(CARDS))
    monkeypatch.setattr("jaxprof.workloads.load_built_in", lambda name: Needs())


@pytest.fixture
def one_moment(monkeypatch):
    """The same time of day and host in every test."""
    monkeypatch.setattr("jaxprof.tui.home.preview.gethostname", lambda: "box")
    monkeypatch.setattr(clock, "unix_seconds", lambda: NOW)


@pytest.fixture
def app_clock(monkeypatch):
    """The monotonic clock of the app; it stands until a test moves it."""
    now = SimpleNamespace(seconds=1_000.0)
    monkeypatch.setattr(clock, "monotonic", lambda: now.seconds)
    return now
