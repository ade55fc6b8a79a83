"""A program with its output captured, as the app runs it."""

import os
import signal
import subprocess
import threading
import time
from types import SimpleNamespace

import pytest

import program_events as made
from jaxprof.base.errors import WorkerError
from jaxprof.base.files import read_source
from jaxprof.devices.live.process_state import is_stopped
from jaxprof.events import (
    CaptureWindow,
    Heartbeat,
    LogLine,
    ProgramEnded,
    ProgramStopped,
    SessionClosed,
    SourceLocation,
    SourcesRead,
)
from jaxprof.runner.interpreter import own_interpreter
from jaxprof.runner.program import ProgramCommand, ProgramProcess
from jaxprof.runner.program_run import ProgramScheduler, _Pace
from jaxprof.session import LogWriter, new_header
from waiting import until

SECONDS = 20.0


class Told:
    """What is followed of a program, without one: its events, and the code with which it has ended, or ends once it is
    told to."""

    exit_code = property(lambda self: self.returncode)
    alive = property(lambda self: self.returncode is None)
    end_request = staticmethod(lambda raised_seconds=None: None)

    def __init__(self, *events, code=0, goes_on=False):
        self.began_seconds, self.pid, self.heartbeat_seen = time.monotonic(), os.getpid(), True
        self.children_seconds = 0.0
        self.heartbeat, self.last_sign_seconds = None, self.began_seconds
        self.returncode, self.over, self.asked = None if goes_on else code, False, []
        self._events, self._code = list(events), code

    def read(self, seconds):
        time.sleep(0.01)
        self.over, events, self._events = not self.alive, self._events, []
        return events

    def end(self, patience_seconds):
        self.returncode = self._code

    def signal(self, number):
        self.asked.append(number)

    def kill(self):
        self.asked.append("kill")

    def explain(self):
        return WorkerError("it ended")

    def close(self):
        """It holds nothing."""


class Stage:
    """One program, followed on a thread."""

    def __init__(self, process):
        """`process`: a `Told`, or what `unrecorded` has started."""
        self.events = []
        self._came = threading.Condition()
        writer, program = LogWriter(new_header(), None), ProgramCommand(path="x.py")
        self.scheduler = ProgramScheduler(writer, own_interpreter(), self._listen, program, process=process)
        self._thread = threading.Thread(target=self.scheduler.run)

    @property
    def run(self):
        (run,) = self.scheduler.session.runs.values()
        return run

    @property
    def lines(self):
        return [(event.stream, event.text) for event in self.events if isinstance(event, LogLine)]

    def begin(self):
        self.scheduler.start()
        self._thread.start()

    def until(self, condition):
        with self._came:
            assert self._came.wait_for(condition, SECONDS), self.events

    def end(self):
        self._thread.join(SECONDS)
        assert not self._thread.is_alive()
        return self.run

    def _listen(self, events):
        with self._came:
            self.events += events
            self._came.notify_all()


@pytest.fixture
def stage(monkeypatch):
    for name in ("BATCH_SECONDS", "WATCHED_AFTER_SECONDS"):  # how soon a line comes is not what is tested
        monkeypatch.setattr(f"jaxprof.runner.program_run.{name}", 0.05)
    made = []

    def make(process):
        made.append(Stage(process))
        return made[-1]

    yield make
    for each in made:
        each.scheduler.close()


class Paused(Told):
    """A program whose sampler did not run for a second, in which its recorder looked, or was `stopped` as well."""

    def read(self, seconds):
        time.sleep(1.3 if self.stopped else 0.01)
        self.over = time.monotonic() - self.began_seconds > 1.2
        stopped = ProgramStopped(began_seconds=self.began_seconds + 0.1, seconds=1.0, found_by="standstill")
        return [stopped] if self.over else []


@pytest.mark.parametrize("stopped", [False, True])
def test_a_pause_has_whether_its_recorder_ran(stage, monkeypatch, stopped):
    monkeypatch.setattr("jaxprof.runner.program_run.WATCHED_AFTER_SECONDS", SECONDS)  # readings are no witness
    told = Paused()
    told.stopped = stopped
    one = stage(told)
    one.begin()
    (pause,) = one.end().program.pauses
    assert pause.recorder_ran is not stopped


def unrecorded(lines):
    """A shell that runs `lines`, in place of a program."""
    pipes = (*os.pipe(), *os.pipe())
    outputs = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    child = subprocess.Popen(
        ["sh", "-c", lines], pass_fds=pipes[2:3], start_new_session=True, stdin=subprocess.PIPE, **outputs
    )
    started = SimpleNamespace(pipes=pipes, began_seconds=time.monotonic(), process=child)
    return ProgramProcess("python", ProgramCommand(path="x.py"), inherit=False, started=started)


