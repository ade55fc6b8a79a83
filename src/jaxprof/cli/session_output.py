"""Where a command writes its session, and what it prints about that."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jaxprof.job_process import JobProcess
    from jaxprof.session.log import LogWriter


def new_writer(out: Path | None, *, replace_existing: bool = False, process: JobProcess | None = None) -> LogWriter:
    """A new log in `out`, or among the kept sessions. `process`: the one of a job that it records. Raises UsageError or
    StorageError before anything runs."""
    from jaxprof.devices.inventory.environment import environment_facts
    from jaxprof.session.log import Library, LogWriter, new_header

    header = new_header(environment_facts())
    if process is not None:
        header = replace(header, process_index=process.index, process_count=process.count, job=process.job)
    if out is not None:
        _refuse_folder(out)
    path = out if out is not None else Library().new_path(header)
    return LogWriter(header, path, replace_existing=replace_existing and out is not None)


def clear_place(out: Path, *, replace_existing: bool) -> None:
    """Check that a new session can be written to `out`, which another process does later. Raises like `new_writer`."""
    _refuse_folder(out)
    if replace_existing:
        out.unlink(missing_ok=True)
    else:
        refuse_existing(out)


def refuse_existing(out: Path) -> None:
    """Raises StorageError if there is a file."""
    from jaxprof.errors import StorageError

    if out.exists():
        raise StorageError(f"{out} already exists", "Give another name, or --force to replace it.")


def _refuse_folder(out: Path) -> None:
    from jaxprof.errors import UsageError

    if out.is_dir():
        raise UsageError(f"{out} is a directory", f"Name a file in it: --out {out / 'session.jaxprof'}")


def report_location(writer: LogWriter, note: Callable[[str], None]) -> bool:
    """Print where the session is. If it could not be written there, save it in another folder and return False."""
    from jaxprof.errors import StorageError
    from jaxprof.session.log.state import url_of
    from jaxprof.session_names import EXTENSION

    if writer.failure is None:
        place = writer.path and (url_of(writer.path) or writer.path)
        note(f"session: {place}" + (f" ({writer.changed})" if writer.changed else ""))
        return not writer.is_displaced
    for folder in _other_places(writer.path):
        target = folder / f"jaxprof-{writer.header.session}{EXTENSION}"
        try:
            writer.move_to(target)
        except StorageError:
            continue
        writer.close()
        note(f"session: {target} (it could not be written to the requested place; --out FILE names another)")
        return False
    note("the session could not be kept: free some space, or name another place with --out FILE, and run again")
    return False


def _other_places(path: Path | None) -> Sequence[Path]:
    taken = path.parent.absolute() if path is not None else None
    return [folder for folder in (Path.cwd(), Path(tempfile.gettempdir())) if folder.absolute() != taken]
