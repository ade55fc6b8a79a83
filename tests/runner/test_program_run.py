"""A program with its output captured, as the app runs it."""

import signal
import threading

import pytest

from jaxprof.errors import WorkerError
from jaxprof.events import LogLine, ProgramEnded, ProgramStarted, SessionClosed
from jaxprof.files import file_digest
from jaxprof.runner.interpreter import own_interpreter
from jaxprof.runner.program import ProgramCommand, ProgramProcess
from jaxprof.runner.program_run import ProgramScheduler, _Pace
from jaxprof.session.log import LogWriter, new_header

pytestmark = pytest.mark.process

SECONDS = 20.0


class Stage:
    """One program, run on a thread."""

    def __init__(self, folder, text, *arguments, interpreter=None):
        (folder / "x.py").write_text(text)
        self.events = []
        self._came = threading.Condition()
        program = ProgramCommand(path="x.py", arguments=arguments, directory=str(folder))
        self.scheduler = ProgramScheduler(
            LogWriter(new_header(), None), interpreter or own_interpreter(), self._listen, program
        )
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
def stage(tmp_path, monkeypatch):
    for name in ("BATCH_SECONDS", "WATCHED_AFTER_SECONDS"):  # how soon a line comes is not what is tested
        monkeypatch.setattr(f"jaxprof.runner.program_run.{name}", 0.05)
    made = []

    def make(text, *arguments, interpreter=None):
        made.append(Stage(tmp_path, text, *arguments, interpreter=interpreter))
        return made[-1]

    yield make
    for each in made:
        each.scheduler.close()


def test_the_output_joins_the_session(stage, monkeypatch, tmp_path):
    monkeypatch.delenv("PYTHONUNBUFFERED", raising=False)
    shown = stage(
        "import os, sys\nprint('out', sys.argv[1:], sys.stdin.read(), os.environ.get('PYTHONUNBUFFERED'))\n"
        "sys.stderr.write('err\\n')\nprint('\\rhalf\\rwhole', end='')\n",
        "a",
    )
    shown.begin()
    run = shown.end()
    assert shown.lines.count(("stdout", "out ['a']  None")) == 1
    assert ("stderr", "err") in shown.lines
    assert [text for stream, text in shown.lines if stream == "stdout"][-1] == "whole"
    assert run.status == "ok"
    assert shown.scheduler.exit_code == 0
    assert not shown.scheduler.busy
    assert run.sources == {str(tmp_path / "x.py"): file_digest(tmp_path / "x.py")}
    types = [type(event) for event in shown.events]
    assert types.index(ProgramStarted) < types.index(LogLine) < types.index(ProgramEnded)


