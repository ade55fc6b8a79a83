"""A program or a job that was asked to end has ended soon, with all that it has started, whatever holds it up; one that
cleans up has the time for it."""

import os
import signal
import subprocess
import sys
import time

import pytest

from cli.calling import environment
from jaxprof.runner import program_signals
from jaxprof.runner.program_signals import KILL, TERMINATE, Escalation
from jaxprof.session import Session, load
from pythons import stand_in
from waiting import SLOWER, processes_with, until

INTERRUPT, TERM, HANG_UP = signal.SIGINT, signal.SIGTERM, signal.SIGHUP


@pytest.fixture
def clock(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(program_signals.time, "monotonic", lambda: now[0])
    return now


@pytest.mark.parametrize("number", [INTERRUPT, TERM, HANG_UP])
def test_each_step_is_due_once_and_none_before_it_was_asked(clock, number):
    steps, asked = Escalation(), []
    for second in range(40):
        clock[0] = 100.0 + second
        if second == 10:
            steps.ask(number)
        if (step := steps.due_step()) is not None:
            asked.append((second, step))
    assert asked[:2] == [(15, TERMINATE), (20, KILL)]
    assert [step for _, step in asked] == list(range(1, len(asked) + 1))


def test_a_second_signal_hastens_and_sigterm_is_a_step(clock):
    steps = Escalation()
    steps.ask(INTERRUPT)
    assert steps.due_step() is None
    steps.ask(INTERRUPT)
    clock[0] += program_signals.HASTE_SECONDS
    assert (steps.due_step(), steps.due_step()) == (TERMINATE, None)
    steps.ask(INTERRUPT)
    clock[0] += program_signals.HASTE_SECONDS
    assert steps.due_step() == KILL
    steps = Escalation()
    steps.ask(INTERRUPT)
    steps.ask(TERM)
    assert (steps.step, steps.due_step()) == (TERMINATE, None)
    clock[0] += program_signals.GRACE_SECONDS
    assert steps.due_step() == KILL


JOB = """
import os, sys
from functools import partial
from pathlib import Path
from jaxprof.runner import program_signals
from jaxprof.runner.job_launch import JobLaunch
from jaxprof.runner.program_signals import passing_signals
program_signals.GRACE_SECONDS = float(sys.argv[1])
with passing_signals() as pass_to:
    launch = JobLaunch(["/bin/sh", "-c", sys.argv[2]], 2, "job")
    pass_to(launch.signal)
    Path("launched").touch()
    code = launch.wait(lambda index, code: print("failed", index, code, flush=True), partial(print, flush=True))
print("code", code)
"""
RECORDER = "trap : INT TERM HUP; {program}\ntouch closed-$RANK; exit {code}"
"""What stands for `jaxprof script` in a process of a job: it ends after its program."""
STUBBORN = "trap '' INT TERM HUP; touch ready-$RANK; while :; do sleep 0.1; done"
PROGRAMS = {
    "ends": "trap 'exit 3' INT TERM HUP; touch ready-$RANK; while :; do sleep 0.05; done",
    "stubborn": STUBBORN,
    "stopped": "touch ready-$RANK; kill -STOP $$; while :; do sleep 0.1; done",
    "leaves one behind": f"(trap '' INT TERM HUP; exec sleep 99) & {STUBBORN}",
    "has left one behind": "(trap '' INT TERM HUP; exec sleep 99) & touch ready-$RANK; "
    "until [ -e asked ]; do sleep 0.02; done",
}


class Started:
    """A process of ours in a group of its own, in a folder."""

    def __init__(self, folder, words, **more):
        self.folder, self.mark = folder, f"JAXPROF_MARK={folder}"
        variables = environment() | {"JAXPROF_MARK": str(folder)} | more
        self.process = subprocess.Popen(
            words, cwd=folder, env=variables, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True,
            stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip

    def until_ready(self, *names):
        until(lambda: all((self.folder / name).exists() for name in names))

    def end(self):
        said, _ = self.process.communicate(timeout=30 * SLOWER)
        until(lambda: not processes_with(self.mark))  # a shell that was killed leaves its last `sleep 0.1`
        return said


@pytest.fixture
def start(tmp_path):
    made = []

    def start(*words, **more):
        made.append(Started(tmp_path, [sys.executable, *map(str, words)], **more))
        return made[-1]

    yield start
    for each in made:
        if each.process.poll() is None:
            os.killpg(each.process.pid, signal.SIGCONT)
            os.killpg(each.process.pid, signal.SIGKILL)
            each.process.communicate()


@pytest.mark.process
@pytest.mark.parametrize("number", [INTERRUPT, TERM, HANG_UP], ids=lambda number: number.name)
@pytest.mark.parametrize("kind", PROGRAMS)
def test_a_job_ends_whole_and_closes_its_sessions(start, tmp_path, kind, number):
    lines = RECORDER.format(program='/bin/sh -c "$PROGRAM"', code=1)
    job = start("-c", JOB, "0.4", lines, PROGRAM=PROGRAMS[kind])
    job.until_ready("launched", "ready-0", "ready-1")
    (tmp_path / "asked").touch()
    (os.killpg if kind == "ends" else os.kill)(job.process.pid, number)  # as the terminal does; as anybody does
    said = job.end()
    assert f"code {128 + number}" in said
    assert [(tmp_path / f"closed-{index}").exists() for index in range(2)] == [True, True], said
    assert "failed" not in said, "nobody failed: all were asked to end"
    assert f"{number.name}: processes that have not ended" in said
    assert ("not ended, killed" in said) == (kind != "ends"), said


@pytest.mark.process
def test_stopped_recorders_are_continued_and_endless_ones_killed(start, tmp_path):
    lines = RECORDER.format(program="touch ready-$RANK; kill -STOP $$", code=0)
    job = start("-c", JOB, "20", lines)
    job.until_ready("launched", "ready-0", "ready-1")
    os.kill(job.process.pid, INTERRUPT)
    assert "code 0" in job.end(), "they needed no more than to go on"
    job = start("-c", JOB, "0.2", STUBBORN.replace("ready", "again"))
    job.until_ready("again-0", "again-1")
    os.kill(job.process.pid, INTERRUPT)
    assert "code 130" in job.end()


@pytest.mark.process
def test_cleaning_up_has_time_unless_asked_again(start, tmp_path):
    tidy = "trap 'sleep 0.3; echo tidy > tidy-$RANK; exit 0' INT; touch ready-$RANK; while :; do sleep 0.05; done"
    job = start("-c", JOB, "5", tidy)
    job.until_ready("launched", "ready-0", "ready-1")
    os.killpg(job.process.pid, INTERRUPT)
    assert "code 0" in job.end()
    assert [(tmp_path / f"tidy-{index}").read_text() for index in range(2)] == ["tidy\n", "tidy\n"]
    job = start(
        "-c",
        JOB,
        "60",
        RECORDER.format(program='/bin/sh -c "$PROGRAM"', code=0),
        PROGRAM=STUBBORN.replace("ready", "again"),
    )
    job.until_ready("again-0", "again-1")
    for said in ("SIGINT", "SIGTERM follows", "killed"):
        os.kill(job.process.pid, INTERRUPT)
        while said not in (line := job.process.stdout.readline()):
            assert line, said
    assert "code" in job.end()


SCRIPT = """
import sys
from jaxprof.runner import program_signals
program_signals.GRACE_SECONDS = float(sys.argv.pop(1))
from jaxprof.cli.main import main
main()
"""


@pytest.mark.process
@pytest.mark.parametrize("number", [INTERRUPT, TERM, HANG_UP], ids=lambda number: number.name)
@pytest.mark.parametrize("kind", ["stubborn", "stopped", "leaves one behind"])
def test_so_does_a_single_program(start, tmp_path, kind, number):
    (tmp_path / "train.py").touch()
    python = stand_in(tmp_path, f"RANK=0; {PROGRAMS[kind]}")
    script = start("-c", SCRIPT, "0.4", "script", "--plain", "--out", "s.jaxprof", "--python", python, "train.py")
    script.until_ready("ready-0", "s.jaxprof")
    os.kill(script.process.pid, number)
    said = script.end()
    stopped = kind == "stopped"  # which takes the signal as soon as it goes on
    assert script.process.returncode == 128 + (number if stopped else signal.SIGKILL)
    what = "interrupted" if number == INTERRUPT else f"ended by {number.name}"
    (run,) = load(tmp_path / "s.jaxprof", Session).runs.values()
    assert (run.status, run.error) == ("cancelled", what + ("" if stopped else "; it did not end, and was killed")), (
        said
    )


@pytest.mark.process
def test_a_program_that_handles_that_signal_is_left_alone(start, tmp_path):
    """As its recorder says, whose part a line of the shell plays here."""
    (tmp_path / "train.py").touch()
    events = """{"type":"heartbeat","handled":[2]}\\n{"type":"warning_raised","code":"said","message":"said"}\\n"""
    says = f"""printf '{events}' >&"${{JAXPROF_PROGRAM%% *}}"; """
    python = stand_in(tmp_path, f"RANK=0; {says} trap 'touch asked' INT; touch ready-0; while :; do sleep 0.05; done")
    script = start("-c", SCRIPT, "0.5", "script", "--plain", "--out", "s.jaxprof", "--python", python, "train.py")
    script.until_ready("ready-0", "s.jaxprof")
    until(lambda: '"said"' in (tmp_path / "s.jaxprof").read_text())  # so the heartbeat before it has been read
    os.kill(script.process.pid, INTERRUPT)
    script.until_ready("asked")
    time.sleep(1.5)  # three times as long as it would have otherwise
    assert script.process.poll() is None
    os.kill(script.process.pid, TERM)
    script.end()
    (run,) = load(tmp_path / "s.jaxprof", Session).runs.values()
    assert (run.status, script.process.returncode) == ("cancelled", 128 + TERM)
