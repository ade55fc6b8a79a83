"""`--out` at a URL: record here first, check the URL before the program starts, upload while it runs and at its end.

Whatever the store does, the program runs, and its exit code is its own. What could not be uploaded stays here, and a
note says where.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from jaxprof.cli.plain_script import belongs_to, note
from jaxprof.errors import StorageError, UsageError
from jaxprof.session_names import EXTENSION, JOB_EXTENSION, session_path
from jaxprof.units import and_more, bytes_

if TYPE_CHECKING:
    from jaxprof.remote.place import RemotePlace
    from jaxprof.remote.upload import Uploader

CHECK_SECONDS: Final = 15.0
"""How long the check of the store may take before the program starts."""
WAIT_SECONDS: Final = 60.0
"""How long the rest is uploaded at the end, unless the setting `upload_wait` says otherwise."""


@contextmanager
def output_place(
    out: str | None, *, job: bool, index: int | None, force: bool
) -> Iterator[tuple[Path | None, frozenset[str]]]:
    """Yield where `--out` is on this machine (None: the default place), and the names of the sessions that the store
    already has; at the end, upload what was recorded for a URL.

    `job`: a folder of sessions is recorded; `index`: only that process of the job is recorded here. Raises UsageError,
    StorageError or FileRefusedError for a URL to which nothing can be written.
    """
    if out is not None and job:
        out = _job_folder(out)
    from jaxprof.remote.place import RemotePlace, is_url

    if out is None or not is_url(out):
        yield Path(out) if out is not None else None, frozenset()
        return
    from jaxprof.remote.upload import Uploader
    from jaxprof.session.log.state import make_spool

    place = RemotePlace(out)
    if "?" in place.url:
        raise UsageError(f"{place.shown} has a query, and cannot be written to", "Give the store its credentials.")
    if place.scheme in ("http", "https"):
        raise UsageError(f"{place.shown}: a web server takes no files", "Name a bucket, ssh://, or a folder.")
    if place.scheme in ("file", "local"):
        raise UsageError(f"{place.shown} is on this machine", "Give its path.")
    taken = _existing_names(place, index=index, force=force, job=job)
    spool = make_spool(place.shown)
    uploader = Uploader(place, spool / place.name)
    uploader.start()
    try:
        yield spool / place.name, taken
    finally:
        _finish(uploader, spool)


def _job_folder(out: str) -> str:
    """Return the folder of a job that `--out` names. Raises UsageError for one file."""
    name = out.rstrip("/")
    if name.endswith(JOB_EXTENSION):
        return out
    if name.endswith(EXTENSION) or Path(out).is_file():
        folder = f"{name.removesuffix(EXTENSION)}{JOB_EXTENSION}"
        what = f"{out} is one file, and a job has a session for each process"
        raise UsageError(what, f"Name a folder: --out {folder}")
    return f"{name}{JOB_EXTENSION}"


def _existing_names(place: RemotePlace, *, index: int | None, force: bool, job: bool) -> frozenset[str]:
    """Delete the sessions that may be replaced, and return the names of those in the store. A store that does not
    answer is no error, because it may answer later. Raises UsageError, StorageError or FileRefusedError."""
    from jaxprof.remote.store import Intake, StoreFailure, store_error

    try:
        check = Intake(place, CHECK_SECONDS)
        return check.wait_for(lambda: _clear(place, index=index, force=force, job=job))
    except StoreFailure as failure:
        if failure.refused or failure.missing:  # `_clear` takes a folder that is not there yet for an empty one
            raise store_error(place, failure) from failure
        problem = f"{place.shown} cannot be reached now ({failure.words})"
        note(f"{problem}: recording continues on this machine, and the upload is tried again")
        return frozenset()


def _clear(place: RemotePlace, *, index: int | None, force: bool, job: bool) -> frozenset[str]:
    from jaxprof.remote.store import Store, StoreFailure

    store = Store(place)
    try:
        stored = store.files()
    except StoreFailure as failure:
        if not failure.missing:
            raise
        stored = []
    mine = [file for file in stored if belongs_to(file.name, index)] if job else stored
    if mine and not force and (index is None or not job):
        what = "holds a job already" if job else "already exists"
        raise StorageError(f"{place.shown} {what}", "Give another name, or --force to replace it.")
    store.try_to_write(session_path(Path(), index or 0).name if job else "")
    if force and job:
        for file in mine:
            store.delete(file)
        stored = [file for file in stored if file not in mine]
    return frozenset(file.name for file in stored)


def _finish(uploader: Uploader, spool: Path) -> None:
    """Upload the rest, and say what is in the store, or why not all of it is."""
    from jaxprof.config import read_config

    place = uploader.place

    def report(done: int, count: int) -> None:
        note(f"uploading to {place.shown}: {done} of {count} files are there; ctrl+c leaves the rest here")

    unsent = uploader.finish(read_config().get("upload_wait", float) or WAIT_SECONDS, report)
    if unsent:
        note(f"not uploaded to {place.shown}: {and_more(unsent, 4)} ({uploader.failure})")
        note(f"all of it is in {uploader.source}; copy it there, and delete it here")
        return
    if uploader.sent_bytes:
        note(f"uploaded: {place.shown} ({bytes_(uploader.sent_bytes)})")
    shutil.rmtree(spool, ignore_errors=True)
