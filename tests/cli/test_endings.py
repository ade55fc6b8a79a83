"""How what measures ends, and with what exit code; what a recorded program is told at its end."""

import signal
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import click
import pytest

import program_events
from folding import fold
from jaxprof.cli import answers, plain_script
from jaxprof.cli.output import ExitCode
from jaxprof.runner.interpreter import Interpreter
from job_folders import job, loop

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
def test_how_the_measuring_ends(monkeypatch, capsys, stopped_by, status, kept, code):
    class Runs:
        def __init__(self, writer, interpreter, progress):
            session = SimpleNamespace(runs={"r1": SimpleNamespace(status=status)})
            self.scheduler = SimpleNamespace(session=session, max_silence_seconds=None)
            self.stopped_by = stopped_by

        def work(self, planned):
            assert (planned, self.scheduler.max_silence_seconds) == (["a plan"], 7.0)

    monkeypatch.setattr("jaxprof.runner.headless.HeadlessRuns", Runs)
    monkeypatch.setattr("jaxprof.runner.new_session.report_location", lambda writer, note: kept)
    writer = SimpleNamespace(kept_path=Path("s.jaxprof"))
    ending = pytest.raises(click.exceptions.Exit) if stopped_by is signal.SIGTERM else nullcontext()
    with ending as ended:
        ended = answers.carry_out(["a plan"], INTERPRETER, writer, ["note: the environments differ"], 7.0)
        assert ended.path == Path("s.jaxprof")
    assert getattr(ended, "value", ended).exit_code == code
    assert "note: the environments differ" in capsys.readouterr().err


def test_the_conclusion_beside_a_program_fits_80_columns_with_our_name_before_it(capsys, monkeypatch):
    session = fold(program_events.HEADER, program_events.training_events())
    monkeypatch.setattr(plain_script, "report_location", lambda writer, write: None)
    scheduler = SimpleNamespace(session=session, writer=SimpleNamespace(kept_path=None))
    plain_script._print_summary(scheduler, program_events.RUN)
    text = capsys.readouterr().err
    lines = text[text.index("jaxprof: costs most") :].splitlines()
    assert 76 <= max(map(len, lines)) <= 80


def test_so_does_all_that_is_said_of_a_job(capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    plain_script._report(job(Path("run.jaxprof.d"), loop(), loop(data=0.3), loop()), "text")
    assert 76 <= max(map(len, capsys.readouterr().err.splitlines())) <= 80
