"""Read one folder or file in a store through fsspec, and turn its failures into errors with a hint.

fsspec's file systems raise whatever their libraries raise. Only this module handles that: it raises a `StoreFailure`,
for callers that go on without the store, and `store_error` makes an error with a hint of it.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Final, TypeVar

from jaxprof.errors import FileRefusedError, JaxprofError, MissingFileError, UsageError
from jaxprof.files import open_regular
from jaxprof.limits import FETCH_TIME, FETCHED, FETCHED_FILES
from jaxprof.remote.place import REFUSED, URLS, RemotePlace
from jaxprof.session_names import JOB_EXTENSION

_REFUSALS: Final = (
    "permission", "access denied", "accessdenied", "forbidden", "unauthorized", "credential", "anonymous",
    "authentication", "invalidaccesskeyid", "signaturedoesnotmatch", "expiredtoken", "401", "403", "login",
)  # fmt: skip
"""Texts in the message or class name of an error that mean that the store refuses access."""
_NO_STORES: Final = frozenset(
    ("blockcache", "cached", "dask", "data", "filecache", "generic", "jlab", "jupyter", "reference", "simplecache")
)
"""File systems of fsspec that are not used: they copy without a limit, run in other processes, or read files that name
further files, also on this machine. A chain of file systems may hold any of them."""
_DEEPEST: Final = 8
_PIECE: Final = 1 << 20
_WEB: Final = frozenset(("http", "https"))
_LOCAL: Final = ("file", "local")
_SILENT_SECONDS: Final = 60.0
"""Time after which a store that sends nothing is given up."""

T = TypeVar("T")


class StoreFailure(Exception):
    """The store did not do what was requested. `refused`: a later attempt would fail, too. `missing`: the file or
    folder does not exist."""

    def __init__(self, words: str, *, refused: bool = False, missing: bool = False) -> None:
        super().__init__(words)
        self.words = words
        self.refused = refused
        self.missing = missing


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file in a listing of the store."""

    name: str
    """Path relative to the place, with slashes; empty if the place itself is the file."""
    path: str
    """Path in fsspec's file system."""
    size: int
    """Size in bytes; -1 if the store does not report it."""
    modified_seconds: float | None
    """When the file was written, in Unix time by the store's clock; None if unknown."""


class Intake:
    """Limits of bytes and time for what is asked of a store, counted while data arrives, because a store may send more
    than the sizes in its listing. A call is given up if no data arrives for a while; it then goes on until it notices
    that, but nothing waits for it, and the next one is tried."""

    def __init__(self, place: RemotePlace) -> None:
        self._shown = place.shown
        self._lock = threading.Lock()
        self._bytes = 0
        self._last = time.monotonic()
        self._end = self._last + FETCH_TIME.most
        self._late = f"it took {FETCH_TIME.words}. {FETCH_TIME.hint}"

    def take(self, count: int) -> None:
        """Count received bytes. Raises FileRefusedError for too many bytes, StoreFailure after the time limit."""
        with self._lock:
            self._last = time.monotonic()
            self._bytes += count
        if self._bytes > FETCHED.most:
            raise FileRefusedError(f"what {self._shown} sends is {FETCHED.words}", FETCHED.hint)
        if self._last >= self._end:
            raise StoreFailure(self._late)

    def wait_for(self, call: Callable[[], T]) -> T:
        """Return or raise what `call` does, in a thread. Raises StoreFailure if the store is silent, or after the time
        limit."""
        done: list[T] = []
        raised: list[BaseException] = []

        def work() -> None:
            try:
                done.append(call())
            except BaseException as error:  # noqa: BLE001  raised again below
                raised.append(error)

        thread = threading.Thread(target=work, name="jaxprof-store", daemon=True)
        self._last = began = time.monotonic()
        thread.start()
        while thread.is_alive() and (left := min(self._last + _SILENT_SECONDS, self._end) - time.monotonic()) > 0:
            thread.join(left)
        if raised and not isinstance(raised[0], TimeoutError):  # a store's own time limit may end just before this one
            raise raised[0]
        if not done:
            now = time.monotonic()
            raise StoreFailure(self._late if now >= self._end else f"no answer within {now - began:.0f} s")
        return done[0]

    def callback(self) -> Any:
        """Return a callback for one call of fsspec's file systems, which counts each piece, and ends a call that is
        `over` for who waited for it."""
        from fsspec.callbacks import Callback

        take = self.take

        class Counted(Callback):  # type: ignore[misc]
            over = False

            def relative_update(self, inc: int = 1) -> None:
                super().relative_update(inc)
                if self.over:
                    raise StoreFailure("it was given up")
                take(inc)

        return Counted()


