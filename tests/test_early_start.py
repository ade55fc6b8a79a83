"""Which programs are started before the command line is read: only those of which the same is read. And which process
of a job this is, as launchers tell it."""

import pytest

from golden import cases, held_cases
from jaxprof.cli.commands.script import command
from jaxprof.early_start import read_words
from jaxprof.job_process import _LAUNCHERS, COUNT, JobProcess, job_process, take_own_variables, variables_for


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
    ["run train.py", "script", "script --plain", "script -m train", "script -n 4 train.py", "script --force train.py",
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


def test_the_launcher_says_which_process_it_is():
    """A shell may have RANK for itself, and the batch script of SLURM is no process of its job."""
    read = {line: job_process(dict(word.split("=") for word in line.split())) for line in cases("job_process.txt")}
    held_cases("job_process.txt", {line: f"  {process}\n" for line, process in read.items()})


def test_our_own_variables_come_first_and_are_not_handed_on():
    variables = variables_for(1, 4, "box-1a2b", 4711)
    assert job_process(variables) == JobProcess(1, 4, "jaxprof-box-1a2b")
    assert take_own_variables(variables)
    assert not [name for name in variables if name.startswith("JAXPROF")]
    assert job_process(variables) == JobProcess(1, 4)
    assert not take_own_variables(variables)
