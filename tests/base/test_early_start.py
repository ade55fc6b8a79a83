"""Which programs are started before the command line is read: only those of which the same is read."""

import os
import signal
import subprocess
import sys

import pytest

from jaxprof.base.early_start import Spawned, read_words
from jaxprof.cli.commands.script import command
from jaxprof.jobs.process import _LAUNCHERS, COUNT


@pytest.mark.parametrize(
    "words",
    [
        "script train.py",
        "script --plain train.py --out mine --plain -- -n 4",
        "script --out kept.jaxprof --plain train.py a",
        "script --out=kept.jaxprof --force train.py",
    ],
)
def test_what_is_started_early_is_what_the_command_would_start(words):
    early = read_words(words.split(), {"JAXPROF_HOME": "/tmp"})
    read = command.make_context("script", words.split()[1:]).params
    asked = {name: value for name, value in read.items() if value not in (None, False, "", ())}
    assert asked.pop("format", "text") == asked.pop("form", "text") == "text"
    assert asked.keys() <= {"target", "arguments", "out", "plain", "force"}
    assert (early.path, early.arguments, early.out, early.plain) == (
        read["target"], read["arguments"], str(read["out"]) if read["out"] else None, read["plain"],
    )  # fmt: skip


@pytest.mark.parametrize(
    "words",
    ["run train.py", "script", "script --plain", "script train", "script kept.jaxprof",
     "script -m train", "script -n 4 train.py", "script --force train.py",
     "script --out", "script --out= train.py", "script --out gs://b/x train.py", "script --out a.jaxprof.d train.py",
     "script --capture-steps 3 train.py", "script --format json train.py", "script -- train.py",
     "script --out a --out b train.py", f"script --out {__file__} train.py"],
)  # fmt: skip
def test_other_command_lines_are_read_first(words):
    assert read_words(words.split(), {}) is None


def test_a_process_of_a_job_is_not_started_early():
    names = {name for launcher in _LAUNCHERS for name in (launcher.index, launcher.count, launcher.needs)}
    names |= {"TPU_WORKER_ID", "JOB_COMPLETION_INDEX", COUNT, "JAXPROF_LIMITS", "_JAXPROF_COMPLETE"}
    assert [name for name in names - {"", "LOCAL_RANK"} if read_words(["script", "train.py"], {name: "0"})] == []


@pytest.fixture
def spawned():
    def spawn(code, descriptors=()):
        children.append(Spawned([sys.executable, "-I", "-S", "-c", code], dict(os.environ), descriptors))
        return children[-1]

    children = []
    yield spawn
    for child in children:
        child.send_signal(signal.SIGKILL)
        child.wait()


@pytest.mark.process
def test_spawned_exit_codes_match_subprocess(spawned):
    ended = spawned("raise SystemExit(3)")
    assert ended.wait() == ended.wait(1) == ended.poll() == 3
    ended.send_signal(signal.SIGKILL)
    sleeping = spawned("import time; time.sleep(100)")
    assert sleeping.poll() is None
    with pytest.raises(subprocess.TimeoutExpired):
        sleeping.wait(0.01)
    sleeping.send_signal(signal.SIGTERM)
    assert sleeping.wait(10) == -signal.SIGTERM


@pytest.mark.process
def test_spawned_program_inherits_given_descriptors(spawned):
    given, other = os.pipe(), os.pipe()
    passes = "import os, sys; os.fstat({0}); os.write({0}, b'given'); os.fstat({1})".format(given[1], other[1])
    child = spawned(passes, (given[1],))
    assert child.wait() == 1, "the third is not open there"
    assert os.read(given[0], 10) == b"given"
    assert not os.get_inheritable(given[1])
    for descriptor in (*given, *other):
        os.close(descriptor)


def test_where_nobody_learns_how_a_child_ends_it_has_ended():
    child = Spawned.__new__(Spawned)
    child.pid, child.returncode = 2**22 + 1, None
    child._reap(os.WNOHANG)
    assert child.returncode == 0
