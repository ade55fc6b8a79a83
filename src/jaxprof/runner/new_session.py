"""Where a new session is written, and where it is at its end. Imports little: a recorded program waits for it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from jaxprof.base.errors import StorageError
from jaxprof.session.files import EXTENSION

if TYPE_CHECKING:
    from jaxprof.jobs.process import JobProcess
    from jaxprof.session import LogWriter


def new_writer(out: Path | None, *, replace_existing: bool = False, process: JobProcess | None = None) -> LogWriter:
    """Return a new log in `out`, or among the kept sessions. `process`: the process of a job that it records. Raises
    UsageError or StorageError before anything runs."""
    from jaxprof.devices.inventory.machine import environment_facts
    from jaxprof.session import Library, LogWriter, new_header

    header = new_header(environment_facts())
    if process is not None:
        header = replace(header, process_index=process.index, process_count=process.count, job=process.job)
    path = out if out is not None else Library().new_path(header)
    return LogWriter(header, path, replace_existing=replace_existing and out is not None, own=True)


def report_location(writer: LogWriter, note: Callable[[str], None]) -> bool:
    """Print where the session is. If it could not be written there, save it in another folder. Return whether it is
    whole, and where it should be."""
    import tempfile

    if writer.failure is None:
        note(f"session: {writer.path}" + (f" ({writer.changed})" if writer.changed else ""))
        return not (writer.is_displaced or writer.lost)
    reason = writer.failure.what
    taken = writer.path.parent.absolute() if writer.path is not None else None
    others = [folder for folder in (Path.cwd(), Path(tempfile.gettempdir())) if folder.absolute() != taken]
    for folder in others:
        target = folder / f"jaxprof-{writer.header.session}{EXTENSION}"
        try:
            writer.move_to(target)
        except StorageError:
            continue
        writer.close()
        note(f"session: {target} ({reason}; --out FILE names another place)")
        return False
    note(f"the session could not be kept: {reason}; free some space, or give --out FILE, and run again")
    return False
