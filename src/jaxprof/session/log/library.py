"""The folder in which sessions are kept: list, rename, copy, delete, prune. Listing folds no session."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import stat
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from jaxprof.errors import FileRefusedError, StorageError, UsageError, not_found, system_words
from jaxprof.events import Event, Header, RunClosed, RunPlanned, SessionClosed
from jaxprof.files import open_regular, taking_place, with_home
from jaxprof.session.log.outline import events_of, read_header
from jaxprof.session.log.state import forget_derived, state_folder, url_of
from jaxprof.session_names import EXTENSION

if TYPE_CHECKING:
    from jaxprof.events import ProgramStarted

_SUMMARY = ("run_closed", "run_planned", "session_closed", "process_identified")


@dataclass(frozen=True, slots=True)
class Entry:
    """A kept session as a listing shows it, read from its header and the summaries that close its runs."""

    path: Path
    size_bytes: int
    modified_seconds: float
    header: Header | None
    """None if the file is not a session; `problem` says why."""
    planned: tuple[RunPlanned, ...]
    closed: tuple[RunClosed, ...]
    process_index: int
    process_count: int
    """Which process of a job it was recorded in."""
    complete: bool
    live: bool
    """Whether a process is writing it."""
    problem: str

    @property
    def name(self) -> str:
        """The file's name without its extension."""
        return self.path.name.removesuffix(EXTENSION)

    @property
    def running(self) -> bool:
        """Whether a run of it goes on, waits or is to come: a writer may also hold a session whose runs are over."""
        return self.live and (not self.planned or len(self.closed) < len(self.planned))

    @property
    def workloads(self) -> list[str]:
        """The workloads in it, in order, without repeats."""
        return list(dict.fromkeys(plan.spec.workload for plan in self.planned))


class Library:
    """The sessions of one folder."""

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder if folder is not None else state_folder() / "sessions"

    def new_path(self, header: Header) -> Path:
        """Where a new session goes: its time and its id make the name."""
        moment = header.created.replace(":", "-").removesuffix("Z")
        return self.folder / f"{moment}-{header.session[:4]}{EXTENSION}"

    def paths(self) -> list[Path]:
        """The session files, the newest first. What is no regular file, such as a named pipe, is none."""
        dated: list[tuple[float, Path]] = []
        for path in self.folder.glob(f"*{EXTENSION}"):
            with contextlib.suppress(OSError):  # deleted meanwhile
                status = path.stat()
                if stat.S_ISREG(status.st_mode):
                    dated.append((status.st_mtime, path))
        return [path for _, path in sorted(dated, reverse=True)]

    def entries(self, limit: int | None = None) -> Iterator[Entry]:
        """The sessions, newest first, each read on demand."""
        for path in self.paths()[:limit]:
            with contextlib.suppress(FileNotFoundError):  # deleted meanwhile
                yield read_entry(path)

    def find(self, name: str) -> Path:
        """The session called `name`: a path, a file name, its stem, a part of it or of its id that only one has.

        Raises MissingFileError for a path at which there is nothing, and UsageError with similar names for a name.
        """
        session = self.search(name)
        if session is None:
            raise not_found("session", name, [path.name.removesuffix(EXTENSION) for path in self.paths()[:20]])
        return session

    def search(self, name: str) -> Path | None:
        """As `find`, but None if there is no such session. Raises UsageError if several sessions match."""
        direct = with_home(name)
        if os.path.exists(direct):  # False for what cannot be a path, where `Path.exists` may raise
            return direct
        kept = self.paths()
        for path in kept:
            if name in (path.name, path.name.removesuffix(EXTENSION)):
                return path
        if name == "last" and kept:
            return kept[0]
        matching = [path for path in kept if name in path.name]
        if len(matching) == 1:
            return matching[0]
        if matching:
            shown = ", ".join(path.name.removesuffix(EXTENSION) for path in matching[:5])
            raise UsageError(f"{name!r} is in the name of {len(matching)} sessions", f"Say more of it: {shown}.")
        return None

    def name_of(self, path: Path) -> str:
        """What a later command can call the session at `path`: `last` will be another one by then."""
        kept = path.parent.absolute() == self.folder.absolute()
        return path.name.removesuffix(EXTENSION) if kept else url_of(path) or str(path)

    def size_bytes(self) -> int:
        """The size of all sessions on disk, in bytes."""
        return total_bytes(self.paths())

    def rename(self, path: Path, name: str) -> Path:
        """Rename the session within its folder. Raises UsageError or StorageError."""
        _refuse_folder(path, "renamed")
        stem = name.strip().removesuffix(EXTENSION)
        if not stem or stem in (".", "..") or re.search(r"[/\x00-\x1f\x7f]", stem):
            raise UsageError(f"{name!r} cannot be a session's name", "Use letters, digits, spaces, '-', '_' and '.'.")
        target = path.with_name(stem + EXTENSION)
        if target == path:
            return path
        forget_derived(path)
        return _moved(path, target)

    def copy(self, path: Path, target: Path, *, replace: bool = False) -> Path:
        """Copy the session ("save as"), into a folder under its own name. Raises StorageError if the target exists."""
        target = with_home(target)
        try:
            if target.is_dir():
                target = target / path.name
            if target.exists() and not replace:
                raise StorageError(f"{target} already exists", "Give another name.")
            target.parent.mkdir(parents=True, exist_ok=True)
            with taking_place(target) as fresh:
                shutil.copyfile(path, fresh)
                fresh.chmod(0o600)
        except OSError as error:
            raise StorageError(f"the session cannot be copied to {target}: {system_words(error)}") from error
        return target

    def delete(self, path: Path) -> None:
        """Delete the session. Raises StorageError if that fails or the session is being written."""
        _refuse_folder(path, "deleted")
        if is_live(path):
            raise StorageError(f"{path.name} is being written now", "Wait until its runs are over, or cancel them.")
        try:
            forget_derived(path)
            path.unlink(missing_ok=True)
        except OSError as error:
            raise StorageError(f"{path} cannot be deleted: {system_words(error)}") from error

    def prunable(
        self, *, keep: int | None = None, older_than_days: float | None = None, max_bytes: int | None = None
    ) -> list[Path]:
        """The sessions that a prune would delete: all but the newest `keep`, those older than that, or the oldest until
        the rest fits.

        Sessions that are being written are never among them.
        """
        doomed: list[Path] = []
        used = 0
        rank = -1
        for path in self.paths():
            try:
                status = path.stat()
            except FileNotFoundError:  # deleted meanwhile
                continue
            rank += 1
            used += status.st_size
            aged = older_than_days is not None and time.time() - status.st_mtime > older_than_days * 86_400
            beyond = keep is not None and rank >= keep
            full = max_bytes is not None and used > max_bytes
            if (aged or beyond or full) and not is_live(path):
                doomed.append(path)
        return doomed


