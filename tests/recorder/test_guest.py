"""What a program's tools and signal handlers notice of the recorder: nothing. The moment when jax is imported, with a
small package in jax's place. The pipe, whose reader may be slow, or gone."""

import cProfile
import fcntl
import gc
import importlib
import json
import os
import select
import signal
import subprocess
import sys
import threading
import traceback
from typing import ClassVar
from unittest.mock import Mock

import pytest

from jaxprof.events import Compiled, SourceLocation
from jaxprof.recorder import launch
from jaxprof.recorder.compiles import monitoring
from jaxprof.recorder.frame_owner import OWN, error_location, file_kind
from jaxprof.recorder.guest import CollectorElsewhere, start_thread, unseen
from jaxprof.recorder.jax_import import JaxFinder
from jaxprof.recorder.launch import PATIENCE_SECONDS, ProgramPipe, hidden
from jaxprof.recorder.recorder import failure
from jaxprof.recorder.samples.monitored_loop import MonitoredLines
from recorder.running import SOURCE
from waiting import open_descriptors


class OnTime(Exception):
    """What a handler of the program raises."""


class Watcher:
    """Begins a stage in some way."""

    def __init__(self, began):
        self.began, self.problems = began, list[Exception]()

    def stage_began(self, stage, function, frame):
        self.began()

    def problem(self, error):
        self.problems.append(error)


def announced(watcher, monkeypatch):
    monkeypatch.setattr(monitoring, "_watchers", [watcher])
    monitoring._on_scalar("/jax/core/compile/backend_compile_duration", 0.0, fun_name="f")


def test_exception_of_a_signal_handler_has_no_frame_of_ours(monkeypatch):
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


def test_a_profiler_sees_no_listener_and_all_after_it():
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
    assert calls == ["after"]


def test_cprofile_has_no_row_for_a_listener():
    seen = []
    hidden = unseen(lambda *arguments, **more: seen.append((arguments, more)))

    def announce():
        hidden("event", 0.5, stage="compile")
        hidden("event", 0.25)

    profile = cProfile.Profile()
    profile.runcall(announce)
    assert seen == [(("event", 0.5), {"stage": "compile"}), (("event", 0.25), {})]
    rows = [row.code.co_name for row in profile.getstats() if not isinstance(row.code, str)]
    assert rows == ["announce"]


def test_own_thread_takes_no_signal_and_no_trace_function():
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


@pytest.mark.parametrize(
    ("message", "said"),
    [
        ("calling back: Traceback (most recent call last):\n  File x\nKeyError: 3\n", "calling back: KeyError: 3"),
        ("no memory\nTraceback (most recent call last):\nelsewhere", "no memory"),
        ('The stack:\n  File "x", line 1\n    y\n\nz.Wrong: no root\n\n----\nSee the manual.', "z.Wrong: no root"),
        ('The stack:\n  File "x", line 1\n    y', "The stack:"),
    ],
    ids=["of a callback", "of something else", "below a stack", "only a stack"],
)
def test_an_error_of_a_callback_is_named(message, said):
    assert failure(ValueError(message), 1.0)["error"] == f"ValueError: {said}"


@pytest.fixture
def thresholds():
    before = gc.get_threshold()
    gc.set_threshold(50, 10, 10)
    yield (50, 10, 10)
    gc.set_threshold(*before)


class Finalized:
    """An object in a cycle, which only the collector frees."""

    threads: ClassVar[list[int]] = []

    def __init__(self):
        self.itself = self

    def __del__(self):
        self.threads.append(threading.get_ident())


