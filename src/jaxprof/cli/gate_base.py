"""What the word after `--base` means: a file, a target, a kept session or a git revision, in that order. A path or a
target that exists takes precedence over a revision of the same name. The answer always says which meaning was taken.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from jaxprof.analysis.gate import GateBase
from jaxprof.cli.target import existing, is_compiled_now, is_ready, session_at
from jaxprof.errors import JaxprofError, UsageError
from jaxprof.files import with_home
from jaxprof.runner.repository import Repository, Revision, checked_out, repository_of
from jaxprof.session.log import Library
from jaxprof.session_names import EXTENSION
from jaxprof.workloads import is_own, is_workload

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
    tried, and first if there is no `target`."""
    if not is_compiled_now(target):
        existing(target)
    if word is None:
        _check_default(target)
    elif (known := _base_by_name(word)) is not None:
        yield known
        return
    elif (problem := _no_revision(target, word)) is not None:
        part = Library().search(word)
        if part is None:
            raise problem
        yield FoundBase(GateBase(word, "session", str(part)), str(part))
        return
    name = word or _HEAD
    with checked_out(target, name) as revision:
        place, commit, dirty = str(revision.repository), revision.commit, revision.dirty
        yield FoundBase(GateBase(name, "revision", place, commit, dirty), revision.target(target), revision)


def _no_revision(target: str, word: str) -> UsageError | None:
    """Return the error for a word that is no revision either, or None if it is one."""
    tried = f"--base {word!r} is neither a path, a target nor a kept session"
    try:
        repository = _repository(target)
    except UsageError as error:
        return UsageError(tried, f"Nor is it a git revision: {error.what}.")
    if repository.commit(word) is None:
        return UsageError(f"{tried}, nor a revision of {repository.folder}", repository.lack)
    return None


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
    """Raise UsageError if HEAD cannot be the base: without the target, a repository or a commit, and if nothing has
    changed."""
    if not is_compiled_now(target):
        session_at(target)  # that there is none, or a job, comes first
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
        raise UsageError("only a function of yours has revisions to compare with")
    return repository_of(target)
