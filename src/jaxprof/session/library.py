"""The folder in which sessions are kept: list, rename, delete, prune. Listing folds no session.

Deleting a job takes its whole folder, and only what jaxprof has written there: other files belong to somebody else.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from jaxprof.base.errors import FileRefusedError, StorageError, UsageError, not_found, system_words
from jaxprof.base.files import open_regular, with_home
from jaxprof.base.units import and_more
from jaxprof.base.values import frozen
from jaxprof.events import Event, Header, RunClosed, RunPlanned, SessionClosed
from jaxprof.events.base import open_status, session_state
from jaxprof.session.files import EXTENSION, JOB_EXTENSION, attempts_in, columns_file, process_number, sessions_folder
from jaxprof.session.lines import events_of, is_live, read_header

if TYPE_CHECKING:
    from jaxprof.events import ProgramStarted


_SUMMARY = ("run_closed", "run_planned", "session_closed", "process_identified")


@frozen
class JobOutline:
    """The processes of a job, as a listing shows them."""

    processes: tuple[Entry, ...]
    """Sessions of the processes, each read at its ends alone."""
    count: int | None
    """Number of processes, as they report it; None if it is not known."""

    @property
    def hosts(self) -> list[str]:
        """Hosts of the processes, without repeats."""
        hosts = (process.header.host for process in self.processes if process.header is not None)
        return list(dict.fromkeys(filter(None, hosts)))

    @property
    def missing(self) -> int:
        """Number of processes without a session here, as far as the number of processes is known."""
        return max(0, (self.count or 0) - len(self.processes))

    @property
    def by_status(self) -> dict[str, int]:
        """Number of processes by status, the most frequent first."""
        return dict(Counter(process.status for process in self.processes).most_common())


@frozen
class Entry:
    """A kept session or job folder as a listing shows it, from its header and the summaries at its end."""

    path: Path
    size_bytes: int
    modified_seconds: float
    header: Header | None
    """Header of the session; None if the file is not a session: `problem` says why."""
    planned: tuple[RunPlanned, ...]
    closed: tuple[RunClosed, ...]
    process_index: int
    process_count: int
    """Number of processes of the job in which it was recorded; `process_index` is its own index."""
    complete: bool
    live: bool
    """Whether a process is writing it."""
    problem: str
    job: JobOutline | None = None
    """Processes of the folder of a job; None for a session."""
    reason: str = ""
    """Why the session ended, according to its last event; empty without one."""

    @property
    def name(self) -> str:
        """Name of the file without its extension; for a job, the name of its folder."""
        return self.path.name.removesuffix(EXTENSION)

    @property
    def state(self) -> str:
        """One of `complete`, `being written`, `interrupted`, or how the session ended."""
        return session_state(complete=self.complete, live=self.live, reason=self.reason)

    @property
    def status(self) -> str:
        """Status of a job's process, as of a run, or `running`, `interrupted`, `unreadable`."""
        if self.problem:
            return "unreadable"
        return self.closed[-1].status if self.closed else open_status(live=self.live)

    @property
    def running(self) -> bool:
        """Whether one of its runs goes on, waits or is to come: a writer may hold a session whose runs are over."""
        return self.live and (not self.planned or len(self.closed) < len(self.planned))

    @property
    def workloads(self) -> list[str]:
        """Names of its workloads, in order, without repeats."""
        return list(dict.fromkeys(plan.spec.workload for plan in self.planned))


def read_entry(
    path: Path, events: Callable[[BinaryIO], Iterable[Event]] = lambda file: events_of(file, _SUMMARY)
) -> Entry:
    """Read one file as a listing shows it: its header and, of the rest of the open file, these `events`, by default
    the summaries of its runs. Raises FileNotFoundError."""
    status = path.stat()
    header: Header | None = None
    planned: dict[str, RunPlanned] = {}
    closed: dict[str, RunClosed] = {}
    complete, problem, reason = False, "", ""
    index, count = 0, 1
    try:
        with open_regular(path) as file:
            header = read_header(file, path.name)
            index, count = header.process_index, header.process_count
            for event in events(file):
                if isinstance(event, RunPlanned):
                    planned[event.run] = event
                elif isinstance(event, RunClosed):
                    closed[event.run] = event
                elif isinstance(event, SessionClosed):
                    complete, reason = True, event.reason
                else:
                    from jaxprof.events import ProcessIdentified  # with all events of programs, which few sessions have

                    if isinstance(event, ProcessIdentified):
                        index, count = event.index, event.count
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
        reason=reason,
    )