def test_the_collector_runs_in_no_thread_of_ours(thresholds):
    """A connection of SQLite that a finalizer closes there raises a ProgrammingError."""
    go, made, end = threading.Lock(), threading.Lock(), threading.Lock()
    for lock in (go, made, end):
        lock.acquire()
    Finalized.threads.clear()

    def run():
        collector = CollectorElsewhere()
        collector.asleep(go.acquire)
        for _ in range(200):
            [Finalized()]
        seen.append(list(Finalized.threads))
        made.release()
        collector.asleep(end.acquire)
        collector.close()

    seen = []
    ours = threading.Thread(target=run, daemon=True)
    ours.start()
    go.release()
    made.acquire()
    assert gc.get_threshold() == thresholds, "the program is shown its own"
    assert seen == [[]]
    assert len([[number] for number in range(200)]) == 200
    end.release()
    ours.join()
    assert gc.get_threshold() == thresholds
    assert set(Finalized.threads) == {threading.get_ident()}


@pytest.mark.parametrize("whose", [(0, 10, 10), (70_000, 5, 5)], ids=["off", "seldom"])
def test_what_the_program_sets_meanwhile_remains(thresholds, whose):
    collector = CollectorElsewhere()
    collector.asleep(int)
    gc.set_threshold(*whose)
    collector.close()
    assert gc.get_threshold() == whose


def test_a_forked_child_has_the_collector_of_the_program(thresholds, monkeypatch):
    forked = Mock()
    monkeypatch.setattr(os, "register_at_fork", forked)
    collector = CollectorElsewhere()
    own = gc.get_threshold.__wrapped__
    collector.asleep(int)
    assert own() != thresholds
    forked.call_args.kwargs["after_in_child"]()
    assert own() == thresholds
    collector.close()


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


@pytest.mark.parametrize("on", [True, False])
def test_our_imports_leave_the_collector_as_it_was(on, monkeypatch):
    launched, seen = launch.Launched(None, None, "{}"), []
    monkeypatch.setattr(launched, "_begin_recording", lambda seconds: seen.append(gc.isenabled()) or 1 / 0)
    (gc.enable if on else gc.disable)()
    try:
        with pytest.raises(ZeroDivisionError):
            launched._jax_imported(0.1)
        seen.append(gc.isenabled())
    finally:
        gc.enable()
    assert seen == [False, on]


def test_a_forked_child_says_nothing_of_children():
    launched = launch.Launched(Mock(), Mock(), "{}")
    launched._report_children()
    assert launched._pipe.send.call_count == 1
    launched._owner += 1
    launched._report_children()
    assert launched._pipe.send.call_count == 1


def test_the_recording_ends_before_jax_cleans_up(monkeypatch):
    """jax registers its clean-up when it is imported and when its backends start; the last that is registered runs
    first."""
    handlers = []
    monkeypatch.setattr(launch, "atexit", Mock(register=handlers.append, unregister=handlers.remove))
    monkeypatch.setattr("jaxprof.recorder.recorder.Recorder", Mock())
    launched = launch.Launched(Mock(), Mock(), '{"options": {}, "began_seconds": 0.0}')
    handlers += [launched._end, "jax, imported"]
    launched._jax_imported(0.1)
    assert handlers == ["jax, imported", launched._end]
    handlers.append("its backends")
    launched._send(Compiled(function="step"))
    assert handlers == ["jax, imported", "its backends", launched._end]
    handlers.append("the program's")
    launched._send(Compiled(function="step"))
    assert handlers[-1] == "the program's"


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


class Reader:
    """The client's end of a pipe."""

    def __init__(self):
        self.end, writing = os.pipe()
        reading = os.dup(self.end)
        os.set_blocking(self.end, False)
        before = open_descriptors()
        self.pipe = ProgramPipe(writing, reading)
        self.ours = open_descriptors() - before - {writing, reading}

    def lines(self):
        data = b""
        while True:
            try:
                came = os.read(self.end, 1 << 20)
            except BlockingIOError:
                return data.split(b"\n")
            data += came

    def close(self):
        for descriptor in (self.end, *self.ours):
            try:
                os.close(descriptor)
            except OSError:
                continue


@pytest.fixture
def reader():
    made = Reader()
    yield made
    made.close()


def fill(pipe):
    """Sends until the pipe takes no more; how many were sent."""
    for number in range(100_000):
        pipe.send(b"%06d" % number * 100)
        if pipe.dropped:
            return number + 1
    raise AssertionError("the pipe takes everything")


