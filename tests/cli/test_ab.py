"""`jaxprof compare` of what can be run: revisions, and a few real sides."""

from __future__ import annotations

import shutil
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from cli.calling import commit_all
from jaxprof.cli.git_revision import checked_out
from jaxprof.errors import UsageError
from jaxprof.session import Session
from jaxprof.session.log import load

pytestmark = pytest.mark.process


SIDES = """
import jax, jax.numpy as jnp, numpy as np

def step(x):
    return {"y": jnp.tanh(x @ x), "s": x.sum()}
def step_inputs():
    return (np.full((64, 64), 0.01, np.float32),)
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "sides.py").write_text(SIDES)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="module")
def committed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository of two commits."""
    folder = tmp_path_factory.mktemp("committed")
    (folder / "sides.py").write_text(SIDES)
    commit_all(folder, "one")
    (folder / "sides.py").write_text(SIDES.replace("jnp.tanh(x @ x)", "jnp.tanh(x @ x) * 2", 1))
    commit_all(folder, "two")
    return folder


@pytest.fixture
def repository(folder: Path, committed: Path) -> Path:
    """A copy of that, which is the current folder."""
    shutil.copytree(committed, folder, dirs_exist_ok=True)
    return folder


def test_a_revision_is_checked_out_beside_the_tree_and_removed(repository):
    (repository / "sides.py").write_text("changed = 1\n")
    with suppress(KeyboardInterrupt), checked_out("sides.py:step", "HEAD~1") as revision:
        assert revision.dirty
        place = Path(revision.target("sides.py:step").rpartition(":")[0])
        assert place.read_text() == SIDES
        assert revision.variables()["PYTHONPATH"].startswith(str(place.parent))
        raise KeyboardInterrupt
    assert not place.exists()
    assert (repository / "sides.py").read_text() == "changed = 1\n"
    listed = subprocess.run(["git", "worktree", "list"], capture_output=True, text=True, check=True).stdout
    assert len(listed.splitlines()) == 1


def test_what_git_does_not_have_is_refused(repository):
    for name in ("--help", "HEAD:sides.py"):
        with pytest.raises(UsageError, match="has no revision"), checked_out("sides.py:step", name):
            pass
    (repository / "new.py").write_text(SIDES)
    with checked_out("new.py:step", "HEAD") as revision, pytest.raises(UsageError, match=r"has no file new\.py"):
        revision.target("new.py:step")
    assert not revision.tree.exists()


def test_a_comparison_with_a_revision_is_kept_and_asks_before_it_is_measured_again(repository, call, monkeypatch):
    monkeypatch.setattr("jaxprof.runner.sides.LAUNCH_SECONDS", 0.1)  # no longer than it takes to have numbers
    flags = "--xla_cpu_enable_fast_math=true"
    words = ("--launches", "1", "--no-check", "--out", "s.jaxprof", "--format", "json")
    found = call("ab", "sides.py:step", "--git", "HEAD~1", "--env-b", f"XLA_FLAGS={flags}", *words).data
    (versus,) = found["versus"]
    assert (versus["results"]["alike"], versus["results"]["agree"]) == (True, False)
    assert versus["results"]["relative"] == pytest.approx(1, rel=1e-3)
    assert {fact["fact"] for fact in versus["facts"]} >= {"kernels", "flops", "bytes"}
    row = next(row for row in versus["environment"] if row["name"] == "XLA_FLAGS")
    assert (row["after"], row["differs"]) == (flags, True)
    assert [side["revision"] for side in found["sides"]] == ["HEAD~1", None]
    assert found["inputs"] == {"arrays": ["float32[64,64]"], "same_numbers": True, "seed": 0}
    assert [run.plan.side for run in load(repository / "s.jaxprof", Session).runs.values()] == ["A", "B"]
    said = call("run", "--from", "s.jaxprof")
    assert (said.code, f"XLA_FLAGS={flags}" in " ".join(said.err.split())) == (2, True)
    assert call("run", "--from", "s.jaxprof", "--yes", "--python", sys.executable).code == 2
    listed = subprocess.run(["git", "worktree", "list"], cwd=repository, capture_output=True, text=True, check=True)
    assert len(listed.stdout.splitlines()) == 1
