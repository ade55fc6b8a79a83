"""Where a session that the command line makes is written, and what is said of that."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jaxprof.store import LogWriter


def new_writer(out: Path | None, *, replace_existing: bool = False) -> LogWriter:
    """A log in `out`, or among the kept sessions. Raises UsageError or StorageError before anything was run."""
    from jaxprof.store import Library, LogWriter, new_header
    from jaxprof.telemetry.environment import environment_facts

    header = new_header(environment_facts())
    if out is not None:
        _refuse_folder(out)
    path = out if out is not None else Library().new_path(header)
    return LogWriter(header, path, replace_existing=replace_existing and out is not None)


def clear_place(out: Path, *, replace_existing: bool) -> None:
    """Makes sure that a new session can be written to `out`, for somebody else who will. Raises as `new_writer`."""
    from jaxprof.errors import StorageError

    _refuse_folder(out)
    if replace_existing:
        out.unlink(missing_ok=True)
    elif out.exists():
        raise StorageError(f"{out} is there already", "Give another name, or --force to replace it.")


def _refuse_folder(out: Path) -> None:
    from jaxprof.errors import UsageError

    if out.is_dir():
        raise UsageError(f"{out} is a directory", f"Name a file in it: --out {out / 'session.jaxprof'}")


def tell_where(writer: LogWriter, note: Callable[[str], None]) -> bool:
    """Says where the session is. One that could not be written is saved in another folder; then gives False."""
    from jaxprof.errors import StorageError
    from jaxprof.store.codec import EXTENSION

    if writer.failure is None:
        note(f"session: {writer.path}")
        return True
    for folder in _other_places(writer.path):
        target = folder / f"jaxprof-{writer.header.session}{EXTENSION}"
        try:
            writer.move_to(target)
        except StorageError:
            continue
        writer.close()
        note(f"session: {target} (it could not be written where it was wanted; --out FILE names another place)")
        return False
    note("the session could not be kept: free some space, or name another place with --out FILE, and run again")
    return False


def _other_places(path: Path | None) -> Sequence[Path]:
    taken = path.parent.absolute() if path is not None else None
    return [folder for folder in (Path.cwd(), Path(tempfile.gettempdir())) if folder.absolute() != taken]
