"""The git revision of what is measured: known for a file under git, unknown for the rest, and nobody waits for it."""

import os
import subprocess

import pytest

from cli.calling import commit_all
from jaxprof.runner.repository import git, revisions

pytestmark = pytest.mark.process

STEP = "def step(x):\n    return x\n"


@pytest.fixture
def tree(tmp_path):
    (tmp_path / "steps").mkdir()
    for name in ("one.py", "steps/two.py"):
        (tmp_path / name).write_text(STEP)
    commit_all(tmp_path, "one")
    return tmp_path


def read(*targets):
    return list(revisions((f"r{number}", target) for number, target in enumerate(targets, start=1)))


def test_files_of_a_clean_tree_and_then_of_one_with_changes(tree):
    targets = f"{tree}/one.py:step", f"{tree}/steps/two.py:step"
    head = git(tree, "rev-parse", "--short", "HEAD").answer
    assert [(one.run, one.repository, one.commit, one.dirty) for one in read(*targets)] == [
        ("r1", str(tree.resolve()), head, False),
        ("r2", str(tree.resolve()), head, False),
    ]
    (tree / "new.py").write_text(STEP)
    assert [one.dirty for one in read(*targets)] == [False, False], "a file that git does not know is no change"
    (tree / "one.py").write_text("def step(x):\n    return x + 1\n")
    assert [one.dirty for one in read(*targets)] == [True, True]


def test_what_is_under_no_git_has_no_revision(tmp_path):
    (tmp_path / "alone.py").write_text(STEP)
    assert read(f"{tmp_path}/alone.py:step", "package.module:step", "", f"{tmp_path}/gone/away.py:step") == []


@pytest.fixture
def bait(tmp_path_factory):
    """A program that leaves a mark, and what asks for that mark."""
    folder = tmp_path_factory.mktemp("bait")
    (folder / "run").write_text(f"#!/bin/sh\necho $0 >> {folder / 'mark'}\ncat\n")
    (folder / "run").chmod(0o755)
    return folder / "run", (folder / "mark").exists


def configure(tree, *pairs):
    for name, value in pairs:
        subprocess.run(["git", "-C", str(tree), "config", name, str(value)], check=True)


def test_a_repository_names_nothing_that_is_run(tree, bait):
    """Neither a monitor, nor hooks, nor filters, of the tree or of a submodule."""
    program, ran = bait
    (tree / ".gitattributes").write_text("*.py filter=own\n")
    (tree / "inside").mkdir()
    (tree / "inside" / "x.py").write_text(STEP)
    commit_all(tree / "inside", "one")
    subprocess.run(["git", "-C", str(tree), "add", "-A"], check=True, capture_output=True)
    commit_all(tree, "two")
    for each in (tree, tree / "inside"):
        configure(
            each, ("core.fsmonitor", program), ("filter.own.clean", program), ("filter.own.process", program),
            ("filter.own.required", "true"), ("core.hooksPath", program.parent), ("core.pager", program),
        )  # fmt: skip
    (tree / "inside" / ".gitattributes").write_text("*.py filter=own\n")
    for file in (tree / "one.py", tree / "inside" / "x.py"):
        file.write_text(file.read_text())  # git compares the content of what was written again
        os.utime(file, (1, 1))
    assert [one.dirty for one in read(f"{tree}/one.py:step")] == [False]
    assert not ran()
    configure(tree, ("filter.a=b.clean", program))
    assert [one.dirty for one in read(f"{tree}/one.py:step")] == [None], "the name of this filter cannot be given"
    assert not ran()


@pytest.mark.parametrize("how", ["upload", "transport"])
def test_what_a_partial_clone_lacks_is_not_fetched(tree, bait, how):
    program, ran = bait
    configure(
        tree, ("core.repositoryFormatVersion", "1"), ("extensions.partialClone", "origin"),
        ("remote.origin.promisor", "true"), ("remote.origin.uploadpack", program), ("protocol.ext.allow", "always"),
        ("remote.origin.url", f"ext::{program}" if how == "transport" else tree),
    )  # fmt: skip
    (tree / ".git" / "refs" / "heads" / "main").write_text("ab" * 20)
    assert read(f"{tree}/one.py:step") == []
    assert not ran()
