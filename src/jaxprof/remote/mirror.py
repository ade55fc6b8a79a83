"""Keep a local copy of a file or folder in a store, in the cache folder, and fetch what has changed since.

fsspec's own caches fetch without a limit, and keep no times, by which a session counts as being written. Its file
systems raise whatever their libraries raise; only this module handles that, and raises errors with a hint. A file is
current while its size and its time are those of the store.
"""

from __future__ import annotations

import os
import queue
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath
from typing import Any, TypeVar

from jaxprof.base.errors import FileRefusedError, MissingFileError, StorageError, UsageError, system_words
from jaxprof.base.files import PARTIAL, PRIVATE, private_folder, replace_file
from jaxprof.base.limits import FETCH_TIME, FETCHED, FETCHED_FILES
from jaxprof.base.units import bytes_
from jaxprof.base.values import frozen
from jaxprof.remote import REFUSED, URLS, RemoteUrl
from jaxprof.session.files import FETCHED_FROM, JOB_EXTENSION, copies_folder

_NO_STORES = frozenset(
    ("blockcache", "cached", "dask", "data", "filecache", "generic", "jlab", "jupyter", "reference", "simplecache")
)
"""File systems of fsspec that are not used: they copy without a limit, run in other processes, or read files that name
further files, also on this machine. A chain of file systems may hold any of them."""
_DEEPEST = 8
_WEB = frozenset(("http", "https"))
_SILENT_SECONDS = 60.0
"""Time after which a web server that sends nothing is given up. Packages of other stores have limits of their own."""
_FEWEST_BYTES = 1024
"""A web server that sends fewer in that time is given up as well."""

Value = TypeVar("Value")
Progress = Callable[[int, int], None]
"""Called with the number of files that were fetched, and the number of files to fetch."""


class StoreFailure(FileRefusedError):
    """The store did not do what was requested. A copy from before can be used nevertheless."""

    def __init__(self, remote: RemoteUrl, words: str) -> None:
        super().__init__(
            f"{remote.shown} cannot be read: {words}", "Check the URL, the network, and your permission to read."
        )


@frozen
class StoredFile:
    """A file in a listing of the store."""

    name: str
    """Path relative to the URL, with slashes; empty if the URL itself is the file."""
    path: str
    """Path in fsspec's file system."""
    size: int
    """Size in bytes; -1 if the store does not report it."""
    modified_seconds: float | None
    """When the file was written, in Unix time by the store's clock; None if unknown."""