class Store:
    """The file system of a place. It is not thread-safe, except for `fetch` if `takes_several`."""

    def __init__(self, place: RemotePlace) -> None:
        """Find the file system, which may already connect. Raises UsageError for an unknown scheme and for missing
        packages, StoreFailure if the store refuses access or cannot be reached."""
        self.place = place
        self._intake = Intake(place)
        self._files, self._root = self._intake.wait_for(lambda: _filesystem(place))
        self.takes_several = bool(getattr(self._files, "async_impl", False))

    def files(self) -> list[StoredFile]:
        """Return the files in and below the folder, or the one file, without names that are unsafe as local names.
        Raises StoreFailure, and FileRefusedError for more than the limits allow."""
        self._intake = Intake(self.place)
        with self._failures():
            listed = self._intake.wait_for(self._listed)
        if len(listed) > FETCHED_FILES.most:
            raise FileRefusedError(f"{self.place.shown} holds {FETCHED_FILES.words}", FETCHED_FILES.hint)
        named = ((_relative(path, self._root), path, info) for path, info in listed.items())
        files = [_stored(name, path, info) for name, path, info in named if name is not None]
        if not files:
            raise StoreFailure("there is nothing", missing=True)
        if sum(max(file.size, 0) for file in files) > FETCHED.most:
            raise FileRefusedError(f"{self.place.shown} holds {FETCHED.words}", FETCHED.hint)
        return files

    def _listed(self) -> dict[str, Any]:
        """Return what the store says of each file, by its path."""
        self._files.invalidate_cache()
        info = self._files.info(self._root)
        if info.get("type") != "directory":
            return {self._root: info}
        self._files.ls(self._root, detail=True)  # raises for a folder that `find` would take for empty
        found: dict[str, Any] = self._files.find(self._root, maxdepth=_DEEPEST, detail=True)
        return found

    def fetch(self, file: StoredFile, target: Path) -> None:
        """Write the content of a file to `target`. Raises StoreFailure, FileRefusedError for more than the limits
        allow, and OSError if the disk refuses."""
        pieces = self._intake.callback()
        with self._failures():
            try:
                self._intake.wait_for(lambda: self._receive(file.path, str(target), pieces))
            finally:
                pieces.over = True
        if not target.exists():  # some file systems treat a file that has gone as a folder
            raise StoreFailure("it has gone", missing=True)

    def _receive(self, path: str, target: str, pieces: Any) -> None:
        """Write a file to `target`, and report to `pieces` what has arrived. fsspec reports nothing by SSH, waits for a
        named pipe of this machine, and copies a device for ever."""
        if self.place.scheme in _LOCAL:
            with open_regular(path) as file, open(target, "wb") as copy:
                while piece := file.read(_PIECE):
                    pieces.relative_update(len(piece))
                    copy.write(piece)
        elif self.place.scheme in ("ssh", "sftp"):
            self._files.ftp.get(path, target, callback=lambda done, _: pieces.relative_update(done - pieces.value))
        else:
            self._files.get_file(path, target, callback=pieces)

    @contextmanager
    def _failures(self) -> Iterator[None]:
        """Turn whatever the library raises into a StoreFailure."""
        try:
            yield
        except FileRefusedError:
            raise
        except Exception as error:
            raise _failure(self.place, error) from error


def _filesystem(place: RemotePlace) -> tuple[Any, str]:
    if os.environ.get(URLS) == REFUSED:
        raise UsageError(
            f"{place.shown} is a URL, and URLs are not allowed here",
            "`jaxprof agent mcp --allow-urls` allows its tools them.",
        )
    try:
        from fsspec.core import url_to_fs
    except ImportError as error:
        hint = f"{sys.executable} -m pip install 'fsspec>=2024.6'"
        raise UsageError(f"{place.shown} needs fsspec, which is not installed", hint) from error
    if "::" in place.url.partition("?")[0] or place.scheme in _NO_STORES:
        raise UsageError(f"{place.shown} is no store", "Name the store itself: jaxprof keeps copies.")
    try:
        files, root = url_to_fs(place.url, **(_web_options() if place.scheme in _WEB else {}))
    except (ImportError, ValueError) as error:  # the package of the store is missing, or nobody knows the scheme
        hint = "Install the package of the store: s3fs, gcsfs, adlfs, paramiko, aiohttp..."
        raise UsageError(f"{place.shown} cannot be opened: {place.clean(str(error))}", hint) from error
    except Exception as error:
        raise _failure(place, error) from error
    if place.scheme in _WEB and place.url.endswith(("/", JOB_EXTENSION)):
        raise UsageError(f"{place.shown}: a web server lists no folders", "Name a session: https://host/run.jaxprof.")
    return files, str(root)


def _web_options() -> dict[str, Any]:
    """Return options with which no file is too long for a web server."""
    from aiohttp import ClientTimeout

    return {"client_kwargs": {"timeout": ClientTimeout(total=None)}}  # `Intake` has the limits


def _failure(place: RemotePlace, error: Exception) -> StoreFailure:
    """Return an exception of a library as a StoreFailure, in one line and without secrets."""
    if isinstance(error, StoreFailure):
        return error
    cause = error.__cause__ or error.__context__
    if isinstance(error, FileNotFoundError) and isinstance(cause, OSError) and not error.strerror:
        error = cause  # fsspec raises FileNotFoundError for every problem with a web server
    kind = type(error).__name__
    text = error.strerror if isinstance(error, OSError) and error.strerror else str(error) or kind
    message = " ".join(place.clean(text).split())[:300]
    if isinstance(error, FileNotFoundError) or "NoSuchBucket" in kind:
        return StoreFailure(f"there is nothing ({message})" if message else "there is nothing", missing=True)
    about = f"{kind} {message}".lower()
    refused = isinstance(error, PermissionError) or any(word in about for word in _REFUSALS)
    return StoreFailure(message or kind, refused=refused)


def store_error(place: RemotePlace, failure: StoreFailure) -> JaxprofError:
    """Return a failure as an error that ends a command."""
    if failure.missing:
        return MissingFileError(f"there is nothing at {place.shown}", "Check the URL, down to the last folder.")
    if failure.refused:
        hint = "Check your credentials and your permission to read."
        return FileRefusedError(f"{place.shown} refuses access: {failure.words}", hint)
    return FileRefusedError(f"{place.shown} cannot be reached: {failure.words}", "Check the network and the URL.")


def _stored(name: str, path: str, info: Mapping[str, Any]) -> StoredFile:
    size = info.get("size")
    return StoredFile(name, path, -1 if size is None else int(size), _seconds(info))


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
    return "/".join(parts) if path.startswith(f"{root}/") and safe and len(os.fsencode(path)) < 4000 else None
