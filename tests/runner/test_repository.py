"""The git revision of what is measured: known for a file under git, unknown for the rest, and nobody waits for it."""

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


def test_a_repository_names_nothing_that_is_run(tree):
    (tree / "monitor").write_text(f"#!/bin/sh\ntouch {tree / 'ran'}\n")
    (tree / "monitor").chmod(0o755)
    subprocess.run(["git", "-C", str(tree), "config", "core.fsmonitor", str(tree / "monitor")], check=True)
    assert [one.dirty for one in read(f"{tree}/one.py:step")] == [False]
    assert not (tree / "ran").exists()
