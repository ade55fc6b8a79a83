"""The closing lines of the checks: sums of what each pytest said, and a failure that is never lost. What the workflows
and the benches call is there."""

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from cli.calling import understood
from jaxprof.findings.catalogue import entries
from waiting import SLOWER

CI = Path(__file__).parents[1] / ".ci"
DRIVER = CI.parent / "bench" / "answers" / "run.py"
pytestmark = pytest.mark.skipif(not CI.is_dir(), reason="the checks are not part of a source distribution")


def loaded(path):
    """The module of a script."""
    spec = importlib.util.spec_from_file_location(f"script_{path.stem}", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # for its dataclasses
    spec.loader.exec_module(module)
    return module


QUIET = "....\n12 passed, 1 skipped in 3.50s\n"
LOUD = "SKIPPED [1] x\n\x1b[32m====== \x1b[1m30 passed\x1b[0m, 1 warning in 61.25s (0:01:01) ======\x1b[0m\n"
BAD = "FAILED x\n1 failed, 11 passed, 1 error in 2.00s\n"


@pytest.mark.parametrize(
    ("logs", "last", "code"),
    [
        ([QUIET, LOUD], "42 passed, 1 skipped, 1 warnings in 64.75s", 0),
        ([BAD, QUIET], "1 failed, 23 passed, 1 skipped, 1 errors in 5.50s", 1),
        ([QUIET, "collecting ...\nKilled\n"], "12 passed, 1 skipped, 1 errors in 3.50s", 1),
        ([QUIET, "no tests ran in 0.01s\n"], "12 passed, 1 skipped, 1 errors in 3.50s", 1),
    ],
)
def test_the_last_line_sums_up(logs, last, code, tmp_path, capsys):
    words = []
    for number, log in enumerate(logs):
        (tmp_path / str(number)).write_text(log)
        words += ["--run", f"Python 3.{number}", str(tmp_path / str(number))]
    assert loaded(CI / "closing.py").main([*words, "--also", "Python 3.9: the engine"]) == code
    *lines, sums = capsys.readouterr().out.splitlines()
    assert [line.partition(":")[0] for line in lines] == ["Python 3.0", "Python 3.1", "Python 3.9"]
    assert sums == last


@pytest.mark.process
@pytest.mark.parametrize(("uv", "oldest"), [(0, "3.11.0"), (1, "3.11.1")], ids=["uv", "no uv"])
def test_pythons_are_the_oldest_patch_and_the_newest_of_others(uv, oldest, tmp_path):
    """Ahead of what the machine has, a broken shim, and one that makes no environment without uv."""
    folder = tmp_path / "versions" / "x" / "bin"
    folder.mkdir(parents=True)
    for path, does in (
        (tmp_path / "python3", "echo 3.13.0"), (tmp_path / "python3.11", "echo 3.11.1"),
        (tmp_path / "python3.12", "exit 127"), (tmp_path / "python3.13", "echo 3.13.99"),
        (tmp_path / "python3.14", 'case "$2" in *ensurepip*) exit 1;; esac; echo 3.11.0'),
        (folder / "python3", "echo 3.11.99"), (tmp_path / "uv", f"exit {uv}"),
    ):  # fmt: skip
        path.write_text(f"#!/bin/sh\n{does}\n")
        path.chmod(0o755)
    env = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", "PYENV_ROOT": str(tmp_path)}
    words = ["bash", str(CI / "run"), "--pythons"]
    done = subprocess.run(words, env=env, capture_output=True, text=True, timeout=60 * SLOWER)
    assert done.returncode == 0, done.stderr
    found = [line for line in done.stdout.splitlines() if str(tmp_path) in line]
    assert [line.split()[0] for line in found] == [oldest, "3.13.99"]
    assert done.stdout.startswith(found[0])
    assert ("3.11.0" in done.stderr) == (uv != 0)


@pytest.mark.process
def test_condition_that_cannot_be_made_is_reported(tmp_path, monkeypatch, capsys):
    """The words before the tests decide: they fail, they are not here, or they start what follows them."""
    monkeypatch.syspath_prepend(CI)
    conditions = loaded(CI / "conditions.py")
    monkeypatch.setattr(conditions, "pythons", lambda: [sys.executable])
    asked = {
        "denied": conditions.Condition(["sh", "-c", "echo no right >&2; exit 1"]),
        "absent": conditions.Condition([str(tmp_path / "no-program")]),
    }
    monkeypatch.setattr(conditions, "CONDITIONS", asked)
    for name, reason in (("denied", "no right"), ("absent", "No such file")):
        flag, line = conditions.run(name, tmp_path / name, [])
        assert flag == "--also"
        assert line.startswith(f"{name}: not tried")
        assert reason in line
    made = conditions.Condition(["env"], {"HOME": None, "TZ": "Asia/Kolkata"})
    monkeypatch.setenv("PYTHONUNBUFFERED", "1")
    assert conditions.usable_python(made, tmp_path) == (sys.executable, "")
    _, environment = conditions.started(made, tmp_path)
    assert (environment["TZ"], {"HOME", "PYTHONUNBUFFERED"} & environment.keys()) == ("Asia/Kolkata", set())


def test_the_workflows_and_the_documented_one_call_what_is_there():
    root = CI.parent
    workflow = (root / ".github" / "workflows" / "gate.yml").read_text()
    assert ".ci/gate" in workflow
    assert os.access(CI / "gate", os.X_OK)
    assert "fetch-depth: 0" in workflow
    documented = (root / "docs" / "gate.md").read_text().partition("```yaml\n")[2].partition("```")[0]
    texts = ((CI / "gate").read_text(), documented)
    called = [line for text in texts for line in re.findall(r"(jaxprof gate .*?)>>", text.replace("\\\n", " "))]
    assert len(called) == 2
    for line in called:
        understood(line)


def test_every_bench_has_a_small_round_that_the_checks_run():
    benches = [*(CI.parent / "bench").glob("*.py"), CI.parent / "bench" / "answers" / "run.py"]
    without = {path.name for path in benches if "--smoke" not in path.read_text()}
    assert without == {"terminal.py", "case_files.py"}  # which the others use
    assert ".ci/benches" in (CI / "run").read_text()


@pytest.mark.process
def test_bench_without_a_table_fails_the_checks(tmp_path):
    broken = {"good": "print('a\\nb')", "broken": "print('a\\nb')\n1 / 0", "silent": "", "terminal": "1 / 0"}
    for folder in (".ci", "bench/answers"):
        (tmp_path / folder).mkdir(parents=True)
    shutil.copy(CI / "benches", tmp_path / ".ci")
    for name, text in {**broken, "answers/run": "print('a\\nb')"}.items():
        (tmp_path / "bench" / f"{name}.py").write_text(text)
    done = subprocess.run(
        [tmp_path / ".ci" / "benches", sys.executable], capture_output=True, text=True, timeout=50 * SLOWER
    )
    assert done.returncode != 0
    told = re.findall(r"^bench/(\S+)\.py +\d+ s  (ok|failed: 1)$", done.stdout, re.MULTILINE)
    assert dict(told) == {"good": "ok", "answers/run": "ok", "broken": "failed: 1", "silent": "failed: 1"}
    assert "ZeroDivisionError" in done.stdout
    assert "bench/silent.py printed no table" in done.stdout


def test_programs_of_the_answers_expect_known_codes():
    for program in loaded(DRIVER).programs():
        assert {*program.expected, *program.allowed} <= set(entries()), program.name
        assert program.how[0] in ("script", "run", "compare"), program.name
