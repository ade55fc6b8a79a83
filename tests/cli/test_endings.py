"""How what measures ends, and with what exit code; what a recorded program is told at its end."""

import signal
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import click
import pytest

import program_events
from folding import fold
from jaxprof import events as e
from jaxprof.cli import answers, plain_script
from jaxprof.cli.output import ExitCode
from jaxprof.runner.interpreter import Interpreter
from jaxprof.runner.program_run import ProgramScheduler
from jaxprof.runner.session_recorder import report_location
from jaxprof.session import Session, load
from job_folders import job, loop, process
from pythons import stand_in

INTERPRETER = Interpreter("/usr/bin/python3", None)


@pytest.mark.parametrize(
    ("stopped_by", "status", "kept", "code"),
    [
        (None, "ok", True, ExitCode.OK),
        (None, "failed", True, ExitCode.FAILED),
        (None, "ok", False, ExitCode.FAILED),
        (signal.SIGINT, "ok", True, ExitCode.INTERRUPTED),
        (signal.SIGINT, "failed", False, ExitCode.INTERRUPTED),
        (signal.SIGTERM, "ok", True, 128 + signal.SIGTERM),
    ],
    ids=["well", "a run failed", "not kept", "ctrl+c", "ctrl+c and not kept", "SIGTERM"],
)
def test_exit_code_of_measuring(monkeypatch, capsys, stopped_by, status, kept, code):
    class Runs:
        def __init__(self, writer, interpreter, progress):
            session = SimpleNamespace(runs={"r1": SimpleNamespace(status=status, plan=SimpleNamespace(trial=""))})
            self.scheduler = SimpleNamespace(session=session, max_silence_seconds=None)
            self.stopped_by = stopped_by

        def work(self, planned):
            assert (planned, self.scheduler.max_silence_seconds) == (["a plan"], 7.0)

    monkeypatch.setattr("jaxprof.runner.headless.HeadlessRuns", Runs)
    monkeypatch.setattr("jaxprof.runner.session_recorder.report_location", lambda writer, note: kept)
    writer = SimpleNamespace(kept_path=Path("s.jaxprof"))
    ending = pytest.raises(click.exceptions.Exit) if stopped_by is signal.SIGTERM else nullcontext()
    with ending as ended:
        ended = answers.carry_out(["a plan"], INTERPRETER, writer, ["note: the environments differ"], 7.0)
        assert ended.path == Path("s.jaxprof")
    assert getattr(ended, "value", ended).exit_code == code
    assert "note: the environments differ" in capsys.readouterr().err


def test_conclusion_with_prefix_fits_80_columns(capsys, monkeypatch):
    session = fold(program_events.HEADER, program_events.training_events())
    monkeypatch.setattr(plain_script, "report_location", lambda writer, write: None)
    scheduler = SimpleNamespace(session=session, writer=SimpleNamespace(kept_path=None))
    plain_script.print_summary(scheduler, program_events.RUN)
    text = capsys.readouterr().err
    lines = text[text.index("jaxprof: costs most") :].splitlines()
    assert 76 <= max(map(len, lines)) <= 80


def test_report_of_a_job_fits_80_columns(capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    plain_script._report(job(Path("run.jaxprof.d"), loop(), loop(data=0.3), loop()), "text")
    assert 76 <= max(map(len, capsys.readouterr().err.splitlines())) <= 80


def test_session_that_lost_events_is_not_kept(capsys):
    writer = SimpleNamespace(failure=None, path="s.jaxprof", changed="", is_displaced=False, lost=0)
    notes = []
    assert report_location(writer, notes.append)
    writer.changed, writer.lost = "s.jaxprof was truncated by another process while it was written", 3
    assert not report_location(writer, notes.append)
    assert notes == ["session: s.jaxprof", f"session: s.jaxprof ({writer.changed})"]


@pytest.mark.process
@pytest.mark.parametrize(("lost", "own", "code"), [(False, 0, 0), (True, 0, 1), (True, 7, 7)])
def test_exit_code_of_a_program_that_lost_events(call, tmp_path, monkeypatch, lost, own, code):
    """One that truncates its session itself, as a rotation of logs would."""
    monkeypatch.chdir(tmp_path)
    Path("train.py").touch()
    if lost:
        monkeypatch.setattr(ProgramScheduler, "has_lost_events", True)
    python = stand_in(tmp_path, f"until [ -s s.jaxprof ]; do sleep 0.01; done; : > s.jaxprof; exit {own}")
    ended = call("script", "--plain", "--out", "s.jaxprof", "--python", python, "train.py")
    assert ended.code == code
    assert "s.jaxprof was truncated by another process while it was written; all of it was written again" in ended.err
    assert load(Path("s.jaxprof"), Session).complete


@pytest.mark.parametrize("harm", ["nothing", "deleted", "replaced", "another job's", "events lost"])
def test_exit_code_of_a_job_that_lacks_a_session(call, tmp_path, monkeypatch, harm):
    class Launch:
        def __init__(self, command, count, name, output=None):
            lost = e.WarningRaised(code="events_lost", message="3 events are missing")
            for index in range(count):
                is_other = harm == "another job's" and index == 1
                header = {"job": f"jaxprof-{'other' if is_other else name}"}
                more = (lost,) if harm == "events lost" and index == 1 else ()
                path = process(Path("run.jaxprof.d"), index, count, *loop(), *more, header=header)
                if index == 1 and harm == "deleted":
                    path.unlink()
                if index == 1 and harm == "replaced":
                    path.write_text("somebody's own")

        def signal(self, number, received=False):
            """Nothing has started."""

        def wait(self, failed, report):
            return 0

    monkeypatch.setattr("jaxprof.runner.job_launch.JobLaunch", Launch)
    monkeypatch.chdir(tmp_path)
    Path("train.py").touch()
    ended = call("script", "-n", "2", "--out", "run", "train.py")
    assert ended.code == (harm != "nothing")
    assert ("process 1 of 2: no session in the folder" in ended.err) == (harm != "nothing")
    assert "process 0 of 2" not in ended.err


def test_standstill_and_its_end_are_reported_once():
    over = e.StandstillSeen(
        run=program_events.RUN, monotonic_seconds=program_events.BEGAN + 60, since_seconds=0.0, over=True
    )
    quiet, stands, longer = (program_events.stands(seconds, until=20.0 + seconds) for seconds in (10.0, 30.0, 34.0))
    said, seen = [], list[e.Event]()

    def session():
        folded = program_events.session(*program_events.steady(20, {"device_busy": 1.0}), *seen, wall=None)
        folded.desert(deserted=False)
        return folded

    listen = plain_script.standstill_listener(session, said.append)
    for event in (quiet, stands, longer, over):
        seen.append(event)
        listen([event])
    assert [line.partition(" (")[0] for line in said] == ["it stands still since step 188", "it goes on"]