class Mirror:
    """The local copy of one file or folder in a store."""

    def __init__(self, remote: RemoteUrl) -> None:
        """Find the file system of the store, which may already connect. Raises UsageError for an unknown scheme and for
        missing packages, StoreFailure if the store cannot be read."""
        self.remote = remote
        self._lock = threading.Lock()
        self._bytes = 0
        """Received so far: a store may send more than the sizes in its listing."""
        self._end = time.monotonic() + FETCH_TIME.most
        self._files, self._root = self._in_time(lambda: _filesystem(remote))
        self._folder = copies_folder() / remote.key
        self.path = self._folder / remote.name
        """The copy: a file or a folder, as in the store."""

    def refresh(self, progress: Progress | None = None) -> str:
        """Fetch what has changed. Returns what could not be fetched if the copy can be used nevertheless, or an empty
        text. Raises FileRefusedError if there is no usable copy, StorageError if the disk refuses a write."""
        note = self._folder / FETCHED_FROM
        try:
            private_folder(self._folder)
            files = self.files()
            # Delete the copies of files that the store does not have any more, and what killed processes left: a
            # younger half file may be one that another process fetches now.
            stored = {self._target(file) for file in files}
            killed_before = time.time() - FETCH_TIME.most
            for path in [*self._folder.glob(f".*{PARTIAL}"), *self.path.rglob("*")]:
                with suppress(OSError):
                    is_fetched_now = path.name.endswith(PARTIAL) and path.stat().st_mtime > killed_before
                    if path not in stored and not path.is_dir() and not is_fetched_now:
                        path.unlink(missing_ok=True)
            due = [file for file in files if not self._is_current(file)]
            pool = ThreadPoolExecutor(8 if getattr(self._files, "async_impl", False) else 1)
            failures: list[StoreFailure] = []
            try:
                for done, refused in enumerate(pool.map(self._fetch, due), start=1):
                    failures += [refused] if refused is not None else []
                    if progress is not None:
                        progress(done, len(due))
            finally:  # after ctrl+c, no further file is begun
                pool.shutdown(cancel_futures=True)
            if failures and not any(self._target(file).exists() for file in files):
                raise failures[0]
            missing = f"{len(failures)} of {len(files)} files: {failures[0].what}" if failures else ""
            with replace_file(note, PRIVATE, only_regular=True) as fresh:
                fresh.write_text(self.remote.shown, "utf-8")
        except StoreFailure as failure:
            if not (note.exists() and self.path.exists()):
                raise
            when = time.strftime("%Y-%m-%d %H:%M", time.localtime(note.stat().st_mtime))
            return f"{failure.what}: the copy of {when} is shown"
        except OSError as error:
            raise StorageError(
                f"{self.remote.shown} cannot be fetched to {self._folder}: {system_words(error)}", "Free some space."
            ) from error
        return missing

    def files(self) -> list[StoredFile]:
        """Return the files in and below the folder, or the one file, without names that are unsafe as local names.
        Raises FileRefusedError, also for more than the limits allow."""
        with _failures(self.remote):
            listed = self._in_time(self._list)
        if len(listed) > FETCHED_FILES.most:
            raise FileRefusedError(f"{self.remote.shown} holds {FETCHED_FILES.words}", FETCHED_FILES.hint)
        named = ((_relative(path, self._root), path, info) for path, info in listed.items())
        files = [
            StoredFile(name, path, -1 if (size := info.get("size")) is None else int(size), _seconds(info))
            for name, path, info in named
            # A named pipe on this machine would be waited for, and a device copied for ever.
            if name is not None and (self.remote.scheme not in ("file", "local") or os.path.isfile(path))
        ]
        if not files:
            raise _nothing(self.remote)
        if sum(max(file.size, 0) for file in files) > FETCHED.most:
            raise FileRefusedError(f"{self.remote.shown} holds {FETCHED.words}", FETCHED.hint)
        return files

    def _list(self) -> dict[str, Any]:
        info = self._files.info(self._root)
        if info.get("type") != "directory":
            return {self._root: info}
        self._files.ls(self._root, detail=True)  # raises for a folder that `find` would take for empty
        found: dict[str, Any] = self._files.find(self._root, maxdepth=_DEEPEST, detail=True)
        return found

    def _fetch(self, file: StoredFile) -> StoreFailure | None:
        """Fetch a file, unless it has gone since the listing. Returns why it cannot be read."""
        from fsspec.callbacks import Callback

        target = self._target(file)
        private_folder(target.parent)
        before = 0

        def count_bytes(size: int | None, value: int, **_: Any) -> None:
            nonlocal before
            self._take(value - before)
            before = value

        try:
            with suppress(MissingFileError), replace_file(target, PRIVATE, only_regular=True) as fresh:
                self._take(0)  # the limits hold before the file is opened, too
                with _failures(self.remote):
                    progress = Callback(hooks={"taken": count_bytes})
                    self._in_time(lambda: self._files.get_file(file.path, str(fresh), callback=progress))
                size = fresh.stat().st_size
                if size < file.size:
                    raise StoreFailure(self.remote, f"only {size} of {file.size} bytes arrived")
                if file.modified_seconds is not None:
                    os.utime(fresh, (file.modified_seconds, file.modified_seconds))
        except StoreFailure as failure:
            return failure
        return None

    def _in_time(self, call: Callable[[], Value]) -> Value:
        """Return what a library returns, or raise what it raises. Raises StoreFailure after the time limit for all of
        the fetch, and if a web server sends next to nothing for a while: the library waits without end for a server
        whose bytes come one at a time, in the header or after it. The thread that waits for it is left behind."""
        answers: queue.SimpleQueue[Future[Value]] = queue.SimpleQueue()

        def run() -> None:
            answer: Future[Value] = Future()
            try:
                answer.set_result(call())
            except BaseException as error:  # noqa: BLE001 - raised where it is waited for
                answer.set_exception(error)
            answers.put(answer)

        threading.Thread(target=run, daemon=True).start()
        is_web = self.remote.scheme in _WEB
        while True:
            before, left = self._bytes, self._end - time.monotonic()
            try:
                return answers.get(timeout=max(0.0, min(left, _SILENT_SECONDS) if is_web else left)).result()
            except queue.Empty:
                self._take(0)
                if is_web and self._bytes - before < _FEWEST_BYTES:
                    words = f"less than {bytes_(_FEWEST_BYTES)} came in {_SILENT_SECONDS:g} seconds"
                    raise StoreFailure(self.remote, words) from None

    def _take(self, count: int) -> None:
        """Count received bytes. Raises FileRefusedError for too many bytes, StoreFailure after the time limit."""
        with self._lock:
            self._bytes += count
        if self._bytes > FETCHED.most:
            raise FileRefusedError(f"what {self.remote.shown} sends is {FETCHED.words}", FETCHED.hint)
        if time.monotonic() >= self._end:
            raise StoreFailure(self.remote, f"it took {FETCH_TIME.words}. {FETCH_TIME.hint}")

    def _is_current(self, file: StoredFile) -> bool:
        if file.modified_seconds is None:
            return False
        with suppress(OSError):
            status = self._target(file).stat()
            # The time of a file is rounded when it is set.
            return status.st_size == file.size and abs(status.st_mtime - file.modified_seconds) < 1e-3
        return False

    def _target(self, file: StoredFile) -> Path:
        return self.path / file.name if file.name else self.path


