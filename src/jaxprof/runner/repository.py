"""Ask git about the repository that holds the measured code, and check out another revision beside the present one
while it is compiled or measured."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from jaxprof.base.errors import UsageError
from jaxprof.base.files import with_home
from jaxprof.base.reaper import TemporaryFolder
from jaxprof.base.values import frozen
from jaxprof.events import RevisionRead

PATIENCE_SECONDS = 2.0
"""How long a run waits for git to report whether there are changes."""
_OF_A_HOOK = (
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_COMMON_DIR",
    "GIT_PREFIX",
    "GIT_NAMESPACE",
)
"""Variables that git sets for its hooks, where they would name the hook's own index for every command (`git rev-parse
--local-env-vars`)."""

_RUNS_NOTHING = ("-c", f"core.hooksPath={os.devnull}", "-c", "core.fsmonitor=false")
"""Options that disable the programs a repository's own configuration could name, whatever git is asked."""
_FETCHES_NOTHING = {"GIT_ALLOW_PROTOCOL": "none", "GIT_NO_LAZY_FETCH": "1"}
"""Variables for questions: git would fetch an object that a partial clone lacks, with a command that its configuration
names (`ext::`, `uploadpack`, `core.sshCommand`)."""
_PLAIN_NAME = re.compile(r"[\w./-]+", re.ASCII)


@frozen
class Repository:
    """The repository that holds a target."""

    folder: Path

    def commit(self, name: str) -> str | None:
        """Return the abbreviated hash of the commit that `name` means; None if it means none."""
        return git(
            self.folder, "rev-parse", "--verify", "--quiet", "--short", "--end-of-options", f"{name}^{{commit}}"
        ).answer

    def is_dirty(self, seconds: float | None = None) -> bool | None:
        """Return whether tracked files have changes that are not committed; None if git fails or takes longer than
        `seconds`, as in a large tree on a slow disk. Filters that the repository's own configuration names are
        disabled, and submodules, which have one of their own, are not entered."""
        off: list[str] = []
        asked = git(self.folder, "config", "--show-scope", "--name-only", "-z", "--get-regexp", r"^filter\..*\.")
        words = (asked.answer or "").split("\0")
        for scope, name in zip(words[::2], words[1::2], strict=False):
            if scope in ("local", "worktree"):  # git would pass a file through such a filter to see if it has changed
                if not _PLAIN_NAME.fullmatch(name):
                    return None  # `-c` reads another name
                off += ["-c", f"{name}={'false' if name.endswith('.required') else ''}"]
        status = git(
            self.folder, *off, "status", "--porcelain", "--untracked-files=no", "--ignore-submodules=dirty",
            seconds=seconds,
        ).answer  # fmt: skip
        return None if status is None else bool(status)

    @property
    def lack(self) -> str:
        """Why a revision may be missing here, as a hint."""
        if git(self.folder, "rev-list", "-n", "1", "--all").answer in (None, ""):
            return "It has no commit yet."
        if git(self.folder, "rev-parse", "--is-shallow-repository").answer == "true":
            return "It is a shallow clone: git fetch --unshallow gets the rest; in GitHub Actions, fetch-depth: 0 does."
        return "git log --oneline lists revisions, git branch --all the branches."


def repository_of(target: str) -> Repository:
    """Return the repository that holds `target`: one of its files, or a module of the present folder. Raises UsageError
    if there is no git, no such folder, or no repository, with git's own words if it refuses one."""
    location = target.rpartition(":")[0] or target
    start = with_home(location).resolve().parent if is_file(location) else Path.cwd()
    if not start.is_dir():
        raise UsageError(f"there is no folder {start}", "A revision needs the target's file on this machine.")
    top = git(start, "rev-parse", "--show-toplevel")
    if top.answer is None:
        if "not a git repository" in top.error:
            raise UsageError(
                f"{start} is not in a git repository", "A revision is one of the repository of the target."
            )
        raise UsageError(f"git does not read {start}: {top.error}", top.hint)
    return Repository(Path(top.answer).resolve())


def revisions(targets: Iterable[tuple[str, str]]) -> Iterator[RevisionRead]:
    """Yield, for runs given by id and target, the revision of the file that each measures; none for modules, built-in
    workloads, and files in no repository. Asks git once for each folder."""
    known: dict[Path, RevisionRead | None] = {}
    for run, target in targets:
        location = target.rpartition(":")[0]
        if not is_file(location):
            continue
        folder = Path(location).parent
        if folder not in known:
            known[folder] = None
            with suppress(UsageError):
                repository = repository_of(target)
                if commit := repository.commit("HEAD"):
                    dirty = repository.is_dirty(PATIENCE_SECONDS)
                    known[folder] = RevisionRead(repository=str(repository.folder), commit=commit, dirty=dirty)
        read = known[folder]
        if read is not None:
            yield replace(read, run=run)


def is_file(location: str) -> bool:
    """Return whether the first part of a target names a file, and not a module or a workload."""
    return location.endswith(".py") or "/" in location


@frozen
class Answer:
    """The result of a git command."""

    answer: str | None
    """Standard output; None if git failed."""
    error: str = ""
    hint: str = ""


def git(
    folder: Path, *words: str, seconds: float | None = None, variables: Mapping[str, str] = _FETCHES_NOTHING
) -> Answer:
    """Ask git about the repository at `folder`, ignoring the variables of a hook and running none; an answer that takes
    longer than `seconds` counts as failed. Raises UsageError without git."""
    inherited = {name: value for name, value in os.environ.items() if name not in _OF_A_HOOK}
    try:
        done = subprocess.run(
            ["git", "--no-optional-locks", *_RUNS_NOTHING, "-C", str(folder), *words],
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            stdin=subprocess.DEVNULL,
            check=False,
            env={**inherited, **variables, "LC_ALL": "C"},
            timeout=seconds,
        )
    except FileNotFoundError:
        raise UsageError("a revision needs git, which is not installed", "Name the two files themselves.") from None
    except subprocess.TimeoutExpired:
        return Answer(None, f"git {words[0]} took longer than {seconds} s")
    if done.returncode == 0:
        return Answer(done.stdout.strip())
    lines = [line.strip() for line in done.stderr.splitlines() if line.strip()]
    if not lines:
        return Answer(None, f"git {words[0]} failed")
    return Answer(None, lines[0].removeprefix("fatal: "), " ".join(lines[1:]))


@frozen
class Revision:
    """A revision of the repository that holds a target."""

    repository: Path
    name: str
    """Name of the revision as the user gave it: `HEAD~1`."""
    commit: str
    """Abbreviated hash of the revision's commit."""
    head: str
    """Abbreviated hash of the present tree's commit."""
    dirty: bool
    tree: Path

    def target(self, present: str) -> str:
        """Return the target `present` in this revision. Raises UsageError if the revision lacks its file or module."""
        location, colon, function = present.rpartition(":") if ":" in present else (present, "", "")
        if not is_file(location):
            # By its name, Python would find the module in the present folder first.
            module = Path(*location.split("."))
            for folder in self._import_folders():
                for file in (folder / module.with_suffix(".py"), folder / module / "__init__.py"):
                    if file.is_file():
                        return f"{file}{colon}{function}"
            raise UsageError(f"{self.commit} has no module {location}", "Name its file: path/to/file.py:function.")
        inside = with_home(location).resolve().relative_to(self.repository)
        if not (self.tree / inside).is_file():
            raise UsageError(f"{self.commit} has no file {inside}", "Name the file of the other side itself.")
        return f"{self.tree / inside}{colon}{function}"

    def side(self, target: str, *, is_then: bool) -> dict[str, Any]:
        """Return fields of a `ComparedSide`: of the one at this revision, or of `target` on disk."""
        repository = str(self.repository)
        if not is_then:
            return {"tree": {"commit": self.head, "repository": repository, "dirty": self.dirty}}
        tree = {"revision": self.name, "commit": self.commit, "repository": repository, "dirty": False}
        return {"tree": tree, "stays_at": target, "variables": self.variables()}

    def variables(self) -> dict[str, str]:
        """Return the variables that make Python import the revision's modules and not the present ones, also if the
        project is installed in place."""
        return {"PYTHONPATH": os.pathsep.join([*map(str, self._import_folders()), *_python_path()])}

    def _import_folders(self) -> list[Path]:
        """Return the folders that the revision's modules are imported from: those of the present modules, moved."""
        present = [Path.cwd(), Path.cwd() / "src", self.repository, self.repository / "src"]
        inside = [folder.resolve() for folder in (*present, *map(Path, _python_path()))]
        moved = [
            self.tree / folder.relative_to(self.repository)
            for folder in inside
            if folder.is_relative_to(self.repository)
        ]
        return [folder for folder in dict.fromkeys(moved) if folder.is_dir()]


def _python_path() -> list[str]:
    return [entry for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep) if entry]


@contextmanager
def check_out(target: str, name: str) -> Iterator[Revision]:
    """Yield the revision `name` of the repository that holds `target`, in a temporary worktree, which is removed at the
    end. Raises UsageError if there is no git, no repository, or no such revision."""
    repository = repository_of(target)
    commit = repository.commit(name)
    if commit is None:
        raise UsageError(f"{repository.folder} has no revision {name!r}", repository.lack)
    temporary = TemporaryFolder("git")
    tree = temporary.path.resolve() / repository.folder.name
    try:
        # The revision's code is about to run: its checkout may fetch, and pass through filters.
        added = git(repository.folder, "worktree", "add", "--quiet", "--detach", str(tree), commit, variables={})
        if added.answer is None:
            raise UsageError(f"{commit} cannot be checked out: {added.error}", "git worktree list shows what there is.")
        yield Revision(
            repository=repository.folder,
            name=name,
            commit=commit,
            head=repository.commit("HEAD") or "",
            dirty=bool(repository.is_dirty()),
            tree=tree,
        )
    finally:
        git(repository.folder, "worktree", "remove", "--force", str(tree))
        temporary.close()
        git(repository.folder, "worktree", "prune")
