"""The local copy of a place in a store: fetched into the cache folder, and again what has changed since.

A session only grows, so of a longer one the rest is fetched and appended: whoever follows the file goes on reading it.
Another process may refresh the same copy: one at a time.
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
"""Bytes of a session that are fetched again, to see that it was continued and not replaced."""
_END: Final = 1 << 12
_TOGETHER: Final = 8
_KEPT_SECONDS: Final = 30 * 86_400.0
_RUNNING_SECONDS: Final = 300.0
"""A session without an end is taken for one that is being written where it has changed within this time."""

Progress = Callable[[int, int], None]
"""Called with how many files were fetched, of how many."""


class Mirror:
    """The copy of one place, in this process."""

    def __init__(self, place: RemotePlace) -> None:
        """Raises UsageError or FileRefusedError where the store cannot be used at all."""
        try:
            self.store = Store(place)
        except StoreFailure as failure:
            raise store_error(place, failure) from failure
        self._folder = fetched_folder() / place.key
        self.path = self._folder / place.name
        """Where the copy is: a file or a folder, as in the store."""
        self._held: dict[Path, int] = {}
        self._stop = threading.Event()

    def refresh(self, progress: Progress | None = None) -> list[str]:
        """Fetch what has changed. Returns what could not be had, a line each, where there is something to look at
        nevertheless. Raises FileRefusedError where there is nothing, StorageError where the disk refuses."""
        place = self.store.place
        try:
            self._make_folder()
            with _alone(self._folder / _LOCK):
                return self._refresh(progress)
        except StoreFailure as failure:
            if failure.missing or not (self._read_known() and self.path.exists()):
                raise store_error(place, failure) from failure
            when = time.strftime("%Y-%m-%d %H:%M", time.localtime((self._folder / _KNOWN).stat().st_mtime))
            return [f"{place.shown} cannot be reached ({failure.words}): what was fetched on {when} is shown"]
        except OSError as error:
            raise StorageError(
                f"{place.shown} cannot be fetched to {self._folder}: {system_words(error)}", "Free some space."
            ) from error

    def follow(self, every_seconds: float) -> None:
        """Refresh again and again, in a thread, until `close`. What fails is tried again the next time."""

        def work() -> None:
            while not self._stop.wait(every_seconds):
                with suppress(JaxprofError):
                    self.refresh()

        threading.Thread(target=work, name="jaxprof-fetch", daemon=True).start()

    def close(self) -> None:
        """End `follow`, and take no session for one that is being written."""
        self._stop.set()
        for path in list(self._held):
            self._let_go(path)

    def _make_folder(self) -> None:
        private_folder(self._folder)
        (self._folder / FETCHED_FROM).write_text(self.store.place.shown, "utf-8")

    def _refresh(self, progress: Progress | None) -> list[str]:
        for left in self._folder.glob("**/.*.partial"):  # by a process that was killed
            left.unlink(missing_ok=True)
        files = self.store.files()
        known = self._read_known()
        due = [file for file in _in_order(files) if not self._is_current(file, known.get(file.name))]
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
            with ThreadPoolExecutor(_TOGETHER, "jaxprof-fetch") as pool:
                list(pool.map(fetch, due))
        else:
            for file in due:
                fetch(file)
        self._drop_others(files, known)
        with taking_place(self._folder / _KNOWN) as part:
            part.write_text(json.dumps(known), "utf-8")
        if failures and not known:
            raise next(iter(failures.values()))
        self._hold_running(files)
        return _said(self.store.place, failures, len(files))

    def _fetch(self, file: StoredFile, before: list[int | str] | None) -> list[int | str]:
        target = self._target(file)
        private_folder(target.parent)
        if before is None or not self._continue(file, target):
            part = target.with_name(f".{target.name}.partial")
            try:
                self.store.fetch(file, part)
                size = part.stat().st_size
                if size < file.size:
                    raise StoreFailure(f"of {file.size} bytes only {size} came")
                part.chmod(0o600)
                self._let_go(target)
                part.replace(target)
            finally:
                part.unlink(missing_ok=True)
        return [target.stat().st_size, file.version]

    def _continue(self, file: StoredFile, target: Path) -> bool:
        """Append what a session has more than its copy; whether it was only continued."""
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
        """By name, size and version of what was fetched."""
        try:
            read = json.loads((self._folder / _KNOWN).read_text("utf-8"))
        except (OSError, ValueError):
            return {}
        return read if isinstance(read, dict) else {}

    def _drop_others(self, files: list[StoredFile], known: dict[str, list[int | str]]) -> None:
        """Forget what the store has no more."""
        there = {file.name for file in files}
        for name in [name for name in known if name not in there]:
            del known[name]
            target = self.path / name if name else self.path
            self._let_go(target)
            with suppress(OSError):
                target.unlink(missing_ok=True)

    def _hold_running(self, files: list[StoredFile]) -> None:
        """Lock the copies of sessions that are being written, as their writer would lock them here: this process is
        what writes them on."""
        recent = [file.modified_seconds for file in files if file.modified_seconds is not None]
        for file in files:
            target = self._target(file)
            if not target.name.endswith(EXTENSION) or not target.is_file():
                continue
            changed = file.modified_seconds or max(recent, default=0.0)
            running = time.time() - changed < _RUNNING_SECONDS and not _has_end(target)
            if running and target not in self._held:
                self._hold(target)
            elif not running:
                self._let_go(target)

    def _hold(self, path: Path) -> None:
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
            self._held[path] = file

    def _let_go(self, path: Path) -> None:
        file = self._held.pop(path, None)
        if file is not None:
            os.close(file)


def forget_old(now: float) -> None:
    """Delete the copies that nobody has looked at for a month. `now`: seconds of the epoch."""
    with suppress(OSError):
        for note in fetched_folder().glob(f"*/{FETCHED_FROM}"):
            with suppress(OSError):
                if now - note.stat().st_mtime > _KEPT_SECONDS:
                    shutil.rmtree(note.parent, ignore_errors=True)


def _in_order(files: list[StoredFile]) -> Iterator[StoredFile]:
    """Roll-ups first: they are small, and show all processes."""
    return iter(sorted(files, key=lambda file: (not file.name.startswith("rollup/"), file.name)))


def _said(place: RemotePlace, failures: dict[str, StoreFailure], count: int) -> list[str]:
    if not failures:
        return []
    name, failure = next(iter(failures.items()))
    which = f"{len(failures)} of {count} files" if name else "it"
    return [f"{place.shown}: {which} could not be fetched ({name + ': ' if name else ''}{failure.words})"]


def _has_end(path: Path) -> bool:
    """Whether a session's last event says that it was closed."""
    with suppress(OSError), path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - _END))
        return b'"type":"session_closed"' in file.read()
    return False


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    """While no other process of this machine refreshes the same copy."""
    try:
        import fcntl
    except ImportError:
        yield
        return
    with path.open("wb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
