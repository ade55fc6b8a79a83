"""Revisions of git, for `gate` and `compare`: how a word is read that may be one, and what is checked out beside the
tree."""

import os
import shutil
import subprocess
from contextlib import suppress
from pathlib import Path

import pytest

from cli.calling import commit_all, git
from cli.compiled import session
from jaxprof.analysis.kernels import modules_of
from jaxprof.analysis.kernels.hlo_program import HloProgram
from jaxprof.analysis.target import resolve
from jaxprof.base.errors import UsageError, WorkerError
from jaxprof.cli import modules
from jaxprof.cli.commands.gate import find_base
from jaxprof.runner.repository import check_out
from jaxprof.session import Session, load

pytestmark = pytest.mark.process

OWN = """
import jax.numpy as jnp

from pack.inner import f

def step(x):
    return jnp.tanh(f(x))
def step_inputs():
    return (jnp.full(64, 0.01),)
"""
FIRST = "def f(x):\n    return x\n"


@pytest.fixture(scope="module")
def committed(tmp_path_factory):
    """A repository of two commits, in a subfolder of which the project is."""
    top = tmp_path_factory.mktemp("committed")
    project = top / "project"
    (project / "pack").mkdir(parents=True)
    (project / "own.py").write_text(OWN)
    (project / "steps").mkdir()
    (project / "steps" / "deep.py").write_text(OWN)
    (project / "pack" / "__init__.py").touch()
    (project / "pack" / "inner.py").write_text(FIRST)
    commit_all(top, "one")
    (project / "pack" / "inner.py").write_text("import jax.numpy as jnp\n\ndef f(x):\n    return jnp.sort(x * 2)\n")
    commit_all(top, "two")
    return top


@pytest.fixture
def folder(tmp_path, committed, monkeypatch):
    """The project in a copy of that, which is the current folder."""
    shutil.copytree(committed, tmp_path / "top")
    monkeypatch.chdir(tmp_path / "top" / "project")
    return tmp_path / "top" / "project"


def found(target, word):
    with find_base(resolve(target, code=True), word) as base:
        return base


def test_a_word_is_a_revision_where_nothing_else_has_the_name(folder, kept):
    base = found("own.py:step", "main")
    assert base.about.reading == "revision"
    assert base.about.dirty is False
    (folder / "main").touch()
    assert found("own.py:step", "main").about.reading == "path"
    for word in ("old.py:step", "pack.inner:f", "selu:jit"):
        assert found("own.py:step", word).about.reading == "target"
    git(folder, "tag", "0123")
    assert "0123" in kept.name
    assert found("own.py:step", "0123").about.reading == "revision"
    assert found("own.py:step", kept.stem).target.path == kept, "by its whole name"
    git(folder, "tag", "-d", "0123")
    assert found("own.py:step", "0123").target.path == kept


def test_default_base_is_head_with_uncommitted_changes(folder, monkeypatch):
    with pytest.raises(UsageError, match="is as it was committed"):
        found("own.py:step", None)
    with monkeypatch.context() as hook:
        hook.setenv("GIT_INDEX_FILE", ".git/index")
        assert found("own.py:step", None).about.name == "HEAD", "git commit --amend is not blocked"
    (folder / "own.py").write_text(OWN + "\n")
    about = found("own.py:step", None).about
    assert about.name == "HEAD"
    assert about.reading == "revision"
    assert about.dirty is True


def test_a_repository_without_the_revision_says_why(folder, tmp_path):
    git(tmp_path, "clone", "-q", "--depth", "1", f"file://{folder.parent}", "shallow")
    with pytest.raises(UsageError, match="fetch-depth: 0"):
        found(str(tmp_path / "shallow" / "project" / "own.py") + ":step", "HEAD~1")
    git(tmp_path, "init", "-q", "empty")
    (tmp_path / "empty" / "own.py").write_text(OWN)
    with pytest.raises(UsageError, match="no commit yet"):
        found(str(tmp_path / "empty" / "own.py") + ":step", "HEAD")
    with pytest.raises(UsageError, match="not in a git repository"):
        found(str(tmp_path / "own.py") + ":step", "HEAD")


def test_error_of_the_base_names_the_revision(folder):
    with find_base(resolve("own.py:step", code=True), "HEAD~1") as base:
        said = base.as_base_error(WorkerError(f"{base.target.word} failed", f"see {base.target.word}"))
    assert said.what == "the base, HEAD~1: HEAD~1:project/own.py:step failed"
    assert said.hint == "see HEAD~1:project/own.py:step"