def program_start(path: Path) -> ProgramStarted | None:
    """Return how the program that a session records was started; None without one, and if the file cannot be read."""
    from jaxprof.events import ProgramStarted  # with all events of programs, which few sessions have

    try:
        with open_regular(path) as file:
            started = next(events_of(file, ("program_started",)), None)
            return started if isinstance(started, ProgramStarted) else None
    except (FileRefusedError, OSError, ValueError):
        return None


def last_write_seconds(path: Path) -> float:
    """Return the Unix time when a session, or one of a job, was last written. Raises OSError without one."""
    moments: list[float] = []
    for file in _files_of(path):
        with suppress(FileNotFoundError):  # deleted meanwhile
            status = file.stat()
            moments += [status.st_mtime] if stat.S_ISREG(status.st_mode) else []
    if not moments:
        raise FileNotFoundError(path)
    return max(moments)


def bytes_on_disk(*paths: Path) -> int:
    """Return the bytes that sessions and jobs take on disk, roll-ups included; what was deleted counts as 0."""
    total = 0
    for path in paths:
        inside = [Path(folder, name) for folder, _, names in os.walk(path) for name in names]  # none in a file
        for file in inside or [path]:
            with suppress(OSError):
                total += file.lstat().st_size
    return total


def is_written(path: Path) -> bool:
    """Return whether a session, or one in the folder of a job, is being written."""
    return any(map(is_live, _files_of(path)))


def read_job_entry(folder: Path) -> Entry:
    """Read a job as a listing shows it. Raises FileNotFoundError if there is no session in it."""
    changed = last_write_seconds(folder)
    processes: list[Entry] = []
    newest = {index: path for index, _, path in attempts_in(_sessions(folder))}
    for index, path in newest.items():
        with_plan = not any(process.planned for process in processes)
        with suppress(FileNotFoundError):  # deleted meanwhile
            processes.append(replace(read_entry(path, partial(_ends_of, with_plan=with_plan)), process_index=index))
    if not processes:
        raise FileNotFoundError(folder)
    readable = [process for process in processes if not process.problem]
    counts = {process.process_count for process in processes if process.header is not None} - {0}
    return Entry(
        path=folder,
        size_bytes=bytes_on_disk(folder),
        modified_seconds=changed,
        header=next((process.header for process in processes if process.header is not None), None),
        planned=next((process.planned for process in processes if process.planned), ()) * len(readable),
        closed=tuple(process.closed[-1] for process in readable if process.closed),
        process_index=0,
        process_count=max(counts, default=0),
        complete=all(process.complete for process in processes),
        live=any(process.live for process in processes),
        problem=processes[0].problem if not readable else "",
        job=JobOutline(tuple(processes), max(counts, default=None)),
    )


def _ends_of(file: BinaryIO, *, with_plan: bool) -> Iterator[Event]:
    """Yield the events that close the session of a process, and its first plan if `with_plan`: a job has thousands."""
    body = file.tell()
    if with_plan:
        yield from islice(events_of(file, ("run_planned",)), 1)
    # The lines that close a session are at its end.
    file.seek(max(body, file.seek(0, os.SEEK_END) - (1 << 16)))
    yield from events_of(file, ("run_closed", "session_closed"))


def _sessions(folder: Path) -> list[Path]:
    """Return the sessions of all processes, including those of earlier attempts."""
    with suppress(OSError), os.scandir(folder) as entries:
        return [folder / entry.name for entry in entries if process_number(entry.name) is not None and entry.is_file()]
    return []


def _files_of(path: Path) -> list[Path]:
    return _sessions(path) if path.is_dir() else [path]


_OURS = ("rollup", "capture.json")
"""Names of files in the folder of a job besides the sessions."""


def none_kept() -> UsageError:
    """Return the error of whoever asks for the last session before there is one."""
    return UsageError("no session is kept yet", "jaxprof run NAME, or jaxprof script FILE.py, makes one.")


