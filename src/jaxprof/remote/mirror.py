"""Keep a local copy of a place in a store, in the cache folder, and refresh what has changed since.

A session only grows, so only the new part of a longer one is fetched and appended: a reader that follows the file goes
on reading it. Several processes may refresh the same copy, one at a time.
"""

from __future__ import annotations

import json
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
from jaxprof.files import private_folder, taking_place
from jaxprof.remote.place import RemotePlace
from jaxprof.remote.store import Store, StoredFile, StoreFailure, store_error
from jaxprof.session.log.state import FETCHED_FROM, fetched_folder
from jaxprof.session_names import EXTENSION

_KNOWN: Final = "files.json"
_LOCK: Final = "lock"
_OVERLAP: Final = 256
"""Bytes of a session that are fetched again, to check that it was continued and not replaced."""
_END_BYTES: Final = 1 << 12
"""Bytes at the end of a session that are searched for its last event."""
_FETCH_THREADS: Final = 8
_KEPT_SECONDS: Final = 30 * 86_400.0
_RUNNING_SECONDS: Final = 300.0
"""A session without an end counts as running if it has changed within this time."""

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
        self._locked: dict[Path, int] = {}

    def refresh(self, progress: Progress | None = None) -> list[str]:
        """Fetch what has changed. Returns what could not be fetched, a line each, if the copy can be used nevertheless.
        Raises FileRefusedError if there is no usable copy, StorageError if the disk refuses a write."""
        place = self.store.place
        try:
            private_folder(self._folder)
            (self._folder / FETCHED_FROM).write_text(place.shown, "utf-8")
            with _exclusive(self._folder / _LOCK):
                return self._refresh(progress)
        except StoreFailure as failure:
            if failure.missing or not (self._read_known() and self.path.exists()):
                raise store_error(place, failure) from failure
            when = time.strftime("%Y-%m-%d %H:%M", time.localtime((self._folder / _KNOWN).stat().st_mtime))
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
        for partial in self._folder.glob("**/.*.partial"):  # of a process that was killed
            partial.unlink(missing_ok=True)
        files = self.store.files()
        known = self._read_known()
        files.sort(key=lambda file: (not file.name.startswith("rollup/"), file.name))  # they are small, and show all
        due = [file for file in files if not self._is_current(file, known.get(file.name))]
        failures: dict[str, StoreFailure] = {}
        done = 0

        def fetch(file: StoredFile) -> None:
            nonlocal done
            try:
                known[file.name] = self._fetch(file, known.get(file.name))
            except StoreFailure as failure:
                failures[file.name] = failure
            done += 1
            if progress is not None:
                progress(done, len(due))

        if self.store.takes_several and len(due) > 1:
            with ThreadPoolExecutor(_FETCH_THREADS, "jaxprof-fetch") as pool:
                list(pool.map(fetch, due))
        else:
            for file in due:
                fetch(file)
        self._delete_missing(files, known)
        with taking_place(self._folder / _KNOWN) as fresh:
            fresh.write_text(json.dumps(known), "utf-8")
        if failures and not known:
            raise next(iter(failures.values()))
        self._lock_running(files)
        return _failure_lines(self.store.place, failures, len(files))

    def _fetch(self, file: StoredFile, before: list[int | str] | None) -> list[int | str]:
        target = self._target(file)
        private_folder(target.parent)
        if before is None or not self._continue(file, target):
            partial = target.with_name(f".{target.name}.partial")
            try:
                self.store.fetch(file, partial)
                size = partial.stat().st_size
                if size < file.size:
                    raise StoreFailure(f"only {size} of {file.size} bytes arrived")
                partial.chmod(0o600)
                self._unlock(target)
                partial.replace(target)
            finally:
                partial.unlink(missing_ok=True)
        return [target.stat().st_size, file.version]

    def _continue(self, file: StoredFile, target: Path) -> bool:
        """Append the new part of a session to its copy. Returns whether the session was continued and not replaced."""
        if not target.name.endswith(EXTENSION) or not target.is_file():
            return False
        size = target.stat().st_size
        if not _OVERLAP <= size < file.size:
            return False
        rest = self.store.read(file, size - _OVERLAP)
        with target.open("r+b") as copy:
            copy.seek(size - _OVERLAP)
            if len(rest) != file.size - size + _OVERLAP or copy.read() != rest[:_OVERLAP]:
                return False
            copy.seek(0, os.SEEK_END)
            copy.write(rest[_OVERLAP:])
        return True

    def _is_current(self, file: StoredFile, before: list[int | str] | None) -> bool:
        if before is None or not file.version or before != [file.size, file.version]:
            return False
        target = self._target(file)
        return target.is_file() and target.stat().st_size == file.size

    def _target(self, file: StoredFile) -> Path:
        return self.path / file.name if file.name else self.path

    def _read_known(self) -> dict[str, list[int | str]]:
        """Return size and version of the fetched files, by name."""
        try:
            read = json.loads((self._folder / _KNOWN).read_text("utf-8"))
        except (OSError, ValueError):
            return {}
        return read if isinstance(read, dict) else {}

    def _delete_missing(self, files: list[StoredFile], known: dict[str, list[int | str]]) -> None:
        """Delete the copies of files that the store does not have any more."""
        stored = {file.name for file in files}
        for name in [name for name in known if name not in stored]:
            del known[name]
            target = self.path / name if name else self.path
            self._unlock(target)
            with suppress(OSError):
                target.unlink(missing_ok=True)

    def _lock_running(self, files: list[StoredFile]) -> None:
        """Lock the copies of running sessions as a local writer would, because this process is what extends them."""
        recent = [file.modified_seconds for file in files if file.modified_seconds is not None]
        for file in files:
            target = self._target(file)
            if not target.name.endswith(EXTENSION) or not target.is_file():
                continue
            changed = file.modified_seconds or max(recent, default=0.0)
            running = time.time() - changed < _RUNNING_SECONDS and not _has_end(target)
            if running and target not in self._locked:
                self._lock(target)
            elif not running:
                self._unlock(target)

    def _lock(self, path: Path) -> None:
        try:
            import fcntl
        except ImportError:
            return
        with suppress(OSError):
            file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BaseException:
                os.close(file)
                raise
            self._locked[path] = file

    def _unlock(self, path: Path) -> None:
        file = self._locked.pop(path, None)
        if file is not None:
            os.close(file)


def forget_old(now: float) -> None:
    """Delete the copies that were not refreshed for a month. `now`: Unix time, in seconds."""
    with suppress(OSError):
        for note in fetched_folder().glob(f"*/{FETCHED_FROM}"):
            with suppress(OSError):
                if now - note.stat().st_mtime > _KEPT_SECONDS:
                    shutil.rmtree(note.parent, ignore_errors=True)


def _failure_lines(place: RemotePlace, failures: dict[str, StoreFailure], count: int) -> list[str]:
    if not failures:
        return []
    name, failure = next(iter(failures.items()))
    which = f"{len(failures)} of {count} files" if name else "it"
    return [f"{place.shown}: {which} could not be fetched ({name + ': ' if name else ''}{failure.words})"]


def _has_end(path: Path) -> bool:
    """Return whether a session has its closing event."""
    with suppress(OSError), path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - _END_BYTES))
        return b'"type":"session_closed"' in file.read()
    return False


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
