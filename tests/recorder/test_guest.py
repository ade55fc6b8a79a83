"""What a program's tools and signal handlers notice of the recorder: nothing. The moment when jax is imported, with a
small package in jax's place."""

import importlib
import signal
import subprocess
import sys
import threading
import traceback
from pathlib import Path

import pytest

from jaxprof.recorder.compiles import monitoring
from jaxprof.recorder.guest import start_thread, unseen
from jaxprof.recorder.jax_import import JaxFinder
from jaxprof.recorder.places import OWN, file_kind
from jaxprof.recorder.samples.monitored_loop import MonitoredLines


class OnTime(Exception):
    """What a handler of the program raises."""


class Watcher:
    """Begins a stage in some way."""

    def __init__(self, began):
        self.began, self.problems = began, list[Exception]()

    def stage_began(self, stage, function, frame):
        self.began()

    def stage_ended(self, stage, function): ...

    def cache_event(self, what): ...

    def cache_saved(self, seconds): ...

    def problem(self, error):
        self.problems.append(error)


def announced(watcher, monkeypatch):
    monkeypatch.setattr(monitoring, "_watchers", [watcher])
    monitoring._on_scalar("/jax/core/compile/backend_compile_duration", 0.0, fun_name="f")


def test_what_a_handler_of_the_program_raises_reaches_it_without_a_frame_of_ours(monkeypatch):
    """JAX's filter of tracebacks fails at a frame without a line, as Python 3.11 has them in loops."""

    def handler(number, frame):
        raise OnTime(number)

    watcher = Watcher(lambda: signal.raise_signal(signal.SIGUSR1))
    former = signal.signal(signal.SIGUSR1, handler)
    try:
        with pytest.raises(OnTime) as raised:
            announced(watcher, monkeypatch)
    finally:
        signal.signal(signal.SIGUSR1, former)
    assert not watcher.problems
    codes = [frame.f_code for frame, _ in traceback.walk_tb(raised.value.__traceback__)]
    assert not [code.co_name for code in codes if file_kind(code.co_filename) == OWN]
    assert codes[-1].co_name == "handler"


def test_what_our_own_code_raises_does_not(monkeypatch):
    watcher = Watcher(lambda: {}["no"])
    announced(watcher, monkeypatch)
    assert [type(error) for error in watcher.problems] == [KeyError]


def test_a_profiler_is_told_of_one_listener_and_of_all_after_it():
    calls = []

    def inside():
        raise OnTime

    def after(): ...

    hidden = unseen(inside)
    sys.setprofile(lambda frame, event, argument: calls.append(frame.f_code.co_name) if event == "call" else None)
    try:
        hidden()
    except OnTime:
        after()
    finally:
        sys.setprofile(None)
    assert calls == ["listener", "after"]


def test_a_thread_of_ours_takes_no_signal_and_no_tool_is_told_of_it():
    over = threading.Event()
    blocked = []
    seen = []

    def run():
        blocked.append(set(signal.pthread_sigmask(signal.SIG_BLOCK, ())))
        over.set()

    tool = getattr(sys, "monitoring", None)
    if tool is not None:
        tool.use_tool_id(tool.PROFILER_ID, "profiler")
        tool.register_callback(tool.PROFILER_ID, tool.events.PY_START, lambda code, _: seen.append(code.co_name))
        tool.set_events(tool.PROFILER_ID, tool.events.PY_START)
    try:
        start_thread(run)
        assert over.wait(10)
    finally:
        if tool is not None:
            tool.set_events(tool.PROFILER_ID, 0)
            tool.free_tool_id(tool.PROFILER_ID)
    assert blocked[0] >= {signal.SIGINT, signal.SIGTERM, signal.SIGUSR1, signal.SIGALRM}
    assert signal.SIGUSR1 not in signal.pthread_sigmask(signal.SIG_BLOCK, ())
    assert "run" not in seen


@pytest.mark.skipif(sys.version_info < (3, 12), reason="sys.monitoring came with Python 3.12")
def test_a_program_gets_the_tool_number_that_it_asks_for():
    tool = sys.monitoring
    former = tool.use_tool_id, tool.get_tool
    lines = MonitoredLines(threading.get_ident())
    assert lines._take_tool()
    ours = lines._tool
    assert ours is not None
    assert former[1](ours) == "jaxprof"
    assert tool.get_tool(ours) is None
    tool.use_tool_id(ours, "mine")
    assert (tool.use_tool_id, tool.get_tool) == former
    assert tool.get_tool(ours) == "mine"
    assert not lines._take_tool()
    lines.close()
    assert tool.get_tool(ours) == "mine"
    tool.free_tool_id(ours)


SOURCE = Path(__file__).parents[2] / "src"


@pytest.fixture
def place(tmp_path, monkeypatch):
    """Where a `jax` can be put; the real one cannot be found meanwhile."""
    kept = {name: module for name, module in sys.modules.items() if name.partition(".")[0] == "jax"}
    for name in kept:
        del sys.modules[name]
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    monkeypatch.setattr(sys, "meta_path", [finder for finder in sys.meta_path if not isinstance(finder, JaxFinder)])
    importlib.invalidate_caches()
    yield tmp_path
    for name in [name for name in sys.modules if name.partition(".")[0] == "jax"]:
        del sys.modules[name]
    sys.modules.update(kept)


def write_jax(place, text="import jax.inner\nvalue = 1\n"):
    (place / "jax").mkdir()
    (place / "jax" / "__init__.py").write_text(text)
    (place / "jax" / "inner.py").write_text("")
    importlib.invalidate_caches()


def test_it_is_told_once_at_the_end_of_the_import(place):
    write_jax(place)
    told = []
    finder = JaxFinder(lambda seconds: told.append((seconds, sys.modules["jax"].value)))
    finder.install()
    assert sys.meta_path[0] is finder
    import jax

    importlib.reload(jax)
    ((seconds, value),) = told
    assert seconds > 0
    assert value == 1
    assert finder not in sys.meta_path
    assert vars(jax.__spec__.loader).keys() == {"name", "path"}, "the loader is as it was"
    assert jax.__loader__ is jax.__spec__.loader


def test_an_import_that_fails_may_be_tried_again(place):
    told = []
    JaxFinder(told.append).install()
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("jax")
    write_jax(place, "raise RuntimeError('no jaxlib')")
    with pytest.raises(RuntimeError):
        importlib.import_module("jax")
    assert told == []
    (place / "jax" / "__init__.py").write_text("value = 'another length'")
    importlib.invalidate_caches()
    importlib.import_module("jax")
    assert len(told) == 1


@pytest.mark.process
def test_a_failing_import_shows_no_frame_of_ours(tmp_path):
    (tmp_path / "jax").mkdir()
    (tmp_path / "jax" / "__init__.py").write_text("import warnings\nwarnings.warn('old', stacklevel=2)\n1 / 0\n")
    program = tmp_path / "x.py"
    before = "import sys\nfrom jaxprof.recorder.jax_import import JaxFinder\n"
    said = []
    for middle in ("JaxFinder(print).install()", ""):
        program.write_text(f"{before}{middle}\nimport jax\n")
        done = subprocess.run(
            [sys.executable, str(program)], capture_output=True, text=True, env={"PYTHONPATH": str(SOURCE)}
        )
        assert "ZeroDivisionError" in done.stderr
        said.append(done.stderr)
    assert said[0] == said[1]
