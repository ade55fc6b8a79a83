"""`jaxprof compare` of what can be run: words that do not fit, revisions, a few real sides, interrupts."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from cli.calling import Caller, Said, start
from jaxprof.cli.git_revision import checked_out
from jaxprof.errors import UsageError
from jaxprof.session import Session
from jaxprof.session.log import load

pytestmark = pytest.mark.process

SIDES = """
import jax, jax.numpy as jnp, numpy as np

def step(x):
    return {"y": jnp.tanh(x @ x), "s": x.sum()}
def same(x):
    return {"y": jnp.tanh(x @ x), "s": x.sum()}
def half(x):
    return {"y": jnp.tanh(x @ x).astype(jnp.bfloat16), "s": x.sum()}
def off(x):
    return {"y": jnp.tanh(x @ x) * 1.03, "s": x.sum()}
def broken(x):
    raise RuntimeError("not today")
def wide(x):
    return x
def bare(x):
    return {"y": jnp.tanh(x @ x), "s": x.sum()}
def step_inputs():
    return (np.full((64, 64), 0.01, np.float32),)
same_inputs = half_inputs = off_inputs = broken_inputs = step_inputs
def wide_inputs():
    return (np.zeros((8, 8), np.float32),)
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "sides.py").write_text(SIDES)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def git(folder: Path, *words: str) -> None:
    named = {f"GIT_{who}_{what}": "x@y.z" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    subprocess.run(["git", "-C", str(folder), *words], check=True, capture_output=True, env={**os.environ, **named})


@pytest.fixture(scope="module")
def committed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository of two commits."""
    folder = tmp_path_factory.mktemp("committed")
    (folder / "sides.py").write_text(SIDES)
    git(folder, "init", "-q")
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "one")
    (folder / "sides.py").write_text(SIDES.replace("jnp.tanh(x @ x)", "jnp.tanh(x @ x) * 2", 1))
    git(folder, "commit", "-qam", "two")
    return folder


@pytest.fixture
def repository(folder: Path, committed: Path) -> Path:
    """A copy of that, which is the current folder."""
    shutil.copytree(committed, folder, dirs_exist_ok=True)
    return folder


@pytest.mark.parametrize(
    ("words", "what", "hint"),
    [
        ((), "compare needs two sessions, or two that can be run", "jaxprof compare old.py:step new.py:step"),
        (("sides.py:step",), "compare needs two sides", "--git REV"),
        (("sides.py:step", "nowhere.py:step"), "nowhere.py", ""),
        (("sides.py:step", "--env-b", "7"), "cannot read the variable '7'", "--env-b XLA_FLAGS"),
        (("sides.py:step", "--git", "HEAD"), "not in a git repository", "repository of the target"),
        (("sides.py:step", "sides.py:same", "--git", "HEAD"), "--git compares one target", "Name the target once"),
        (("sides.py:step", "--python-b", "/nowhere"), "no interpreter", "--python"),
        (("selu", "selu", "--variant", "nope"), "A, selu, has no variant nope", "jit"),
        (("selu", "--set-b", "m=3"), "unknown parameter of selu 'm'", "n"),
        (("sides.py:step", "sides.py:wide"), "float32[64,64] and float32[8,8]", "--arg"),
        (("sides.py:bare", "sides.py:step"), "nothing says what they are", "bare_inputs"),
    ],
)
def test_sides_that_do_not_fit_are_a_usage_error(
    folder: Path, call: Caller, words: tuple[str, ...], what: str, hint: str
) -> None:
    said = call("ab", *words)
    assert said.code == 2
    assert what in said.err
    assert hint in said.err
    assert said.out == ""


def test_a_revision_is_checked_out_beside_the_tree_and_removed(repository: Path) -> None:
    (repository / "sides.py").write_text("changed = 1\n")
    with checked_out("sides.py:step", "HEAD~1") as revision:
        assert revision.dirty
        place = Path(revision.target("sides.py:step").rpartition(":")[0])
        assert place.read_text() == SIDES
        assert revision.variables()["PYTHONPATH"].startswith(str(place.parent))
    assert not place.exists()
    assert (repository / "sides.py").read_text() == "changed = 1\n"
    listed = subprocess.run(["git", "worktree", "list"], capture_output=True, text=True, check=True).stdout
    assert len(listed.splitlines()) == 1


@pytest.mark.parametrize("name", ["--help", "HEAD:sides.py"])
def test_a_revision_that_is_none_is_refused(repository: Path, name: str) -> None:
    with pytest.raises(UsageError, match="has no revision"), checked_out("sides.py:step", name):
        pass


def test_a_file_that_the_revision_does_not_have_is_refused(repository: Path) -> None:
    (repository / "new.py").write_text(SIDES)
    with checked_out("new.py:step", "HEAD") as revision, pytest.raises(UsageError, match=r"has no file new\.py"):
        revision.target("new.py:step")
    assert not revision.tree.exists()


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """A launch measures no longer than it takes to have numbers."""
    monkeypatch.setattr("jaxprof.runner.sides.LAUNCH_SECONDS", 0.1)


def measured(call: Caller, *words: str) -> tuple[Said, Any]:
    said = call("ab", *words, "--launches", "1", "--no-check", "--out", "s.jaxprof", "--force", "--format", "json")
    return said, said.data


def test_real_functions_are_compared_and_kept_and_one_that_fails_is_no_win(folder: Path, call: Caller) -> None:
    said, found = measured(call, "sides.py:step", "sides.py:half", "sides.py:off", "sides.py:broken")
    assert said.code == 1
    assert [side["side"] for side in found["sides"]] == ["A", "B", "C", "D"]
    half, off, broken = found["versus"]
    assert half["verdict"] == "inconclusive"
    assert "bfloat16" in half["reason"]
    assert not half["results"]["alike"]
    assert off["results"]["alike"]
    assert not off["results"]["agree"]
    assert off["results"]["relative"] == pytest.approx(0.03, rel=1e-3)
    assert (broken["verdict"], "failed" in broken["reason"]) == ("inconclusive", True)
    assert found["inputs"] == {"arrays": ["float32[64,64]"], "same_numbers": True, "seed": 0}
    assert {fact["fact"] for fact in off["facts"]} >= {"kernels", "flops", "bytes"}
    session = load(folder / "s.jaxprof", Session)
    assert [run.plan.side for run in session.runs.values()] == ["A", "B", "C", "D"]
    assert "not today" in call("show", "s.jaxprof").out


def test_a_comparison_with_a_revision_is_kept_and_asks_before_it_is_measured_again(
    repository: Path, call: Caller
) -> None:
    flags = "--xla_cpu_enable_fast_math=true"
    _, found = measured(call, "sides.py:step", "--git", "HEAD~1", "--env-b", f"XLA_FLAGS={flags}")
    row = next(row for row in found["versus"][0]["environment"] if row["name"] == "XLA_FLAGS")
    assert (row["after"], row["differs"]) == (flags, True)
    assert [side["revision"] for side in found["sides"]] == ["HEAD~1", None]
    said = call("run", "--from", "s.jaxprof")
    assert said.code == 2
    words = " ".join(said.err.split())
    assert "sides.py:step" in words
    assert f"XLA_FLAGS={flags}" in words
    assert call("run", "--from", "s.jaxprof", "--yes", "--python", sys.executable).code == 2
    listed = subprocess.run(["git", "worktree", "list"], cwd=repository, capture_output=True, text=True, check=True)
    assert len(listed.stdout.splitlines()) == 1


def test_an_interrupt_keeps_what_was_measured_and_removes_the_worktree(
    repository: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    temporary = tmp_path_factory.mktemp("temporary")
    monkeypatch.setenv("TMPDIR", str(temporary))
    process = start("ab", "sides.py:step", "--git", "HEAD~1", "--launches", "50", "--out", "s.jaxprof", cwd=repository)
    deadline = time.monotonic() + 90
    block = re.compile(r'^(?=.*"run":"r1")(?=.*"series":"run").*"block":\d', re.MULTILINE)
    while time.monotonic() < deadline and not block.search(_text(repository / "s.jaxprof")):
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "B against A: inconclusive" in out
    session = load(repository / "s.jaxprof", Session)
    assert session.runs["r1"].samples("run")
    listed = subprocess.run(["git", "worktree", "list"], cwd=repository, capture_output=True, text=True, check=True)
    assert len(listed.stdout.splitlines()) == 1
    assert list(temporary.glob("jaxprof-git-*")) == []


def _text(path: Path) -> str:
    return path.read_text() if path.exists() else ""
