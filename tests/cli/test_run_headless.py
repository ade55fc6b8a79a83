"""Signals and notes around a conductor that does as it is told; no child process here."""

from __future__ import annotations

import io
import os
import signal
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from jaxprof import events as e
from jaxprof.cli.run_headless import HeadlessRuns, Progress
from jaxprof.errors import StorageError
from jaxprof.runner import Interpreter, PlannedRun, Scheduler
from jaxprof.session.log import LogWriter
from report import sessions

INTERPRETER = Interpreter("/usr/bin/python3", None, "a test")


class Terminal(io.StringIO):
    """Text that is taken for a terminal."""

    def isatty(self) -> bool:
        return True


class Obedient(Scheduler):
    """Emits what it is given; `run` then calls `then`, and waits until it is cancelled when that says so."""

    emitted: Sequence[e.Event] = ()
    then: Callable[[], bool] = staticmethod(lambda: False)

    def __init__(self, writer: LogWriter, interpreter: Interpreter, listen: Callable[[list[e.Event]], None]) -> None:
        super().__init__(writer, interpreter, listen)
        self.tell = listen

    def run(self) -> None:
        self.cancels = 0
        self.asked = threading.Event()
        self.tell([self.writer.append(event) for event in self.emitted])
        if self.then():
            assert self.asked.wait(30)

    def cancel_all(self) -> None:
        self.cancels += 1
        self.asked.set()


def headless_runs(
    terminal: io.StringIO,
    emitted: Sequence[e.Event] = (),
    then: Callable[[], bool] = lambda: False,
    path: Path | None = None,
) -> HeadlessRuns:
    made = type("Made", (Obedient,), {"emitted": emitted, "then": staticmethod(then)})
    return HeadlessRuns(LogWriter(sessions.HEADER, path), INTERPRETER, Progress(terminal), make=made)


def kill_after(number: signal.Signals) -> Callable[[], bool]:
    def send() -> bool:
        os.kill(os.getpid(), number)
        return True

    return send


NOTHING: list[PlannedRun] = []


@pytest.mark.parametrize(
    ("number", "cancels", "reason"), [(signal.SIGINT, 1, "interrupted"), (signal.SIGTERM, 2, "SIGTERM")]
)
def test_a_signal_cancels_and_names_itself_in_the_log(number: signal.Signals, cancels: int, reason: str) -> None:
    work = headless_runs(Terminal(), then=kill_after(number))
    before = signal.getsignal(number)
    work.work(NOTHING)
    assert work.stopped_by == number
    assert isinstance(work.scheduler, Obedient)
    assert work.scheduler.cancels == cancels
    assert work.scheduler.session.closed is not None
    assert work.scheduler.session.closed.reason == reason
    assert signal.getsignal(number) is before


def test_a_signal_that_is_ignored_stays_ignored() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        work = headless_runs(Terminal(), then=lambda: os.kill(os.getpid(), signal.SIGHUP) or False)  # type: ignore[func-returns-value]
        work.work(NOTHING)
        assert work.stopped_by is None
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


def test_a_fault_of_the_conductor_is_raised_and_the_log_is_closed(tmp_path: Path) -> None:
    def fail() -> bool:
        raise RuntimeError("a fault")

    path = tmp_path / "x.jaxprof"
    with pytest.raises(RuntimeError, match="a fault"):
        headless_runs(Terminal(), then=fail, path=path).work(NOTHING)
    assert b"session_closed" in path.read_bytes()


def test_finished_runs_get_a_line_each_and_the_live_line_goes_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    terminal = Terminal()
    planned_first = sorted(sessions.events(), key=lambda event: not isinstance(event, e.RunPlanned))
    headless_runs(terminal, planned_first).work(NOTHING)
    lines = terminal.getvalue().replace("\r\x1b[K", "").splitlines()
    assert lines == [
        "[1/3] selu numpy cpu:0  4.37 ms ± 0.50 %",
        "[2/3] selu jit cpu:0  630 µs ± 0.99 %  6.9× (6.9-7.0)",
        "[3/3] selu jax cpu:0  failed: RESOURCE_EXHAUSTED: out of memory allocating 4 TB",
    ]


def test_nothing_is_drawn_where_stderr_is_no_terminal() -> None:
    plain = io.StringIO()
    headless_runs(plain, sessions.events()).work(NOTHING)
    assert plain.getvalue() == ""


def test_a_storage_failure_is_told_at_once_and_once() -> None:
    plain = io.StringIO()
    work = headless_runs(plain, sessions.events())
    work.scheduler.writer.failure = StorageError("the session cannot be written to /x: No space left", "Free some.")
    work.work(NOTHING)
    assert plain.getvalue().count("No space left") == 1


class TestLiveLine:
    def line(self, monkeypatch: pytest.MonkeyPatch, events: Sequence[e.Event], now: float = 18.0) -> str:
        monkeypatch.setenv("TERM", "xterm")
        monkeypatch.setenv("COLUMNS", "100")
        terminal = Terminal()
        progress = Progress(terminal, clock=lambda: now)
        progress.take(events)
        progress.tick()
        return terminal.getvalue().rpartition("\x1b[K")[2]

    def test_the_clock_of_a_long_compile_ticks(self, monkeypatch: pytest.MonkeyPatch) -> None:
        events = [
            sessions.plan("r1", "jit", "jit"),
            e.WorkerStarted(run="r1", pid=1, python="p"),
            e.PhaseStarted(run="r1", phase="compile", monotonic_seconds=16.0),
        ]
        assert self.line(monkeypatch, events) == "[1/1] selu jit cpu:0  compile 2.0 s"
        assert self.line(monkeypatch, events, now=58.25) == "[1/1] selu jit cpu:0  compile 42.2 s"

    def test_a_name_cannot_move_the_cursor(self, monkeypatch: pytest.MonkeyPatch) -> None:
        events = [sessions.plan("r1", "jit\x1b[2J\n", "jit"), e.WorkerStarted(run="r1", pid=1, python="p")]
        line = self.line(monkeypatch, events)
        assert "\x1b" not in line
        assert "\n" not in line