def test_lines_of_several_threads_do_not_mix(reader):
    words = [bytes([65 + number]) * 300 for number in range(8)]

    def work(word):
        for _ in range(20):
            reader.pipe.send(word)

    threads = [threading.Thread(target=work, args=(word,)) for word in words]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(reader.lines()) == sorted([b"", *words * 20])
    assert reader.pipe.dropped == 0


def test_the_descriptors_are_high_and_closed_on_exec(reader):
    assert len(reader.ours) == 2
    assert min(reader.ours) > 500
    assert not any(os.get_inheritable(number) for number in reader.ours)


def test_a_limit_that_leaves_no_high_numbers_is_met(monkeypatch):
    monkeypatch.setattr(fcntl, "fcntl", Mock(side_effect=OSError(24, "Too many open files")))
    reading, writing = os.pipe()
    os.set_inheritable(writing, True)
    assert hidden(writing) == writing
    assert not os.get_inheritable(writing)
    os.close(reading)
    os.close(writing)


def test_a_reader_that_does_not_read_holds_the_program_up_once(reader, monkeypatch):
    waits = []

    class Poll:
        def register(self, *_): ...

        def poll(self, milliseconds):
            waits.append(milliseconds / 1000)
            return []

    monkeypatch.setattr(select, "poll", Poll)
    sent = fill(reader.pipe)
    for _ in range(50):
        reader.pipe.send(b"lost")
    assert waits == [PATIENCE_SECONDS]
    lines = reader.lines()
    lost = reader.pipe.dropped
    assert lost >= 50
    reader.pipe.send(b"after")
    rest = reader.lines()
    lines[-1] += rest[0]  # the other half of the line that did not fit
    assert reader.pipe.dropped == lost
    assert lines == [b"%06d" % number * 100 for number in range(sent)][: len(lines)]
    assert rest[1:] == [b"after", b""]


def test_a_reader_that_has_gone_is_no_signal_and_no_error(reader):
    os.close(reader.end)
    fill(reader.pipe)
    assert reader.pipe.dropped > 0


def test_nothing_goes_into_a_file_that_took_our_number(reader, tmp_path):
    for number in reader.ours:
        os.close(number)
    files = []
    for number in reader.ours:
        opened = os.open(tmp_path / str(number), os.O_CREAT | os.O_RDWR)
        os.dup2(opened, number)
        files.append(opened)
    reader.pipe.send(b"ours")
    assert [path.read_bytes() for path in tmp_path.iterdir()] == [b"", b""]
    for opened in files:
        os.close(opened)


@pytest.mark.process
def test_a_forked_child_is_silent(reader):
    child = os.fork()
    if child == 0:
        reader.pipe.send(b"child")
        os._exit(0)
    os.waitpid(child, 0)
    reader.pipe.send(b"parent")
    assert reader.lines() == [b"parent", b""]


def test_a_syntax_error_is_at_its_own_line(tmp_path):
    file = tmp_path / "broken.py"
    with pytest.raises(SyntaxError) as raised:
        compile("import jax\ndef f(x:\n", str(file), "exec")
    assert error_location(raised.value).file != str(file), "of no file, as of `eval`"
    file.touch()
    assert error_location(raised.value) == SourceLocation(str(file), 2)


def test_handled_signals_are_reported_on_change(monkeypatch):
    launched = launch.Launched(Mock(), Mock(), "{}")

    def reported():
        launched._report_life(0.0)
        sent = [json.loads(call.args[0]).get("handled", []) for call in launched._pipe.send.call_args_list]
        launched._pipe.send.reset_mock()
        return sent

    usual = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
        assert reported() == []
        signal.signal(signal.SIGTERM, lambda *_: None)
        assert (reported(), reported()) == ([[signal.SIGTERM]], [])
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        assert reported() == [], "that is no handling"
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        assert reported() == [[]]
    finally:
        for number, handler in usual.items():
            signal.signal(number, handler)