@pytest.mark.parametrize(
    ("text", "needed", "answer", "kept"),
    [
        ("", True, 5e-6, 5e-6),
        ("", False, 5e-6, None),
        ("", True, WorkerError("it ended", "Try again."), None),
        ("import signal; signal.raise_signal(2)", True, 5e-6, None),
    ],
    ids=["needed", "not needed", "failed", "interrupted"],
)
def test_an_empty_call_is_timed_where_it_is_needed_once_the_program_has_ended(
    stage, monkeypatch, text, needed, answer, kept
):
    def timed(interpreter, request):
        assert one.run.over
        assert (request.arrays, request.numbers) == (1, 0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setattr("jaxprof.analysis.programs.loop_time.needs_empty_call", lambda hot: needed)
    monkeypatch.setattr("jaxprof.runner.engine_process.empty_call_seconds", timed)
    one = stage(text)
    one.begin()
    run = one.end()
    assert getattr(run.program.empty_call, "seconds", None) == kept


def test_a_program_that_ignores_ctrl_c_is_ended_by_asking_again(stage):
    stubborn = stage(
        "import signal, time\nsignal.signal(signal.SIGINT, lambda *_: print('no'))\n"
        "signal.signal(signal.SIGTERM, lambda *_: print('not so'))\nprint('ready')\nwhile True:\n    time.sleep(0.05)\n"
    )
    stubborn.begin()
    for answer in ("ready", "no", "not so"):
        stubborn.until(lambda answer=answer: ("stdout", answer) in stubborn.lines)
        stubborn.scheduler.cancel_all()
    assert stubborn.end().status == "cancelled"
    assert stubborn.scheduler.exit_code == 137


@pytest.mark.parametrize("asked", [True, False])
def test_what_was_asked_to_end_before_it_was_killed_did_not_lack_memory(tmp_path, asked):
    program = tmp_path / "x.py"
    program.write_text("import signal, time\nsignal.signal(15, signal.SIG_IGN)\nprint('on')\ntime.sleep(60)\n")
    process = ProgramProcess(own_interpreter().path, ProgramCommand(path=str(program)), inherit=False)
    try:
        while not any(isinstance(event, LogLine) and event.text == "on" for event in process.read(SECONDS)):
            assert process.alive
        if asked:
            process.terminate()
        process.signal(signal.SIGKILL)
        while not process.over:
            process.read(SECONDS)
        said = process.explain()
    finally:
        process.close()
    assert "memory" not in said.what, "of that the system says nothing"
    assert ("memory ran out" in said.hint) is not asked, "which is one of two possibilities"
    assert ("had not ended after SIGTERM" in said.what) is asked


def test_a_program_that_will_not_end_is_killed_with_its_children_when_the_app_is_left(stage, monkeypatch):
    monkeypatch.setattr("jaxprof.runner.program_run.PATIENCE_SECONDS", 0.2)
    stubborn = stage(
        "import os, signal, time\nfor number in (signal.SIGINT, signal.SIGTERM):\n"
        "    signal.signal(number, lambda *_: None)\nif os.fork():\n    print('ready')\n"
        "while True:\n    time.sleep(0.05)\n"
    )
    stubborn.begin()
    stubborn.until(lambda: ("stdout", "ready") in stubborn.lines)
    stubborn.scheduler.close("interrupted")
    run = stubborn.end()
    assert (run.status, run.closed.error) == ("cancelled", "interrupted")
    assert stubborn.scheduler.exit_code == 137
    assert isinstance(stubborn.events[-1], SessionClosed)


@pytest.mark.parametrize(("then", "status", "reason"), [("pass", "ok", "finished"), ("raise", "cancelled", "SIGHUP")])
def test_a_terminal_that_hangs_up_ends_the_session_only_if_it_ended_the_program(stage, then, status, reason):
    going = stage(f"import time\ntry:\n    print('ready')\n    time.sleep(60)\nexcept KeyboardInterrupt:\n    {then}\n")
    going.begin()
    going.until(lambda: ("stdout", "ready") in going.lines)
    going.scheduler.close("SIGHUP")
    assert (going.end().status, going.events[-1].reason) == (status, reason)


def test_a_program_that_does_not_listen_is_not_waited_for(stage):
    deaf = stage("import time\nprint('ready')\ntime.sleep(60)\n")
    deaf.begin()
    deaf.until(lambda: ("stdout", "ready") in deaf.lines)
    assert deaf.scheduler.busy, "a line is there before the program ends"
    for _ in range(2000):  # more than the control pipe holds
        deaf.scheduler.capture(5)
    deaf.scheduler.cancel_all()
    run = deaf.end()
    assert (run.status, deaf.scheduler.exit_code) == ("cancelled", 130)
    assert any("KeyboardInterrupt" in text for _, text in deaf.lines)


def test_output_without_end_does_not_fill_the_disk(stage, monkeypatch):
    monkeypatch.setenv("JAXPROF_LIMITS", "output=2000")
    loud = stage("for number in range(100):\n    print('x' * 99)\n")
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
        pace.flushed(began)
        seen.append(pace.seconds)
    assert seen == pytest.approx([1.0, 1.0, 1.0, 2.5, 3.0, 5.0, 1.0])
