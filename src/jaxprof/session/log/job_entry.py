"""The folder of a job as one line of a listing: of each session its first line and its end, whatever lies between.

Deleting takes the whole folder, and only what jaxprof has written there: other files are somebody's.
"""

from __future__ import annotations

import os
import re
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Final

from jaxprof.errors import FileRefusedError, StorageError, system_words
from jaxprof.events import Header, RunClosed, RunPlanned, SessionClosed
from jaxprof.files import open_regular, with_home
from jaxprof.session.log.entry import Entry, JobOutline, ProcessOutline, is_live
from jaxprof.session.log.outline import events_of, read_header
from jaxprof.session.log.state import forget_derived
from jaxprof.session_names import JOB_EXTENSION, PROCESS_NAME, process_number

_END_BYTES: Final = 1 << 16
"""Of a session, in which the lines are that close it."""
_OURS: Final = ("rollup", "capture.json")
"""What is in the folder beside the sessions."""


def changed_seconds(folder: Path) -> float:
    """When a session in the folder was written last, in Unix time. Raises OSError if none is there."""
    sessions = _sessions(folder)
    if not sessions:
        raise FileNotFoundError(folder)
    return max(path.stat().st_mtime for path in sessions)


def job_bytes(folder: Path) -> int:
    """What the folder takes on disk, roll-ups included."""
    total = 0
    for place, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError):
                total += Path(place, name).lstat().st_size
    return total


def read_job_entry(folder: Path) -> Entry:
    """A job as a listing shows it. Raises FileNotFoundError if there is no session in it any more."""
    changed = changed_seconds(folder)
    header: Header | None = None
    planned: tuple[RunPlanned, ...] = ()
    processes: list[ProcessOutline] = []
    counts = set()
    for index, path in _newest(folder):
        process, first, plan = _read_ends(index, path, with_plan=not planned)
        processes.append(process)
        counts.add(first.process_count if first is not None else 0)
        header, planned = header or first, planned or plan
    readable = [each for each in processes if not each.problem]
    counts -= {0}
    return Entry(
        path=folder,
        size_bytes=job_bytes(folder),
        modified_seconds=changed,
        header=header,
        planned=planned * len(readable),
        closed=tuple(each.closed for each in readable if each.closed is not None),
        process_index=0,
        process_count=max(counts, default=0),
        complete=bool(processes) and all(each.complete for each in processes),
        live=any(each.live for each in processes),
        problem=processes[0].problem if processes and not readable else "",
        job=JobOutline(tuple(processes), max(counts, default=None)),
    )


def _read_ends(
    index: int, path: Path, *, with_plan: bool
) -> tuple[ProcessOutline, Header | None, tuple[RunPlanned, ...]]:
    """A process, the header of its session, and its plan where that is wanted."""
    header, closed, complete, problem = None, None, False, ""
    planned: tuple[RunPlanned, ...] = ()
    try:
        with open_regular(path) as file:
            header = read_header(file, path.name)
            body = file.tell()
            if with_plan:
                found = next(events_of(file, ("run_planned",)), None)
                planned = (found,) if isinstance(found, RunPlanned) else ()
            file.seek(max(body, file.seek(0, os.SEEK_END) - _END_BYTES))
            for event in events_of(file, ("run_closed", "session_closed")):
                closed = event if isinstance(event, RunClosed) else closed
                complete = complete or isinstance(event, SessionClosed)
    except FileRefusedError as error:
        problem = error.what
    except OSError as error:
        problem = f"{path.name} cannot be read: {system_words(error)}"
    live = not complete and not problem and is_live(path)
    host = header.host if header is not None else ""
    return ProcessOutline(index, host, closed, complete, live, problem), header, planned


def delete_job(folder: Path) -> None:
    """Delete the folder of a job with all that jaxprof has written there. Raises StorageError, and deletes nothing, if
    one of its processes runs, or the folder holds anything else."""
    _refuse_live(folder, "deleted")
    try:
        strange = sorted(path.name for path in folder.iterdir() if not _is_ours(path))
        if strange:
            raise StorageError(
                f"{folder} cannot be deleted: it also holds {strange[0]}"
                + (f" and {len(strange) - 1} more" if len(strange) > 1 else ""),
                "Move what is not of the job out of it, or delete the folder with `rm -r`.",
            )
        for path in _sessions(folder):
            forget_derived(path)
        if folder.is_symlink():
            folder.unlink()
        else:
            shutil.rmtree(folder)
    except OSError as error:
        raise StorageError(f"{folder} cannot be deleted: {system_words(error)}") from error


def prepare_move(folder: Path) -> None:
    """Before the folder gets another name. Raises StorageError if one of the job's processes runs: its roll-up would go
    on under the old one."""
    _refuse_live(folder, "renamed")
    for path in _sessions(folder):
        forget_derived(path)


def copy_job(folder: Path, target: Path, *, replace: bool = False) -> Path:
    """Copy the folder of a job, into a folder under its own name. Raises StorageError if the target exists."""
    target = with_home(target)
    try:
        if target.is_dir() and not target.name.endswith(JOB_EXTENSION):
            target = target / folder.name
        if not target.name.endswith(JOB_EXTENSION):
            target = target.with_name(target.name + JOB_EXTENSION)
        if target.exists():
            hint = "Give another name." if not replace else "A job is not copied over another one: give another name."
            raise StorageError(f"{target} already exists", hint)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copytree(folder, target)
    except OSError as error:
        raise StorageError(f"the job cannot be copied to {target}: {system_words(error)}") from error
    return target


def is_job_live(folder: Path) -> bool:
    """Whether a process of it is being recorded."""
    return any(map(is_live, _sessions(folder)))


def _refuse_live(folder: Path, done: str) -> None:
    if is_job_live(folder):
        what = f"{folder.name} cannot be {done}: its processes are running"
        raise StorageError(what, "Wait until they are over.")


def _is_ours(path: Path) -> bool:
    """Whether jaxprof writes what is there; also what it had not finished (`.ranks.json.1f2e3d4c.partial`)."""
    name = re.sub(r"^\.(.+?)(\.[0-9a-f]{8})?\.partial$", r"\1", path.name)
    return name in _OURS or process_number(name) is not None


def _sessions(folder: Path) -> list[Path]:
    """The sessions of all processes, also of those that were started again."""
    with suppress(OSError), os.scandir(folder) as entries:
        return [folder / entry.name for entry in entries if process_number(entry.name) is not None and entry.is_file()]
    return []


def _newest(folder: Path) -> list[tuple[int, Path]]:
    """By process its session, of one that was started again the newest."""
    found: dict[int, tuple[int, Path]] = {}
    for path in _sessions(folder):
        match = PROCESS_NAME.fullmatch(path.name)
        if match is not None:
            attempt = int(match[2] or 1), path
            found[int(match[1])] = max(found.get(int(match[1]), attempt), attempt)
    return [(index, path) for index, (_, path) in sorted(found.items())]
