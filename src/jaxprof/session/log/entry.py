"""Read what a listing shows of a kept session, or of a job, from a few lines of each file. Listing folds no session."""

from __future__ import annotations

import os
import stat
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from jaxprof.base.errors import FileRefusedError, system_words
from jaxprof.base.files import open_regular
from jaxprof.base.values import frozen
from jaxprof.events import Event, Header, RunClosed, RunPlanned, SessionClosed
from jaxprof.events.base import session_state, unfinished
from jaxprof.session.files import EXTENSION, attempts_in, process_number
from jaxprof.session.log.reader import events_of, is_live, read_header

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
        return self.closed[-1].status if self.closed else unfinished(live=self.live)

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


def _process(event: Event, index: int, count: int) -> tuple[int, int]:
    """Return the index and the number of processes that `event` reports; else the arguments."""
    from jaxprof.events import ProcessIdentified  # with all events of programs, which few sessions have

    return (event.index, event.count) if isinstance(event, ProcessIdentified) else (index, count)


_END_BYTES = 1 << 16
"""Size of the end of a session that holds the lines that close it."""


def changed_seconds(path: Path) -> float:
    """Return the Unix time when a session, or one of a job, was last written. Raises OSError without one."""
    moments: list[float] = []
    for file in _files_of(path):
        with suppress(FileNotFoundError):  # deleted meanwhile
            status = file.stat()
            moments += [status.st_mtime] if stat.S_ISREG(status.st_mode) else []
    if not moments:
        raise FileNotFoundError(path)
    return max(moments)


def kept_bytes(*paths: Path) -> int:
    """Return the bytes that sessions and jobs take on disk, roll-ups included; what was deleted counts as 0."""
    total = 0
    for path in paths:
        inside = [Path(place, name) for place, _, names in os.walk(path) for name in names]  # none in a file
        for file in inside or [path]:
            with suppress(OSError):
                total += file.lstat().st_size
    return total


def is_written(path: Path) -> bool:
    """Return whether a session, or one in the folder of a job, is being written."""
    return any(map(is_live, _files_of(path)))


def read_job_entry(folder: Path) -> Entry:
    """Read a job as a listing shows it. Raises FileNotFoundError if there is no session in it."""
    changed = changed_seconds(folder)
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
        size_bytes=kept_bytes(folder),
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
    file.seek(max(body, file.seek(0, os.SEEK_END) - _END_BYTES))
    yield from events_of(file, ("run_closed", "session_closed"))


def _sessions(folder: Path) -> list[Path]:
    """Return the sessions of all processes, including those of earlier attempts."""
    with suppress(OSError), os.scandir(folder) as entries:
        return [folder / entry.name for entry in entries if process_number(entry.name) is not None and entry.is_file()]
    return []


def _files_of(path: Path) -> list[Path]:
    return _sessions(path) if path.is_dir() else [path]