class Library:
    """The sessions of one folder."""

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder if folder is not None else sessions_folder()
        self._is_default = folder is None

    def new_path(self, header: Header) -> Path:
        """Return the path for a new session, named by its time and its id."""
        moment = header.created.replace(":", "-").removesuffix("Z")
        return self.folder / f"{moment}-{header.session[:4]}{EXTENSION}"

    def paths(self) -> list[Path]:
        """Return the session files, the newest first. Only regular files count, not a named pipe."""
        return _newest_first(self.folder.glob(f"*{EXTENSION}"))

    def job_folders(self) -> list[Path]:
        """Return the folders of jobs, the newest first: those in this folder, and those in the current folder, where
        `jaxprof script -n` puts them."""
        folders = [self.folder]
        with suppress(OSError):  # the current folder was deleted
            folders += [Path.cwd()] if self._is_default else []
        named: list[Path] = []
        for folder in dict.fromkeys(path.absolute() for path in folders):
            with suppress(OSError):
                named += folder.glob(f"*{JOB_EXTENSION}")
        return _newest_first(named)

    def entries(self, limit: int | None = None) -> Iterator[Entry]:
        """Yield sessions and jobs, the newest first, each read on demand."""
        for path in self._sessions_and_jobs()[:limit]:
            with suppress(FileNotFoundError):  # deleted meanwhile
                yield read_job_entry(path) if path.name.endswith(JOB_EXTENSION) else read_entry(path)

    def _sessions_and_jobs(self) -> list[Path]:
        return _newest_first((*self.paths(), *self.job_folders()))

    def find(self, name: str, *, jobs: bool = False) -> Path:
        """Return the session or job called `name`: a path, a file name, its stem, or a part of it or of its id that is
        unique; or the `last` session, which with `jobs` may be a job.

        Raises MissingFileError for a path at which there is nothing, and UsageError with similar names for a name.
        """
        session = self.search(name, jobs=jobs)
        if session is None:
            raise not_found("session", name, [path.name.removesuffix(EXTENSION) for path in self.paths()[:20]])
        return session

    def search(self, name: str, *, jobs: bool = False, parts: bool = True) -> Path | None:
        """Do the same as `find`, but return None if there is no such session; without `parts`, only a whole name
        counts. Raises UsageError if several match, and for `last` if none is kept."""
        direct = with_home(name)
        if os.path.exists(direct):  # False for what cannot be a path, where `Path.exists` may raise
            return direct
        kept = self._sessions_and_jobs()
        named = [path for path in kept if name in (path.name, *_stems(path))]
        if name == "last" and not named:
            newest = next(iter(kept if jobs else self.paths()), None)
            if newest is None:
                raise none_kept()
            return newest
        matching = named or [path for path in kept if parts and name in path.name]
        if len(matching) > 1:
            shown = ", ".join(str(path) if named else _stems(path)[0] for path in matching[:5])
            raise UsageError(
                f"{name!r} is in the name of {len(matching)} sessions", f"Use a longer part of the name: {shown}."
            )
        return matching[0] if matching else None

    def of_script(self, name: str, *, jobs: bool = False) -> Path | None:
        """Return the newest session, with `jobs` also a job, that recorded a script: the one at the path `name`, or one
        of that name, with or without `.py`; None if there is none. Raises UsageError if scripts of that name in several
        folders were recorded, but none in the current one."""
        script = with_home(name)
        by_folder: dict[Path | None, Path] = {}
        for entry in self.entries():
            programs = {plan.spec.workload for plan in entry.planned if plan.spec.how == "program"}
            if programs & {script.name, f"{script.name}.py"} and (jobs or entry.job is None):
                started = program_start(entry.path if entry.job is None else entry.job.processes[0].path)
                folder = (
                    Path(started.directory, *started.argv[:1]).parent.resolve()
                    if started and started.directory
                    else None
                )
                by_folder.setdefault(folder, entry.path)
        here = script.parent.resolve()
        if here in by_folder or len(script.parts) > 1 or os.path.exists(script):
            return by_folder.get(here)
        if len(by_folder) > 1:
            listed = ", ".join(f"{_stems(path)[0]} of {folder or '?'}" for folder, path in by_folder.items())
            what = f"{script.name} was recorded in {len(by_folder)} folders"
            raise UsageError(what, f"Name one of these, the newest of each: {listed}.")
        return next(iter(by_folder.values()), None)

    def rename(self, path: Path, name: str) -> Path:
        """Rename the session, or the folder of a job, within its folder. Raises UsageError or StorageError."""
        is_job = _is_job(path, "renamed")
        extension = JOB_EXTENSION if is_job else EXTENSION
        stem = name.strip().removesuffix(JOB_EXTENSION).removesuffix(EXTENSION)
        if not stem or stem in (".", "..") or re.search(r"[/\x00-\x1f\x7f]", stem):
            raise UsageError(f"{name!r} cannot be a session's name", "Use letters, digits, spaces, '-', '_' and '.'.")
        target = path.with_name(stem + extension)
        if target == path:
            return path
        if is_job:
            _refuse_written(path, "renamed")
        try:
            if target.exists():  # a name that is too long is an OSError here, before Python 3.12
                raise StorageError(f"{target.name} already exists", "Give another name.")
            path.rename(target)
        except OSError as error:
            raise StorageError(f"{path.name} cannot be renamed: {system_words(error)}") from error
        return target

    def delete(self, path: Path) -> None:
        """Delete the session, or the folder of a job. Raises StorageError if that fails, if it is being written, or if
        the folder holds anything else."""
        is_job = _is_job(path, "deleted")
        _refuse_written(path, "deleted")
        try:
            strange = []
            for entry in path.iterdir() if is_job else ():
                # What jaxprof wrote may be unfinished: `.ranks.json.1f2e3d4c.partial`.
                written = re.sub(r"^\.(.+?)(\.[0-9a-f]{8})?\.partial$", r"\1", entry.name)
                if written not in _OURS and process_number(written) is None:
                    strange.append(entry.name)
            if strange:
                raise StorageError(
                    f"{path} cannot be deleted: it also holds {and_more(sorted(strange), 1)}",
                    "Move files that are not part of the job elsewhere, or delete the folder with `rm -r`.",
                )
            if is_job and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)
                columns_file().unlink(missing_ok=True)  # has words of the session
        except OSError as error:
            raise StorageError(f"{path} cannot be deleted: {system_words(error)}") from error

    def prunable(
        self, *, keep: int | None = None, older_than_days: float | None = None, max_bytes: int | None = None
    ) -> list[Path]:
        """Return the sessions, and the jobs in the same folder, that a prune would delete: all but the newest `keep`,
        those older than `older_than_days`, or the oldest until the rest fits into `max_bytes`.

        Sessions that are being written are never among them.
        """
        doomed: list[Path] = []
        used = 0
        rank = -1
        for path in self._sessions_and_jobs():
            if path.parent.absolute() != self.folder.absolute():
                continue
            try:
                changed, size = last_write_seconds(path), bytes_on_disk(path)
            except FileNotFoundError:  # deleted meanwhile
                continue
            rank += 1
            used += size
            aged = older_than_days is not None and time.time() - changed > older_than_days * 86_400
            beyond = keep is not None and rank >= keep
            full = max_bytes is not None and used > max_bytes
            if (aged or beyond or full) and not is_written(path):
                doomed.append(path)
        return doomed


def _stems(path: Path) -> tuple[str, str]:
    """Return the name of a session, and that of a job, without what it ends with."""
    return path.name.removesuffix(EXTENSION), path.name.removesuffix(JOB_EXTENSION)


def _newest_first(paths: Iterable[Path]) -> list[Path]:
    """Return those of the sessions and jobs that are there, the newest first."""
    dated: list[tuple[float, Path]] = []
    for path in paths:
        with suppress(OSError):
            dated.append((last_write_seconds(path), path))
    return [path for _, path in sorted(dated, reverse=True)]


def _is_job(path: Path, done: str) -> bool:
    """Return whether `path` is the folder of a job. Raises StorageError for any other folder."""
    if not path.is_dir():
        return False
    if path.name.endswith(JOB_EXTENSION):
        return True
    what = f"{path} cannot be {done}: it is a folder, not a session"
    raise StorageError(what, "Name a session in it; `mv` and `rm -r` take folders.")


def _refuse_written(path: Path, done: str) -> None:
    if is_written(path):
        what = f"{path.name} cannot be {done}: it is being written"
        raise StorageError(what, "Wait until its runs are over, or cancel them.")