def forget_old(now: float) -> None:
    """Delete the copies that were not refreshed for a month, and what was fetched of a URL until its first refresh
    failed. `now`: Unix time, in seconds."""
    with suppress(OSError):
        for folder in copies_folder().iterdir():
            note = folder / FETCHED_FROM  # written at the end of each refresh
            with suppress(OSError):
                if now - (note if note.exists() else folder).stat().st_mtime > 30 * 86_400.0:
                    shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _failures(remote: RemoteUrl) -> Iterator[None]:
    """Turn whatever the library raises into a FileRefusedError, in one line and without secrets."""
    try:
        yield
    except (FileRefusedError, UsageError):
        raise
    except Exception as error:
        cause = error.__cause__ or error.__context__
        known: BaseException = error
        if isinstance(error, FileNotFoundError) and isinstance(cause, OSError) and not error.strerror:
            known = cause  # fsspec raises FileNotFoundError for every problem with a web server
        kind = type(known).__name__
        if isinstance(known, FileNotFoundError) or "NoSuchBucket" in kind:
            raise _nothing(remote) from error
        silence = "no answer in time" if isinstance(known, TimeoutError) else kind
        text = known.strerror if isinstance(known, OSError) and known.strerror else str(known) or silence
        raise StoreFailure(remote, " ".join(remote.clean(text).split())[:300] or kind) from error


def _nothing(remote: RemoteUrl) -> MissingFileError:
    return MissingFileError(f"there is nothing at {remote.shown}", "Check the URL, down to the last folder.")


def _filesystem(remote: RemoteUrl) -> tuple[Any, str]:
    if os.environ.get(URLS) == REFUSED:
        raise UsageError(
            f"{remote.shown} is a URL, and URLs are not allowed here",
            "`jaxprof agent mcp --allow-urls` allows its tools them.",
        )
    try:
        from fsspec.core import url_to_fs
    except ImportError as error:
        hint = f"{sys.executable} -m pip install 'fsspec>=2024.6'"
        raise UsageError(f"{remote.shown} needs fsspec, which is not installed", hint) from error
    if "::" in remote.url.partition("?")[0] or remote.scheme in _NO_STORES:
        raise UsageError(f"{remote.shown} is not a store", "Name the store itself: jaxprof keeps copies.")
    with _failures(remote):
        try:
            options = {}
            if remote.scheme in _WEB:  # no file is too long for a web server, and none that sends nothing is waited for
                from aiohttp import ClientTimeout

                timeout = ClientTimeout(sock_connect=_SILENT_SECONDS, sock_read=_SILENT_SECONDS)
                options = {"client_kwargs": {"timeout": timeout}}
            files, root = url_to_fs(remote.url, **options)
        except (ImportError, ValueError) as error:  # the package of the store is missing, or the scheme is unknown
            hint = "Install the package of the store: s3fs, gcsfs, adlfs, paramiko, aiohttp..."
            raise UsageError(f"{remote.shown} cannot be opened: {remote.clean(str(error))}", hint) from error
    if remote.scheme in _WEB and remote.url.endswith(("/", JOB_EXTENSION)):
        raise UsageError(f"{remote.shown}: a web server lists no folders", "Name a session: https://host/run.jaxprof.")
    return files, str(root)


def _seconds(info: Mapping[str, Any]) -> float | None:
    """Return when the file was written, in Unix time; None if the store does not report it."""
    from datetime import datetime
    from email.utils import parsedate_to_datetime

    for key in ("mtime", "LastModified", "last_modified", "updated", "modified", "created", "Last-Modified"):
        value = info.get(key)
        try:
            if isinstance(value, datetime):
                return value.timestamp()
            if isinstance(value, int | float):
                return float(value)
            if isinstance(value, str):
                return (parsedate_to_datetime(value) if "," in value else datetime.fromisoformat(value)).timestamp()
        except (ValueError, OverflowError, OSError):
            continue
    return None


def _relative(path: str, root: str) -> str | None:
    """Return the name of a path below the root, an empty text for the root itself; None for a path that could lead out
    of a folder, and for a hidden one, which no reader needs."""
    root = root.rstrip("/")
    if path in (root, f"{root}/"):
        return ""
    parts = PurePosixPath(path.removeprefix(f"{root}/")).parts
    safe = all(part.isprintable() and not part.startswith((".", "/")) and "\\" not in part for part in parts)
    # Linux takes 4 096 bytes of a whole path.
    return "/".join(parts) if path.startswith(f"{root}/") and safe and len(os.fsencode(path)) < 4000 else None
