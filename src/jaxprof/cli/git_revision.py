"""Another revision of a target, checked out beside the present one while it is compiled or measured.

The word after `--base` means a file, a target, a kept session or a git revision, in that order: a path or a
target that exists takes precedence over a revision of the same name. The answer always says which meaning was taken.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jaxprof.analysis.gate import GateBase
from jaxprof.cli.target import is_own, is_ready, is_workload
from jaxprof.errors import JaxprofError, UsageError
from jaxprof.files import with_home
from jaxprof.reaper import TemporaryFolder
from jaxprof.runner.repository import Repository, git, is_file, repository_of
from jaxprof.session.log import Library
from jaxprof.session_names import EXTENSION


@dataclass(frozen=True, slots=True)
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
    """Whether the present tree has changes that are not committed."""
    tree: Path
    """Folder of the revision's files."""

    def target(self, present: str) -> str:
        """Return the target `present` in this revision. Raises UsageError if the revision lacks its file or module."""
        place, colon, function = present.rpartition(":") if ":" in present else (present, "", "")
        if not is_file(place):
            return f"{self._module(place)}{colon}{function}"
        inside = with_home(place).resolve().relative_to(self.repository)
        if not (self.tree / inside).is_file():
            raise UsageError(f"{self.commit} has no file {inside}", "Name the file of the other side itself.")
        return f"{self.tree / inside}{colon}{function}"

    def side(self, target: str, *, is_then: bool) -> dict[str, Any]:
        """Return fields of a `ComparedSide`: of the one at this revision, whose target on disk is `target`, or of the
        one on disk."""
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

    def _module(self, name: str) -> Path:
        """Return the file of the module `name`: by its name, Python would find the one in the present folder first."""
        inside = Path(*name.split("."))
        for folder in self._import_folders():
            for file in (folder / inside.with_suffix(".py"), folder / inside / "__init__.py"):
                if file.is_file():
                    return file
        raise UsageError(f"{self.commit} has no module {name}", "Name its file: path/to/file.py:function.")


def _python_path() -> list[str]:
    return [entry for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep) if entry]


@contextmanager
def checked_out(target: str, name: str) -> Iterator[Revision]:
    """Yield the revision `name` of the repository that holds `target`, in a temporary worktree, which is removed at the
    end. Raises UsageError if there is no git, no repository, or no such revision."""
    repository = repository_of(target)
    commit = repository.commit(name)
    if commit is None:
        raise UsageError(f"{repository.folder} has no revision {name!r}", repository.lack)
    temporary = TemporaryFolder("git")
    tree = temporary.path.resolve() / repository.folder.name
    try:
        added = git(repository.folder, "worktree", "add", "--quiet", "--detach", str(tree), commit)
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


_HEAD = "HEAD"


@dataclass(frozen=True, slots=True)
class FoundBase:
    """The base of a target, with what is needed to compile it."""

    about: GateBase
    target: str
    """The target that `find_modules` takes."""
    revision: Revision | None = None
    """The revision, checked out, if the base is one."""

    @property
    def variables(self) -> dict[str, str]:
        """Variables that are laid over the environment of the base's processes."""
        return self.revision.variables() if self.revision is not None else {}

    def named(self, error: JaxprofError) -> JaxprofError:
        """Return the error as one of the base, with a revision's files as git writes them: `HEAD~1:train.py`."""
        what, hint = error.what, error.hint
        if self.revision is not None:
            tree = f"{self.revision.tree}{os.sep}"
            what, hint = (text.replace(tree, f"{self.about.name}:") for text in (what, hint))
        return type(error)(f"the base, {self.about.name}: {what}", hint)


@contextmanager
def found_base(target: str, word: str | None) -> Iterator[FoundBase]:
    """Yield what `word` means as the base of `target`; a revision is checked out until the end. Without a word, the
    base is HEAD, if `target` is a function with changes that are not committed. Raises UsageError naming what was
    tried."""
    if word is None:
        _check_default(target)
        with _base_at_revision(target, _HEAD) as found:
            yield found
        return
    known = _base_by_name(word)
    if known is not None:
        yield known
        return
    repository: Repository | None = None
    why = ""
    try:
        repository = _repository(target)
    except UsageError as error:
        why = error.what
    if repository is not None and repository.commit(word) is not None:
        with _base_at_revision(target, word) as found:
            yield found
        return
    part = Library().search(word)
    if part is not None:
        yield FoundBase(GateBase(word, "session", str(part)), str(part))
        return
    tried = f"--base {word!r} is neither a path, a target nor a kept session"
    if repository is None:
        raise UsageError(tried, f"Nor is it a git revision: {why}.")
    raise UsageError(f"{tried}, nor a revision of {repository.folder}", repository.lack)


def _base_by_name(word: str) -> FoundBase | None:
    """Return the base that `word` names by itself: a path, a target, or a kept session by its whole name."""
    if is_ready(word):
        path = with_home(word)
        return FoundBase(GateBase(word, "session" if path.suffix == EXTENSION else "path", str(path)), word)
    if is_workload(word) or word.endswith(".py") or (":" in word[1:] and "@{" not in word):
        return FoundBase(GateBase(word, "target", word), word)
    for kept in Library().paths()[: 1 if word == "last" else None]:
        if word in ("last", kept.name, kept.name.removesuffix(EXTENSION)):
            return FoundBase(GateBase(word, "session", str(kept)), str(kept))
    return None


def _check_default(target: str) -> None:
    """Raise UsageError if HEAD cannot be the base: without a repository or a commit, and if nothing has changed."""
    example = "--base takes a revision (origin/main), a session, or another target."
    try:
        repository = _repository(target)
    except UsageError as error:
        raise UsageError(f"{target} has no base: {error.what}", example) from error
    if repository.commit(_HEAD) is None:
        raise UsageError(f"{target} has no base: {repository.folder} has no commit yet", example)
    in_a_hook = "GIT_INDEX_FILE" in os.environ  # of `git commit --amend`, which may change the message alone
    if not repository.is_dirty() and not in_a_hook:
        raise UsageError(
            f"{repository.folder} is as it was committed: without --base, the gate compares with {_HEAD}",
            "Name the base: --base origin/main, --base HEAD~1.",
        )


def _repository(target: str) -> Repository:
    """Return the repository that holds the function `target`. Raises UsageError."""
    if is_workload(target):
        raise UsageError(f"{target} is built in and has no revisions")
    if not is_own(target) or is_ready(target):
        raise UsageError(f"{target} is not a function of yours")
    return repository_of(target)


@contextmanager
def _base_at_revision(target: str, word: str) -> Iterator[FoundBase]:
    with checked_out(target, word) as revision:
        about = GateBase(
            name=word,
            reading="revision",
            place=str(revision.repository),
            commit=revision.commit,
            dirty=revision.dirty,
        )
        yield FoundBase(about, revision.target(target), revision)