def total_bytes(paths: Iterable[Path]) -> int:
    """The size of these files on disk; those that were deleted meanwhile have none."""
    total = 0
    for path in paths:
        with contextlib.suppress(OSError):
            total += path.stat().st_size
    return total


def _refuse_folder(path: Path, done: str) -> None:
    if path.is_dir():
        what = f"{path} cannot be {done}: it is a folder, not a session"
        raise StorageError(what, "Name a session in it; `mv` and `rm -r` take folders.")


def read_entry(path: Path) -> Entry:
    """One file as a listing shows it: its header and the summaries of its runs. Raises FileNotFoundError."""
    status = path.stat()
    header: Header | None = None
    planned: dict[str, RunPlanned] = {}
    closed: dict[str, RunClosed] = {}
    complete, problem = False, ""
    index, count = 0, 1
    try:
        with open_regular(path) as file:
            header = read_header(file, path.name)
            index, count = header.process_index, header.process_count
            for event in events_of(file, _SUMMARY):
                if isinstance(event, RunPlanned):
                    planned[event.run] = event
                elif isinstance(event, RunClosed):
                    closed[event.run] = event
                elif isinstance(event, SessionClosed):
                    complete = True
                else:
                    index, count = _process(event, index, count)
    except FileRefusedError as error:
        problem = error.what
    except OSError as error:
        problem = f"cannot be read: {system_words(error)}"
    return Entry(
        path=path,
        size_bytes=status.st_size,
        modified_seconds=status.st_mtime,
        header=header,
        planned=tuple(planned.values()),
        closed=tuple(closed.values()),
        process_index=index,
        process_count=count,
        complete=complete,
        live=not complete and is_live(path),
        problem=problem,
    )


def program_start(path: Path) -> ProgramStarted | None:
    """How the program that a session records was started; None without one, and for a file that cannot be read."""
    from jaxprof.events import ProgramStarted  # with all events of programs, which few sessions have

    try:
        with open_regular(path) as file:
            found = next(events_of(file, ("program_started",)), None)
            return found if isinstance(found, ProgramStarted) else None
    except (FileRefusedError, OSError, ValueError):
        return None


def _process(event: Event, index: int, count: int) -> tuple[int, int]:
    """Which process of how many the session was recorded in, if `event` says it; else as before."""
    from jaxprof.events import ProcessIdentified  # with all events of programs, which few sessions have

    return (event.index, event.count) if isinstance(event, ProcessIdentified) else (index, count)


def is_live(path: Path) -> bool:
    """Whether a writer holds the file's lock now. On Windows, where sessions are not recorded, nobody ever does."""
    try:
        import fcntl
    except ImportError:
        return False
    try:
        with open_regular(path) as file:
            fcntl.flock(file.fileno(), fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def _moved(path: Path, target: Path) -> Path:
    try:
        if target.exists():  # a name that is too long is an OSError here, before Python 3.12
            raise StorageError(f"{target.name} already exists", "Give another name.")
        path.rename(target)
    except OSError as error:
        raise StorageError(f"{path.name} cannot be renamed: {system_words(error)}") from error
    return target