def test_modules_of_the_environments_path_are_the_revisions(folder, monkeypatch):
    shutil.move(folder / "pack", folder / "lib")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(folder / "pack"), "/elsewhere"]))
    with find_base(resolve("own.py:step", code=True), "HEAD") as base:
        entries = base.variables["PYTHONPATH"].split(os.pathsep)
        assert entries[0] == str(base.revision.tree / "project")
        assert str(base.revision.tree / "project" / "pack") in entries
        assert entries[-1] == "/elsewhere"


@pytest.mark.parametrize(("failing", "named"), [("HEAD", True), ("own", False)])
def test_a_side_that_does_not_compile_is_exit_code_1(folder, call, monkeypatch, failing, named):
    (folder / "own.py").write_text(OWN + "\n")

    imports = set()

    def find(target, *_, variables=None, **__):
        of_base = "jaxprof-git-" in target.word
        imports.add((of_base, "jaxprof-git-" in str(variables)))
        if of_base is (failing == "HEAD"):
            raise WorkerError(f"{target.word}: not today")
        return [HloProgram(stages, found) for stages in modules_of(found)]

    found = session()
    monkeypatch.setattr(modules, "find_modules", find)
    said = call("gate", "own.py:step", "--arg", "f32[64]", "--fail-on", "kernels")
    assert said.code == 1
    assert "not today" in said.err
    assert ("the base, HEAD: " in said.err) == named
    assert (True, True) in imports <= {(True, True), (False, False)}, "the base imports the revision's modules"


def test_a_revision_is_checked_out_beside_the_tree_and_removed(folder):
    (folder / "own.py").write_text("changed = 1\n")
    with suppress(KeyboardInterrupt), check_out("own.py:step", "HEAD~1") as revision:
        assert revision.dirty
        place = Path(revision.target("own.py:step").rpartition(":")[0])
        assert (place.read_text(), (place.parent / "pack" / "inner.py").read_text()) == (OWN, FIRST)
        assert revision.variables()["PYTHONPATH"].startswith(str(place.parent))
        raise KeyboardInterrupt
    assert not place.exists()
    assert (folder / "own.py").read_text() == "changed = 1\n"
    assert len(worktrees(folder)) == 1


def test_what_git_does_not_have_is_refused(folder):
    for name in ("--help", "HEAD:own.py"):
        with pytest.raises(UsageError, match="has no revision"), check_out("own.py:step", name):
            pass
    (folder / "new.py").write_text(OWN)
    with (
        check_out("new.py:step", "HEAD") as revision,
        pytest.raises(UsageError, match=r"has no file project/new\.py"),
    ):
        revision.target("new.py:step")
    assert not revision.tree.exists()


def test_kept_comparison_has_its_command(folder, call, monkeypatch):
    monkeypatch.setattr("jaxprof.runner.sides.LAUNCH_SECONDS", 0.1)  # no longer than it takes to have numbers
    flags = "--xla_cpu_enable_fast_math=true"
    words = ("--launches", "1", "--budget", "0.5", "--out", "s.jaxprof", "--format", "json")
    # The file's own folder does not have the package: Python would find that of the present folder.
    found = call("compare", "steps.deep:step", "--git", "HEAD~1", "--env-b", f"XLA_FLAGS={flags}", *words).data
    (versus,) = found["versus"]
    assert versus["results"]["alike"] is True
    assert versus["results"]["agree"] is False
    assert versus["results"]["relative"] == pytest.approx(1, rel=1e-3)
    facts = {fact["fact"]: (fact["before"], fact["after"]) for fact in versus["facts"]}
    assert facts.keys() >= {"kernels", "flops", "accessed_bytes"}
    assert facts["kernels"][0] < facts["kernels"][1], "the revision's own package was compiled, which sorts nothing"
    row = next(row for row in versus["environment"] if row["name"] == "XLA_FLAGS")
    assert row["after"] == flags
    assert row["differs"] is True
    assert [side["revision_name"] for side in found["sides"]] == ["HEAD~1", None]
    assert found["inputs"] == {"arrays": ["float32[64]"], "same_numbers": True, "seed": 0}
    assert [run.plan.side for run in load(folder / "s.jaxprof", Session).runs.values()] == ["A", "B"]
    said = call("run", "--from", "s.jaxprof")
    assert said.code == 2
    assert "is side A of a comparison" in " ".join(said.err.split())
    assert len(worktrees(folder)) == 1


def worktrees(folder):
    words = ["git", "-C", str(folder), "worktree", "list"]
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout.splitlines()
