"""What the word after `--base` means: a file, a target, a baseline, a kept session or a git revision, in that order.

A path or a target that exists wins over a revision of the same name; which reading was taken is always said.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from jaxprof.analysis.gate import GateBase
from jaxprof.cli.git_revision import Revision, checked_out
from jaxprof.cli.target import is_own, is_ready, is_workload
from jaxprof.errors import JaxprofError, UsageError
from jaxprof.files import with_home
from jaxprof.runner.repository import Repository, repository_of
from jaxprof.session.log import Library
from jaxprof.session.log.baselines import Baselines
from jaxprof.session_names import EXTENSION

_HEAD = "HEAD"


@dataclass(frozen=True, slots=True)
class FoundBase:
    """The base with what compiles it."""

    about: GateBase
    target: str
    """What `find_modules` takes."""
    revision: Revision | None = None
    """Checked out, where it is one."""

    @property
    def variables(self) -> dict[str, str]:
        """What is laid over the environment of its processes."""
        return self.revision.variables() if self.revision is not None else {}

    def named(self, error: JaxprofError) -> JaxprofError:
        """The error, said of the base, with a revision's files as git writes them: `HEAD~1:train.py`."""
        what, hint = error.what, error.hint
        if self.revision is not None:
            tree = f"{self.revision.tree}{os.sep}"
            what, hint = (text.replace(tree, f"{self.about.name}:") for text in (what, hint))
        return type(error)(f"the base, {self.about.name}: {what}", hint)


@contextmanager
def found_base(target: str, word: str | None) -> Iterator[FoundBase]:
    """What `word` means as the base of `target`; a revision is checked out until the end. Without a word it is HEAD,
    where `target` is a function with changes that are not committed. Raises UsageError naming what was tried."""
    if word is None:
        with _revision(target, _HEAD, _default(target).folder) as found:
            yield found
        return
    known = _known(word)
    if known is not None:
        yield known
        return
    repository, refused = _repository(target)
    if repository is not None and repository.commit(word) is not None:
        with _revision(target, word, repository.folder) as found:
            yield found
        return
    part = Library().search(word)
    if part is None:
        raise _unknown(word, repository, refused)
    yield FoundBase(GateBase(word, "session", str(part)), str(part))


def _known(word: str) -> FoundBase | None:
    """The base that `word` names by itself: a path, a target, a baseline, or the whole name of a kept session."""
    if is_ready(word):
        path = with_home(word)
        return FoundBase(GateBase(word, "session" if path.suffix == EXTENSION else "path", str(path)), word)
    if is_workload(word) or word.endswith(".py") or (":" in word[1:] and "@{" not in word):
        return FoundBase(GateBase(word, "target", word), word)
    baseline = Baselines().search(word)
    if baseline is not None:
        return FoundBase(GateBase(word, "baseline", str(baseline)), str(baseline))
    for kept in Library().paths()[: 1 if word == "last" else None]:
        if word in ("last", kept.name, kept.name.removesuffix(EXTENSION)):
            return FoundBase(GateBase(word, "session", str(kept)), str(kept))
    return None


def _default(target: str) -> Repository:
    """The repository whose HEAD is the base. Raises UsageError where there is none, or where it says nothing."""
    example = "--base takes a revision (origin/main), a baseline, a session, or another target."
    if is_workload(target) or not is_own(target) or Path(target).suffix == EXTENSION:
        raise UsageError(f"what is {target} held against?", example)
    try:
        repository = repository_of(target)
    except UsageError as error:
        raise UsageError(f"what is {target} held against? {error.what}", example) from error
    if repository.commit(_HEAD) is None:
        raise UsageError(f"what is {target} held against? {repository.folder} has no commit yet", example)
    in_a_hook = "GIT_INDEX_FILE" in os.environ  # of `git commit --amend`, which may change the message alone
    if not repository.dirty and not in_a_hook:
        raise UsageError(
            f"{repository.folder} is as it was committed: without --base, the gate compares with {_HEAD}",
            "Name the base: --base origin/main, --base HEAD~1.",
        )
    return repository


def _repository(target: str) -> tuple[Repository | None, str]:
    """The repository of `target`, or why there is none."""
    if is_workload(target):
        return None, f"{target} is built in and has no revisions"
    if not is_own(target) or is_ready(target):
        return None, f"{target} is no function of yours"
    try:
        return repository_of(target), ""
    except UsageError as error:
        return None, error.what


@contextmanager
def _revision(target: str, word: str, repository: Path) -> Iterator[FoundBase]:
    with checked_out(target, word) as revision:
        about = GateBase(
            name=word,
            reading="revision",
            place=str(repository),
            commit=revision.commit,
            dirty=revision.dirty,
        )
        yield FoundBase(about, revision.target(target), revision)


def _unknown(word: str, repository: Repository | None, refused: str) -> UsageError:
    tried = "a path, a target, a baseline, a kept session"
    if repository is None:
        return UsageError(f"--base {word!r} is none of {tried}", f"It is no git revision either: {refused}.")
    return UsageError(f"--base {word!r} is none of {tried}, a revision of {repository.folder}", repository.lack)
