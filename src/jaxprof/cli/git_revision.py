"""Another revision of a target, checked out beside the present one for as long as it is measured."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from jaxprof.errors import UsageError


@dataclass(frozen=True, slots=True)
class Revision:
    """A revision of the repository that holds a target."""

    repository: Path
    commit: str
    """Its abbreviated hash."""
    dirty: bool
    """Whether the present tree has changes that are not committed."""
    tree: Path
    """The folder of its files."""

    def target(self, present: str) -> str:
        """The target `present` in that revision. Raises UsageError for a file that it does not have."""
        place, colon, function = present.rpartition(":") if ":" in present else (present, "", "")
        if not _is_file(place):
            return present  # a module: found through `variables`
        inside = Path(place).expanduser().resolve().relative_to(self.repository)
        if not (self.tree / inside).is_file():
            raise UsageError(f"{self.commit} has no file {inside}", "Give the two files themselves: jaxprof ab A B.")
        return f"{self.tree / inside}{colon}{function}"

    def variables(self) -> dict[str, str]:
        """What makes Python import the revision's modules and not the present ones, also where the project is installed
        in place."""
        here = Path.cwd().resolve()
        folders = [self.tree, self.tree / "src"]
        if here.is_relative_to(self.repository):
            folders.insert(0, self.tree / here.relative_to(self.repository))
        known = [str(folder) for folder in dict.fromkeys(folders) if folder.is_dir()]
        return {"PYTHONPATH": os.pathsep.join([*known, *filter(None, [os.environ.get("PYTHONPATH", "")])])}


@contextlib.contextmanager
def checked_out(target: str, name: str) -> Iterator[Revision]:
    """The revision `name` of the repository that holds `target`, in a temporary worktree, which is removed at the end.
    Raises UsageError if there is no git, no repository, or no such revision."""
    place = target.rpartition(":")[0] or target
    start = Path(place).expanduser().resolve().parent if _is_file(place) else Path.cwd()
    if not start.is_dir():
        raise UsageError(f"there is no folder {start}", "--git takes the revision of a file that is here.")
    top = _git(start, "rev-parse", "--show-toplevel")
    if top is None:
        raise UsageError(f"{start} is not in a git repository", "--git compares a target with another revision of it.")
    repository = Path(top).resolve()
    commit = _git(repository, "rev-parse", "--verify", "--quiet", "--short", "--end-of-options", f"{name}^{{commit}}")
    if commit is None:
        raise UsageError(f"{repository} has no revision {name!r}", "git log --oneline lists revisions.")
    folder = Path(tempfile.mkdtemp(prefix="jaxprof-git-")).resolve()
    tree = folder / repository.name
    try:
        _add(repository, tree, commit)
        dirty = bool(_git(repository, "status", "--porcelain", "--untracked-files=no"))
        yield Revision(repository, commit, dirty, tree)
    finally:
        _git(repository, "worktree", "remove", "--force", str(tree))
        shutil.rmtree(folder, ignore_errors=True)
        _git(repository, "worktree", "prune")


def _add(repository: Path, tree: Path, commit: str) -> None:
    done = subprocess.run(
        ["git", "-C", str(repository), "worktree", "add", "--quiet", "--detach", str(tree), commit],
        capture_output=True,
        encoding="utf-8",
        errors="replace",
        stdin=subprocess.DEVNULL,
        check=False,
    )
    if done.returncode:
        why = (done.stderr.strip().splitlines() or ["git worktree add failed"])[-1]
        raise UsageError(f"{commit} cannot be checked out: {why}", "git worktree list shows what there is.")


def _git(folder: Path, *words: str) -> str | None:
    """What git answers; None if it refuses. Raises UsageError without git."""
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *words],
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            stdin=subprocess.DEVNULL,
            check=False,
        )
    except FileNotFoundError:
        raise UsageError("--git needs git, which is not installed", "Give the two files: jaxprof ab A B.") from None
    return done.stdout.strip() if done.returncode == 0 else None


def _is_file(place: str) -> bool:
    return place.endswith(".py") or "/" in place
