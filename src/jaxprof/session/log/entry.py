"""What a listing shows of a kept session, or of a job: read from a few lines of each file. Listing folds no session."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from jaxprof.errors import FileRefusedError, system_words
from jaxprof.events import Event, Header, RunClosed, RunPlanned, SessionClosed
from jaxprof.events.base import session_state, unfinished
from jaxprof.files import open_regular
from jaxprof.session.log.outline import events_of, read_header
from jaxprof.session_names import EXTENSION

if TYPE_CHECKING:
    from jaxprof.events import ProgramStarted

_SUMMARY = ("run_closed", "run_planned", "session_closed", "process_identified")


@dataclass(frozen=True, slots=True)
class ProcessOutline:
    """One process of a job, as far as a listing looks."""

    index: int
    host: str
    closed: RunClosed | None
    """How its program ended; None while it runs, and where nobody closed its session."""
    complete: bool
    """Whether its session has an end."""
    live: bool
    problem: str
    """Why its session cannot be read."""

    @property
    def status(self) -> str:
        """As of a run, or `running`, `interrupted`, `unreadable`."""
        if self.problem:
            return "unreadable"
        if self.closed is not None:
            return self.closed.status
        return unfinished(live=self.live)


@dataclass(frozen=True, slots=True)
class JobOutline:
    """The processes of a job, as far as a listing looks."""

    processes: tuple[ProcessOutline, ...]
    count: int | None
    """How many it has, as they say; None where that is not known."""

    @property
    def hosts(self) -> list[str]:
        """Their hosts, without repeats."""
        return list(dict.fromkeys(each.host for each in self.processes if each.host))

    @property
    def missing(self) -> int:
        """Processes without a session here, as far as it is known how many there are."""
        return max(0, (self.count or 0) - len(self.processes))

    @property
    def by_status(self) -> dict[str, int]:
        """How many ended how, most first."""
        return dict(Counter(each.status for each in self.processes).most_common())


@dataclass(frozen=True, slots=True)
class Entry:
    """A kept session, or the folder of a job, as a listing shows it, read from its header and the summaries that close
    its runs."""

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
    job: JobOutline | None = None
    """The processes, of the folder of a job; None for a session."""
    reason: str = ""
    """Why the session ended, as its last event says; empty without one."""

    @property
    def name(self) -> str:
        """The file's name without its extension; of a job, the name of its folder."""
        return self.path.name.removesuffix(EXTENSION)

    @property
    def state(self) -> str:
        """`complete`, `being written`, `interrupted`, or how it ended."""
        return session_state(complete=self.complete, live=self.live, reason=self.reason)

    @property
    def running(self) -> bool:
        """Whether a run of it goes on, waits or is to come: a writer may also hold a session whose runs are over."""
        return self.live and (not self.planned or len(self.closed) < len(self.planned))

    @property
    def workloads(self) -> list[str]:
        """The workloads in it, in order, without repeats."""
        return list(dict.fromkeys(plan.spec.workload for plan in self.planned))


def read_entry(path: Path) -> Entry:
    """One file as a listing shows it: its header and the summaries of its runs. Raises FileNotFoundError."""
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
            for event in events_of(file, _SUMMARY):
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
