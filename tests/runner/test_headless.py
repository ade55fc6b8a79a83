"""Runs without the app: signals and notes around a scheduler that does as it is told, without a child process."""

import io
import os
import signal
from unittest.mock import Mock

import pytest

from jaxprof import events as e
from jaxprof.base.errors import StorageError
from jaxprof.runner import headless
from jaxprof.runner.headless import HeadlessRuns, Progress
from jaxprof.runner.interpreter import Interpreter
from jaxprof.runner.scheduler import Scheduler
from jaxprof.session import LogWriter
from report import sessions

INTERPRETER = Interpreter("/usr/bin/python3", None)


class Terminal(io.StringIO):
    """Text that is taken for a terminal."""

    def isatty(self):
        return True


class Obedient(Scheduler):
    """Emits what it is given; `run` then calls `then`."""

    emitted, then = (), staticmethod(lambda: None)

    def __init__(self, writer, interpreter, listen):
        super().__init__(writer, interpreter, listen)
        self.tell = listen

    def run(self):
        self.tell([self.writer.append(event) for event in self.emitted])
        self.then()


def headless_runs(terminal, emitted=(), then=lambda: None, path=None):
    made = type("Made", (Obedient,), {"emitted": emitted, "then": staticmethod(then)})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(headless, "Scheduler", made)
        return HeadlessRuns(LogWriter(sessions.HEADER, path), INTERPRETER, Progress(terminal))


def test_a_signal_that_is_ignored_stays_ignored():
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        work = headless_runs(Terminal(), then=lambda: os.kill(os.getpid(), signal.SIGHUP))
        work.work([])
        assert (work.stopped_by, signal.getsignal(signal.SIGHUP)) == (None, signal.SIG_IGN)
    finally:
        signal.signal(signal.SIGHUP, before)


def test_fault_of_the_scheduler_is_raised(tmp_path):
    path = tmp_path / "x.jaxprof"
    with pytest.raises(RuntimeError, match="a fault"):
        headless_runs(Terminal(), then=Mock(side_effect=RuntimeError("a fault")), path=path).work([])
    assert b"session_closed" in path.read_bytes()


def test_finished_runs_have_lines_in_place_of_the_live_one(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    terminal = Terminal()
    planned_first = sorted(sessions.events(), key=lambda event: not isinstance(event, e.RunPlanned))
    headless_runs(terminal, planned_first).work([])
    lines = terminal.getvalue().replace("\r\x1b[K", "").splitlines()
    assert [line.partition("  ")[0] for line in lines] == [
        "[1/3] selu numpy cpu:0", "[2/3] selu jit cpu:0", "[3/3] selu jax cpu:0",
    ]  # fmt: skip


def test_without_a_terminal_a_storage_failure_is_noted_once():
    plain = io.StringIO()
    headless_runs(plain, sessions.events()).work([])
    assert plain.getvalue() == ""
    work = headless_runs(plain, sessions.events())
    work.scheduler.writer.failure = StorageError("the session cannot be written to /x: No space left", "Free some.")
    work.work([])
    assert plain.getvalue().count("No space left") == 1


def test_without_a_terminal_long_runs_are_reported_seldom():
    clock, plain = Mock(return_value=16.0), io.StringIO()
    progress = Progress(plain, clock=clock)
    plan, started = sessions.plan("r1", "f", "jit"), e.WorkerStarted(run="r1", pid=1, python="p")
    progress.take([plan, started, e.PhaseStarted(run="r1", phase="run", monotonic_seconds=16.0)])
    for clock.return_value in (20.0, 35.9, 36.0, 40.0, 55.0, 56.5):
        progress.tick()
    assert plain.getvalue().splitlines() == [f"[1/1] selu f cpu:0  run {seconds} s" for seconds in ("20.0", "40.5")]
    progress.take([e.RunFinished(run="r1", status="ok")])
    clock.return_value = 99.0
    progress.tick()
    assert plain.getvalue().count("\n") == 2, "nothing runs"


def live_line(monkeypatch, name, now):
    """What stands in the last line while a run compiles, which began at 16 s."""
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")
    terminal = Terminal()
    progress = Progress(terminal, clock=lambda: now)
    plan, started = sessions.plan("r1", name, "jit"), e.WorkerStarted(run="r1", pid=1, python="p")
    progress.take([plan, started, e.PhaseStarted(run="r1", phase="compile", monotonic_seconds=16.0)])
    progress.tick()
    return terminal.getvalue().rpartition("\x1b[K")[2]


def test_the_clock_of_a_long_compile_ticks(monkeypatch):
    assert live_line(monkeypatch, "jit", 18.0) == "[1/1] selu jit cpu:0  compile 2.0 s"
    assert live_line(monkeypatch, "jit", 58.25) == "[1/1] selu jit cpu:0  compile 42.2 s"
    assert not {"\x1b", "\n"} & set(live_line(monkeypatch, "jit\x1b[2J\n", 18.0)), "a name cannot move the cursor"
