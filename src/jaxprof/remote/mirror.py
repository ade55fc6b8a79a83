"""Keep a local copy of a place in a store, in the cache folder, and fetch again what has changed since.

A file is current while its size and its time are those of the store. A session only grows, so that a longer one is
continued in place: a reader that follows the file goes on reading it.
"""

from __future__ import annotations

import os
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from jaxprof.errors import JaxprofError, StorageError, system_words
from jaxprof.files import PARTIAL, private_folder
from jaxprof.remote.place import RemotePlace
from jaxprof.remote.store import Store, StoredFile, StoreFailure, store_error
from jaxprof.session.log.state import FETCHED_FROM, fetched_folder
from jaxprof.session_names import EXTENSION

_OVERLAP: Final = 256
"""Bytes at the end of the copy of a session that a longer one has, too, if it continues the copy."""
_CLOCK_SECONDS: Final = 1e-3
"""Difference of two times of a file that are the same: a time is rounded when it is set."""
_FETCH_THREADS: Final = 8
_KEPT_SECONDS: Final = 30 * 86_400.0

Progress = Callable[[int, int], None]
"""Called with the number of files that were fetched, and the number of files to fetch."""


class Mirror:
    """The local copy of one place in a store."""

    def __init__(self, place: RemotePlace) -> None:
        """Connect to the store. Raises UsageError or FileRefusedError if it cannot be used."""
        try:
            self.store = Store(place)
        except StoreFailure as failure:
            raise store_error(place, failure) from failure
        self._folder = fetched_folder() / place.key
        self.path = self._folder / place.name
        """The copy: a file or a folder, as in the store."""

    def refresh(self, progress: Progress | None = None) -> list[str]:
        """Fetch what has changed. Returns what could not be fetched, a line each, if the copy can be used nevertheless.
        Raises FileRefusedError if there is no usable copy, StorageError if the disk refuses a write."""
        place, note = self.store.place, self._folder / FETCHED_FROM
        try:
            private_folder(self._folder)
            with _exclusive(self._folder / "lock"):
                lines = self._refresh(progress)
                note.write_text(place.shown, "utf-8")
                return lines
        except StoreFailure as failure:
            if failure.missing or not (note.exists() and self.path.exists()):
                raise store_error(place, failure) from failure
            when = time.strftime("%Y-%m-%d %H:%M", time.localtime(note.stat().st_mtime))
            return [f"{place.shown} cannot be reached ({failure.words}): the copy of {when} is shown"]
        except OSError as error:
            raise StorageError(
                f"{place.shown} cannot be fetched to {self._folder}: {system_words(error)}", "Free some space."
            ) from error

    def follow(self, every_seconds: float) -> None:
        """Refresh the copy periodically, in a thread, until the process ends. After a failure, the next refresh tries
        again."""

        def work() -> None:
            while True:
                time.sleep(every_seconds)
                with suppress(JaxprofError):
                    self.refresh()

        threading.Thread(target=work, name="jaxprof-fetch", daemon=True).start()

    def _refresh(self, progress: Progress | None) -> list[str]:
        files = self.store.files()
        self._delete_others(files)
        due = [file for file in files if not self._is_current(file)]
        due.sort(key=lambda file: (not file.name.startswith("rollup/"), file.name))  # they are small, and show all
        failures: dict[str, StoreFailure] = {}
        done = 0

        def fetch(file: StoredFile) -> None:
            nonlocal done
            try:
                self._fetch(file)
            except StoreFailure as failure:
                failures[file.name] = failure
            done += 1
            if progress is not None:
                progress(done, len(due))

        if self.store.takes_several and len(due) > 1:
            with ThreadPoolExecutor(_FETCH_THREADS, "jaxprof-fetch") as pool:
                list(pool.map(fetch, due))
        else:  # in this thread, which ctrl+c ends at once: Python waits for those of a pool
            list(map(fetch, due))
        if failures and not any(self._target(file).exists() for file in files):
            raise next(iter(failures.values()))
        return _failure_lines(self.store.place, failures, len(files))

    def _fetch(self, file: StoredFile) -> None:
        target = self._target(file)
        private_folder(target.parent)
        partial = target.with_name(f".{target.name}{PARTIAL}")
        try:
            self.store.fetch(file, partial)
            size = partial.stat().st_size
            if size < file.size:
                raise StoreFailure(f"only {size} of {file.size} bytes arrived")
            partial.chmod(0o600)
            if target.name.endswith(EXTENSION) and _continues(partial, target):
                with partial.open("rb") as longer, target.open("r+b") as copy:
                    longer.seek(copy.seek(0, os.SEEK_END))
                    shutil.copyfileobj(longer, copy)
            else:
                partial.replace(target)
        finally:
            partial.unlink(missing_ok=True)
        if file.modified_seconds is not None:
            os.utime(target, (file.modified_seconds, file.modified_seconds))

    def _is_current(self, file: StoredFile) -> bool:
        if file.modified_seconds is None:
            return False
        with suppress(OSError):
            status = self._target(file).stat()
            return status.st_size == file.size and abs(status.st_mtime - file.modified_seconds) < _CLOCK_SECONDS
        return False

    def _target(self, file: StoredFile) -> Path:
        return self.path / file.name if file.name else self.path

    def _delete_others(self, files: list[StoredFile]) -> None:
        """Delete the copies of files that the store does not have any more, and what killed processes left."""
        stored = {self._target(file) for file in files}
        for path in [*self._folder.glob(f".*{PARTIAL}"), *self.path.rglob("*")]:
            if path not in stored and not path.is_dir():
                with suppress(OSError):
                    path.unlink(missing_ok=True)


def forget_old(now: float) -> None:
    """Delete the copies that were not refreshed for a month, and what was fetched of a place until its first refresh
    failed. `now`: Unix time, in seconds."""
    with suppress(OSError):
        for folder in fetched_folder().iterdir():
            note = folder / FETCHED_FROM  # written at the end of each refresh
            with suppress(OSError):
                if now - (note if note.exists() else folder).stat().st_mtime > _KEPT_SECONDS:
                    shutil.rmtree(folder, ignore_errors=True)


def _continues(fresh: Path, copy: Path) -> bool:
    """Return whether a fetched session begins with its copy, as far as the last bytes of the copy tell."""
    with suppress(OSError), fresh.open("rb") as longer, copy.open("rb") as shorter:
        place = max(0, shorter.seek(0, os.SEEK_END) - _OVERLAP)
        shorter.seek(place)
        longer.seek(place)
        end = shorter.read()
        return len(end) == _OVERLAP and longer.read(_OVERLAP) == end
    return False


def _failure_lines(place: RemotePlace, failures: dict[str, StoreFailure], count: int) -> list[str]:
    if not failures:
        return []
    name, failure = next(iter(failures.items()))
    which = f"{len(failures)} of {count} files" if name else "it"
    return [f"{place.shown}: {which} could not be fetched ({name + ': ' if name else ''}{failure.words})"]


@contextmanager
def _exclusive(path: Path) -> Iterator[None]:
    """Hold the lock file at `path`, so that no other process of this machine refreshes the same copy."""
    try:
        import fcntl
    except ImportError:
        yield
        return
    with path.open("wb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