@pytest.mark.parametrize(
    ("code", "needed", "answer", "kept"),
    [
        (0, True, 5e-6, 5e-6),
        (0, False, 5e-6, None),
        (0, True, WorkerError("it ended", "Try again."), None),
        (-2, True, 5e-6, None),
    ],
    ids=["needed", "not needed", "failed", "interrupted"],
)
def test_an_empty_call_is_timed_after_the_end_if_needed(stage, monkeypatch, code, needed, answer, kept):
    def timed(interpreter, request):
        assert one.run.over
        assert (request.arrays, request.numbers) == (1, 0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setattr("jaxprof.analysis.programs.loop_time.needs_empty_call", lambda hot: needed)
    monkeypatch.setattr("jaxprof.runner.engine_questions.empty_call_seconds", timed)
    one = stage(Told(code=code))
    one.begin()
    run = one.end()
    assert run.status == ("cancelled" if code else "ok")
    assert getattr(run.program.empty_call, "seconds", None) == kept


def test_the_digest_of_a_file_comes_when_it_is_first_named(stage, tmp_path):
    """At the end alone, no line could be shown while the program runs."""
    path = tmp_path / "step.py"
    path.write_text("def step(): ...\n")
    os.utime(path, (1.0, 1.0))
    at = SourceLocation(str(path), 1)
    one = stage(Told(made.compiled(called_from=at), made.compiled(called_from=at), goes_on=True))
    one.begin()
    one.until(lambda: any(isinstance(event, SourcesRead) for event in one.events))
    assert not one.run.over
    assert one.run.sources == {str(path): read_source(path)[1]}
    one.scheduler.close()
    assert sum(isinstance(event, SourcesRead) for event in one.events) == 1


def test_each_cancel_ends_the_program_more_firmly(stage):
    told = Told(goes_on=True)
    one = stage(told)
    one.begin()
    for _ in range(4):
        one.scheduler.cancel_all()
    assert told.asked == [signal.SIGINT, signal.SIGTERM, "kill", "kill"]


STUBBORN = """
trap 'echo no' INT
trap 'echo not so' TERM
printf '\\rhalf\\rwhole\\n'
echo ready >&2
while :; do sleep 0.05; done
"""


@pytest.mark.process
def test_a_deaf_program_is_not_waited_for(stage, monkeypatch):
    monkeypatch.setattr("jaxprof.runner.program_run.PATIENCE_SECONDS", 0.2)
    stubborn = stage(unrecorded(STUBBORN))
    stubborn.begin()
    for line in (("stdout", "whole"), ("stderr", "ready")):
        stubborn.until(lambda line=line: line in stubborn.lines)
    assert stubborn.scheduler.busy, "a line is there before the program ends"
    for _ in range(2000):  # more than the control pipe holds
        stubborn.scheduler.capture(5)
    for answer in ("no", "not so"):
        stubborn.scheduler.cancel_all()
        stubborn.until(lambda answer=answer: ("stdout", answer) in stubborn.lines)
    stubborn.scheduler.close("interrupted")
    run = stubborn.end()
    assert (run.status, run.closed.error) == ("cancelled", "interrupted; it did not end, and was killed")
    assert stubborn.scheduler.exit_code == 137
    assert stubborn.scheduler.busy is False
    assert isinstance(stubborn.events[-1], SessionClosed)


@pytest.mark.process
@pytest.mark.parametrize("asked", [True, False])
def test_a_kill_after_sigterm_is_no_lack_of_memory(asked):
    process = unrecorded("trap '' TERM; echo ready; exec sleep 60")
    try:
        while not process.read(SECONDS):
            pass
        if asked:
            process.signal(signal.SIGTERM)
        process.signal(signal.SIGKILL)
        while not process.over:
            process.read(SECONDS)
        said = process.explain()
    finally:
        process.close()
    assert "memory" not in said.what, "of that the system says nothing"
    assert ("memory ran out" in said.hint) is not asked, "which is one of two possibilities"
    assert ("had not ended after SIGTERM" in said.what) is asked


@pytest.mark.parametrize(("code", "status", "reason"), [(0, "ok", "finished"), (-2, "cancelled", "SIGHUP")])
def test_a_hang_up_counts_only_if_it_ended_the_program(stage, code, status, reason):
    going = stage(Told(LogLine(stream="stdout", text="ready"), code=code, goes_on=True))
    going.begin()
    going.until(lambda: going.lines)
    going.scheduler.close("SIGHUP")
    assert (going.end().status, going.events[-1].reason) == (status, reason)


def test_exception_is_recorded_before_a_waiting_exit(stage, monkeypatch):
    monkeypatch.setattr("jaxprof.runner.program_run.ENDING_SECONDS", 0.05)
    one = stage(Told(ProgramEnded(exit_code=None, wall_seconds=1.0, error="ValueError: no"), code=1, goes_on=True))
    one.begin()
    one.until(lambda: any(isinstance(event, ProgramEnded) for event in one.events))
    assert one.run.over is False
    assert one.run.program.ended.error == "ValueError: no"
    one.scheduler.close()
    assert one.end().status == "cancelled"


@pytest.mark.parametrize(
    ("raised", "status", "error"),
    [(None, "cancelled", "interrupted"), (-1.0, "failed", "exit code 1"), (1.0, "cancelled", "interrupted")],
    ids=["no exception", "before ctrl+c", "because of it"],
)
@pytest.mark.process
def test_a_failure_before_the_signal_stays_a_failure(stage, raised, status, error):
    process = unrecorded("trap '' INT; echo ready; read line; exit 1")
    one = stage(process)
    one.begin()
    one.until(lambda: ("stdout", "ready") in one.lines)
    seconds = None if raised is None else time.monotonic() + raised
    one.scheduler._end_event = ProgramEnded(exit_code=None, wall_seconds=1.0, error="E", error_seconds=seconds)
    process.signal(signal.SIGINT)
    process._process.stdin.close()
    assert (one.end().status, one.run.error) == (status, error)


@pytest.mark.process
def test_a_program_is_ended_although_nobody_reads_what_it_sends(monkeypatch):
    monkeypatch.setattr("jaxprof.runner.program_signals.GRACE_SECONDS", 0.1)
    process = unrecorded("trap '' INT TERM; kill -STOP $$; while :; do sleep 0.05; done")
    try:
        until(lambda: is_stopped(process.pid))
        process.signal(signal.SIGINT)
        until(lambda: not process.alive)
        assert (process.returncode, process.end_request()) == (-signal.SIGKILL, signal.SIGINT)
    finally:
        process.close()


@pytest.mark.process
def test_a_handled_first_interrupt_leaves_all_the_time(monkeypatch):
    monkeypatch.setattr("jaxprof.runner.program_signals.GRACE_SECONDS", 0.2)
    process = unrecorded("trap '' INT; echo ready; while :; do sleep 0.05; done")
    try:
        while not process.read(SECONDS):
            pass
        process._heartbeat(Heartbeat(handled=[signal.SIGINT]))
        process.signal(signal.SIGINT)
        process._heartbeat(Heartbeat(handled=[]))
        time.sleep(1)  # five times as long as it would have otherwise
        assert process.alive
        began = time.monotonic()
        process.signal(signal.SIGINT)
        until(lambda: not process.alive)
        assert time.monotonic() - began >= 0.2, "the second one is the first that counts"
        assert process.end_request() == signal.SIGINT
    finally:
        process.close()


@pytest.mark.parametrize(
    ("states", "name", "kept"),
    [
        (("began",), "jaxprof-window-x", False),
        (("began", "failed"), "jaxprof-window-x", True),
        (("began",), "home", True),
    ],
    ids=["open at its end", "closed", "no folder of ours"],
)
def test_the_folder_of_a_killed_window_is_removed(stage, tmp_path, states, name, kept):
    folder = tmp_path / name
    folder.mkdir()
    one = stage(Told(*(CaptureWindow(state=state, path=str(folder)) for state in states), code=-9))
    one.begin()
    one.end()
    assert folder.exists() is kept


@pytest.mark.parametrize("asked", [True, False])
def test_a_profile_is_read_whole_unless_asked_to_end(stage, tmp_path, monkeypatch, asked):
    read = threading.Event()
    monkeypatch.setattr("jaxprof.runner.profiles.open_window", lambda recorder, folder: read.wait(SECONDS) and False)
    monkeypatch.setattr("jaxprof.runner.program_run.WINDOW_SECONDS", 0.1)
    told = Told(CaptureWindow(state="ended", path=str(tmp_path / "jaxprof-window-x")), code=-2)
    told.end_request = lambda raised_seconds=None: signal.SIGINT if asked else None
    one = stage(told)
    one.begin()
    if not asked:
        one._thread.join(0.5)
        assert one._thread.is_alive()
        read.set()
    assert one.end().over
    read.set()


def test_output_without_end_does_not_fill_the_disk(stage, monkeypatch):
    monkeypatch.setenv("JAXPROF_LIMITS", "output=2000")
    loud = stage(Told(*(LogLine(stream="stdout", text="x" * 99) for _ in range(100))))
    loud.begin()
    run = loud.end()
    assert [warning.code for warning in run.warnings] == ["output_cut"]
    assert len(loud.lines) == 100
    kept = [event for event in loud.events if isinstance(event, LogLine) and event.seq]
    assert len(kept) == 10


def test_a_screen_that_takes_much_is_shown_anew_less_often():
    pace = _Pace()
    began, seen = pace._used, []
    for cost in (0.9, 0.02, 0.05, 0.06, 9.0, 9.0, 0.01):  # the first has the start in it
        began += cost
        pace.note_flush(began)
        seen.append(pace.seconds)
    assert seen == pytest.approx([1.0, 1.0, 1.0, 2.5, 3.0, 5.0, 1.0])
