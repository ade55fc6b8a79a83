"""Another revision of a target, checked out beside the present one for as long as it is compiled or measured."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from jaxprof.errors import UsageError
from jaxprof.files import with_home
from jaxprof.reaper import TemporaryFolder
from jaxprof.runner.from_file import Ask
from jaxprof.runner.repository import git, is_file, repository_of
from jaxprof.runner.rerun import SidesAgain
from jaxprof.runner.sides import SideTree


@dataclass(frozen=True, slots=True)
class Revision:
    """A revision of the repository that holds a target."""

    repository: Path
    name: str
    """As it was asked for: `HEAD~1`."""
    commit: str
    """Its abbreviated hash."""
    head: str
    """That of the present tree's commit."""
    dirty: bool
    """Whether the present tree has changes that are not committed."""
    tree: Path
    """The folder of its files."""

    def target(self, present: str) -> str:
        """The target `present` in that revision. Raises UsageError for a file or module that it does not have."""
        place, colon, function = present.rpartition(":") if ":" in present else (present, "", "")
        if not is_file(place):
            return f"{self._module(place)}{colon}{function}"
        inside = with_home(place).resolve().relative_to(self.repository)
        if not (self.tree / inside).is_file():
            raise UsageError(f"{self.commit} has no file {inside}", "Name the file of the other side itself.")
        return f"{self.tree / inside}{colon}{function}"

    def then(self, present: str) -> SideTree:
        """What a side of this revision keeps of it; `present` is its target in the present tree."""
        return SideTree(
            revision=self.name,
            commit=self.commit,
            repository=str(self.repository),
            dirty=False,
            stays_at=present,
            variables=self.variables(),
        )

    def now(self) -> SideTree:
        """The same of a side on disk."""
        return SideTree(commit=self.head, repository=str(self.repository), dirty=self.dirty)

    def variables(self) -> dict[str, str]:
        """What makes Python import the revision's modules and not the present ones, also where the project is installed
        in place."""
        given = [entry for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep) if entry]
        return {"PYTHONPATH": os.pathsep.join([*map(str, self._import_folders()), *given])}

    def _import_folders(self) -> list[Path]:
        """Where the revision's modules are imported from: the folders of the present ones."""
        present = [Path.cwd(), Path.cwd() / "src", self.repository, self.repository / "src"]
        present += [Path(entry) for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep) if entry]
        inside = [folder.resolve() for folder in present]
        moved = [
            self.tree / folder.relative_to(self.repository)
            for folder in inside
            if folder.is_relative_to(self.repository)
        ]
        return [folder for folder in dict.fromkeys(moved) if folder.is_dir()]

    def _module(self, name: str) -> Path:
        """The file of the module `name`: by its name, Python would find the one in the present folder first."""
        inside = Path(*name.split("."))
        for folder in self._import_folders():
            for file in (folder / inside.with_suffix(".py"), folder / inside / "__init__.py"):
                if file.is_file():
                    return file
        raise UsageError(f"{self.commit} has no module {name}", "Name its file: path/to/file.py:function.")


@contextlib.contextmanager
def checked_out(target: str, name: str) -> Iterator[Revision]:
    """The revision `name` of the repository that holds `target`, in a temporary worktree, which is removed at the end.
    Raises UsageError if there is no git, no repository, or no such revision."""
    repository = repository_of(target)
    commit = repository.commit(name)
    if commit is None:
        raise UsageError(f"{repository.folder} has no revision {name!r}", repository.lack)
    made = TemporaryFolder("git")
    tree = made.path.resolve() / repository.folder.name
    try:
        added = git(repository.folder, "worktree", "add", "--quiet", "--detach", str(tree), commit)
        if added.answer is None:
            raise UsageError(f"{commit} cannot be checked out: {added.error}", "git worktree list shows what there is.")
        yield Revision(
            repository=repository.folder,
            name=name,
            commit=commit,
            head=repository.commit("HEAD") or "",
            dirty=repository.dirty,
            tree=tree,
        )
    finally:
        git(repository.folder, "worktree", "remove", "--force", str(tree))
        made.close()
        git(repository.folder, "worktree", "prune")


@contextlib.contextmanager
def sides_again(ask: Ask) -> Iterator[SidesAgain]:
    """What the sides of a kept comparison need to be measured again: a folder for their results, and git revisions,
    which are removed at the end."""
    with contextlib.ExitStack() as stack, TemporaryFolder("ab") as folder:

        def check_out(target: str, commit: str) -> tuple[str, SideTree]:
            revision = stack.enter_context(checked_out(target, commit))
            return revision.target(target), revision.then(target)

        def present(target: str) -> SideTree:
            repository = repository_of(target)
            commit = repository.commit("HEAD") or ""
            return SideTree(commit=commit, repository=str(repository.folder), dirty=repository.dirty)

        yield SidesAgain(ask=ask, folder=folder, check_out=check_out, present=present)
