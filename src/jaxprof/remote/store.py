"""Read and write one folder or file in a store through fsspec, and turn its failures into errors with a hint.

fsspec's file systems raise whatever their libraries raise. Only this module handles that: it raises a `StoreFailure`,
for callers that go on without the store, and `store_error` makes an error with a hint of it.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Final, TypeVar

from jaxprof.errors import FileRefusedError, JaxprofError, MissingFileError, UsageError
from jaxprof.files import PARTIAL, PRIVATE, open_regular, private_folder, taking_place
from jaxprof.limits import FETCH_TIME, FETCHED, FETCHED_FILES
from jaxprof.remote.place import REFUSED, URLS, RemotePlace

PACKAGES: Final = {
    "s3": "s3fs", "s3a": "s3fs", "gs": "gcsfs", "gcs": "gcsfs", "abfs": "adlfs", "abfss": "adlfs", "az": "adlfs",
    "ssh": "paramiko", "sftp": "paramiko", "http": "aiohttp", "https": "aiohttp", "hdfs": "pyarrow",
    "smb": "smbprotocol", "hf": "huggingface_hub", "oci": "ocifs",
}  # fmt: skip
"""Package that fsspec needs for a scheme."""
_CREDENTIALS: Final = {
    "s3": "`aws configure`, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, give s3fs its credentials.",
    "gs": "`gcloud auth application-default login`, or GOOGLE_APPLICATION_CREDENTIALS, gives gcsfs its credentials.",
    "abfs": "AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY give adlfs its credentials.",
    "ssh": "`ssh HOST` has to work without a password: with a key, or an agent.",
}
_SAME_AS: Final = {"s3a": "s3", "gcs": "gs", "abfss": "abfs", "az": "abfs", "sftp": "ssh"}
_ATOMIC: Final = frozenset(("s3", "s3a", "gs", "gcs", "abfs", "abfss", "az", "oci", "memory"))
"""Schemes of stores in which a file appears whole or not at all. In others it is written under another name and
renamed."""
_REFUSALS: Final = (
    "permission", "access denied", "accessdenied", "forbidden", "unauthorized", "credential", "anonymous",
    "authentication", "invalidaccesskeyid", "signaturedoesnotmatch", "expiredtoken", "401", "403", "login",
)  # fmt: skip
"""Texts in the message or class name of an error that mean that the store refuses access."""
_LOCAL: Final = frozenset(("file", "local"))
"""Schemes of places on this machine, where files are written so that only their owner can read them."""
_NO_STORES: Final = frozenset(
    ("blockcache", "cached", "dask", "data", "filecache", "generic", "jlab", "jupyter", "reference", "simplecache")
)
"""File systems of fsspec that are not used: they copy without a limit, run in other processes, or read files that name
further files, also on this machine."""
_DEEPEST: Final = 8
_PIECE: Final = 1 << 20
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
    """Limits of bytes and time for one refresh of a place, counted while data arrives, because a store may send more
    than the sizes in its listing. A call is given up if no data arrives for a while; it then goes on until it notices
    that, but nothing waits for it, and the next one is tried."""

    def __init__(self, place: RemotePlace) -> None:
        self._shown = place.shown
        self._lock = threading.Lock()
        self._bytes = 0
        self._last = time.monotonic()
        self._end = self._last + FETCH_TIME.most
        self._most = FETCHED.most

    def take(self, count: int) -> None:
        """Count received bytes. Raises FileRefusedError for too many bytes, StoreFailure after the time limit."""
        with self._lock:
            self._last = time.monotonic()
            self._bytes += count
            if self._bytes > self._most:
                raise FileRefusedError(f"what {self._shown} sends is {FETCHED.words}", FETCHED.hint)
        self._due()

    def wait_for(self, call: Callable[[], T]) -> T:
        """Return or raise what `call` does. Raises StoreFailure if the store is silent, or after the time limit."""
        self._last = time.monotonic()
        return _until(self._due, call)

    def _due(self) -> float:
        """Return until when to wait for more. Raises StoreFailure after the time limit."""
        if time.monotonic() >= self._end:
            raise StoreFailure(f"it took {FETCH_TIME.words}. {FETCH_TIME.hint}")
        return min(self._last + _SILENT_SECONDS, self._end)

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


def bounded(call: Callable[[], T], seconds: float) -> T:
    """Return or raise what `call` does. Raises StoreFailure if it takes more than `seconds`; the call then goes on, but
    nothing waits for it."""
    end = time.monotonic() + seconds
    return _until(lambda: end, call)


def _until(due: Callable[[], float], call: Callable[[], T]) -> T:
    """Run `call` in a thread and wait for it until `due`, a time of the monotonic clock that may move meanwhile."""
    done: list[T] = []
    raised: list[BaseException] = []
    began = time.monotonic()

    def work() -> None:
        try:
            done.append(call())
        except BaseException as error:  # noqa: BLE001  raised again below
            raised.append(error)

    thread = threading.Thread(target=work, name="jaxprof-store", daemon=True)
    thread.start()
    while thread.is_alive() and (left := due() - time.monotonic()) > 0:
        thread.join(left)
    if raised and not isinstance(raised[0], TimeoutError):  # a store's own time limit may end just before this one
        raise raised[0]
    if not done:
        raise StoreFailure(f"no answer within {time.monotonic() - began:.0f} s")
    return done[0]


class Store:
    """The file system of a place. It is not thread-safe, except for `fetch` if `takes_several`."""

    def __init__(self, place: RemotePlace) -> None:
        """Find the file system, which may already connect. Raises UsageError for an unknown scheme and for missing
        packages, StoreFailure if the store refuses access or cannot be reached."""
        self.place = place
        self._token = os.urandom(4).hex()
        self._intake = Intake(place)
        self._files, self._root = self._wait_for(lambda: _filesystem(place))

    @property
    def takes_several(self) -> bool:
        """Whether several threads may fetch at once."""
        return bool(getattr(self._files, "async_impl", False)) or self.place.scheme in _LOCAL

    def files(self) -> list[StoredFile]:
        """Return the files in and below the folder, or the one file, without names that are unsafe as local names.
        Raises StoreFailure, and FileRefusedError for more than the limits allow."""
        self._intake = Intake(self.place)
        with self._failures():
            self._files.invalidate_cache()
            if not self.place.is_folder:
                info = self._wait_for(lambda: self._files.info(self._root))
                if info.get("type") != "directory":
                    return self._within_limit([_stored("", self._root, info)])
            files = [self._measured(file) for file in self._below(self._root.rstrip("/"))]
        if not files:
            raise StoreFailure("there is nothing", missing=True)
        return self._within_limit(files)

    def fetch(self, file: StoredFile, target: Path) -> None:
        """Write the content of a file to `target`. Raises StoreFailure, FileRefusedError for more than the limits
        allow, and OSError if the disk refuses."""
        intake = self._intake
        with self._failures():
            if getattr(self._files, "protocol", None) == ("file", "local"):
                _copy(file.path, target, intake)
            else:
                pieces = intake.callback()
                try:
                    intake.wait_for(lambda: self._files.get_file(file.path, str(target), callback=pieces))
                finally:
                    pieces.over = True
        if not target.exists():  # some file systems treat a file that has gone as a folder
            raise StoreFailure("it has gone", missing=True)

    def _within_limit(self, files: list[StoredFile]) -> list[StoredFile]:
        if sum(max(file.size, 0) for file in files) > FETCHED.most:
            raise FileRefusedError(f"{self.place.shown} holds {FETCHED.words}", FETCHED.hint)
        return files

    def _wait_for(self, call: Callable[[], T]) -> T:
        """Return the result of a call that fetches no content."""
        return self._intake.wait_for(call)

    def put(self, source: Path, name: str) -> None:
        """Write the file as `name`, so that a reader gets either the former content or all of the new. Raises
        StoreFailure."""
        target = self._path(name)
        folder, _, last = target.rpartition("/")
        atomic = self.place.scheme in _ATOMIC
        partial = target if atomic else self._partial(folder, last)
        with self._failures():
            if self.place.scheme in _LOCAL:
                private_folder(Path(folder))
                with taking_place(Path(target), PRIVATE) as fresh:
                    shutil.copyfile(source, fresh)
                return
            if not atomic:
                self._files.makedirs(folder, exist_ok=True)
            self._files.put_file(str(source), partial)
            if not atomic:
                self._rename(partial, target)

    def try_to_write(self, name: str) -> None:
        """Write an empty file in the folder where `name` will be, and delete it. Raises StoreFailure."""
        folder, _, last = self._path(name).rpartition("/")
        probe = self._partial(folder, last)
        with self._failures():
            if self.place.scheme in _LOCAL:
                private_folder(Path(folder))
            if self.place.scheme not in _ATOMIC:
                self._files.makedirs(folder, exist_ok=True)
            self._files.pipe_file(probe, b"")
        with suppress(Exception):  # the permission to write need not include that to delete
            self._files.rm_file(probe)

    def size(self, name: str) -> int:
        """Return the size in bytes of the file of that name. Raises StoreFailure."""
        with self._failures():
            self._files.invalidate_cache()
            return int(self._files.size(self._path(name)))

    def delete(self, file: StoredFile) -> None:
        """Delete a file. Raises StoreFailure."""
        with self._failures():
            self._files.rm_file(file.path)

    def _partial(self, folder: str, name: str) -> str:
        """Return a name that no other writer of the folder can have taken. A file that is sent again gets the same
        name."""
        return f"{folder}/.{name}.{self._token}{PARTIAL}"

    def _below(self, root: str) -> Iterator[StoredFile]:
        """Yield every file below the root. fsspec's `find` does not do: it takes a folder that cannot be listed for
        empty."""
        count, folders = 0, [(root, 0)]
        while folders:
            folder, depth = folders.pop()
            for info in self._wait_for(lambda folder=folder: self._files.ls(folder, detail=True)):  # type: ignore[misc]
                path = str(info["name"]).rstrip("/")
                name = _relative(path, root)
                count += 1
                if count > FETCHED_FILES.most:
                    raise FileRefusedError(f"{self.place.shown} holds {FETCHED_FILES.words}", FETCHED_FILES.hint)
                if not name:
                    continue
                if info.get("type") != "directory":
                    yield _stored(name, path, info)
                elif path != folder and depth < _DEEPEST:
                    folders.append((path, depth + 1))

    def _measured(self, file: StoredFile) -> StoredFile:
        """Return the file with its size, which listings of web servers do not have."""
        if file.size >= 0:
            return file
        try:
            return _stored(file.name, file.path, self._wait_for(lambda: self._files.info(file.path)))
        except StoreFailure:
            raise
        except Exception:  # noqa: BLE001  fetching it reports why
            return file

    def _rename(self, source: str, target: str) -> None:
        try:
            self._files.mv(source, target)
        except Exception:
            if not self._files.exists(target):
                raise
            self._files.rm_file(target)
            self._files.mv(source, target)

    def _path(self, name: str) -> str:
        """Return the path of the file of that name in the file system; for an empty name that of the place itself."""
        return f"{self._root.rstrip('/')}/{name}" if name else self._root

    @contextmanager
    def _failures(self) -> Iterator[None]:
        """Turn whatever the library raises into a StoreFailure."""
        try:
            yield
        except FileRefusedError:
            raise
        except Exception as error:
            raise _failure(self.place, error) from error


def _copy(source: str, target: Path, intake: Intake) -> None:
    """Copy a file of this machine without fsspec, which would wait for a named pipe and copy a device for ever."""
    with open_regular(source) as file, target.open("wb") as copy:
        while piece := file.read(_PIECE):
            intake.take(len(piece))
            copy.write(piece)


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
    from fsspec.registry import known_implementations, registry

    known = {*known_implementations, *registry} - _NO_STORES
    refused = next((layer for layer in place.layers if layer in _NO_STORES), "")
    if refused:
        raise UsageError(f"{refused}:: is no store and no archive", "Name the store itself: jaxprof keeps copies.")
    if place.scheme not in known:
        wanted = "fsspec knows file, gs, s3, abfs, ssh, sftp, http, hdfs and others, and those of installed packages."
        raise UsageError(f"{place.scheme}:// is the scheme of no store that fsspec knows", wanted)
    try:
        files, root = url_to_fs(place.url, **_web_options(place.url))
    except ImportError as error:
        package = PACKAGES.get(place.scheme)
        hint = f"{sys.executable} -m pip install {package}" if package else place.clean(str(error))
        raise UsageError(f"{place.scheme}:// needs {package or 'a package'}, which is not installed", hint) from error
    except Exception as error:
        raise _failure(place, error) from error
    return files, str(root)


def _web_options(url: str) -> dict[str, Any]:
    """Return the options that hold a web server to the limits, also inside a chained URL: `zip::https://host/x.zip`."""
    schemes = set(re.findall(r"(?:^|::)(https?)://", url))
    if not schemes:
        return {}
    from aiohttp import ClientTimeout

    from jaxprof.remote.web import BoundedResponse

    timeout = ClientTimeout(total=None, sock_connect=_SILENT_SECONDS, sock_read=_SILENT_SECONDS)
    client = {"response_class": BoundedResponse, "timeout": timeout}
    return {scheme: {"client_kwargs": client} for scheme in schemes}


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
        scheme = _SAME_AS.get(place.scheme, place.scheme)
        hint = _CREDENTIALS.get(scheme, "Check your credentials and your permission to read and write.")
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


def _relative(path: str, root: str) -> str:
    """Return the name of a path below the root; an empty text for one that could lead out of a folder, and for a hidden
    one, which no reader needs."""
    if not path.startswith(f"{root}/"):
        return ""
    parts = PurePosixPath(path[len(root) + 1 :]).parts
    safe = all(part.isprintable() and not part.startswith((".", "/")) and "\\" not in part for part in parts)
    return "/".join(parts) if parts and safe and len(os.fsencode(path)) < 4000 else ""
