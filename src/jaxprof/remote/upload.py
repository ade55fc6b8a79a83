"""Upload a recording to a store while it grows, with a thread that only reads the local files.

The local folder (the spool) is complete at any time, whatever the store does. A file is sent whole, from a snapshot,
when it has grown by a quarter, or after a time that is longer for larger files. In all, less than five times its final
size is sent, plus `RATE`. Only this thread waits for a store that is slow or gone.
"""

from __future__ import annotations

import os
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from jaxprof.errors import UsageError, system_words
from jaxprof.remote.place import RemotePlace
from jaxprof.remote.store import Store, StoreFailure

GROWTH: Final = 1.25
"""A file is sent again when its size has grown by this factor."""
SHORTEST_SECONDS: Final = 5.0
"""Shortest time between two uploads of a file, however fast it grows."""
USUAL_SECONDS: Final = 60.0
"""Time after which a file that has grown by less than `GROWTH` is sent again."""
RATE: Final = (4 << 20) / 60.0
"""Most bytes a second that uploads of one file take, besides those for its growth."""
LOOK_SECONDS: Final = 2.0
PAUSE_SECONDS: Final = 5.0
"""Time after a failure until the next attempt."""


@dataclass(frozen=True, slots=True)
class Version:
    """Size and time of a file at one moment."""

    size: int
    modified_ns: int


@dataclass(frozen=True, slots=True)
class SentFile:
    """The part of a file that is in the store."""

    version: Version
    sent_bytes: int
    """Size of the snapshot that was sent."""
    at_seconds: float
    """When the file was sent, on the monotonic clock."""


@dataclass(frozen=True, slots=True)
class UploadOutcome:
    """How the upload ended."""

    bytes: int
    """Bytes of the files that are in the store, whose sizes there were checked."""
    unsent: tuple[str, ...]
    """Names of files that are not in the store, or not in their last version."""
    failure: str
    """Last failure of the store if a file is unsent; otherwise empty."""


def is_due(now: Version, sent: SentFile | None, seconds: float) -> bool:
    """Return whether a file that may still grow is sent now. `seconds`: time since it was sent last."""
    if sent is None:
        return now.size > 0
    if now == sent.version or seconds < SHORTEST_SECONDS:
        return False
    return now.size >= GROWTH * sent.version.size or seconds >= max(USUAL_SECONDS, now.size / RATE)


class Uploader:
    """Uploads one file, or all files of a folder, to a place. Call `finish` once, when no file grows any more."""

    def __init__(self, place: RemotePlace, source: Path) -> None:
        """`source`: the file or folder that is recorded. It need not exist yet."""
        self.place = place
        self.source = source
        self._store: Store | None = None
        self._sent: dict[str, SentFile] = {}
        self._verified: set[str] = set()
        self._failure = ""
        self._ending = threading.Event()
        self._given_up = threading.Event()
        self._thread = threading.Thread(target=self._work, name="jaxprof-upload", daemon=True)

    def start(self) -> None:
        """Begin to upload."""
        self._thread.start()

    def finish(self, wait_seconds: float, waiting: Callable[[int, int], None] | None = None) -> UploadOutcome:
        """Send the rest, for at most `wait_seconds`; an interrupt ends the wait. `waiting`: called if it takes longer
        than a moment, with the number of files that are in the store, and the number of all files."""
        self._ending.set()
        moment = min(LOOK_SECONDS, wait_seconds)
        try:
            self._thread.join(moment)
            if waiting is not None and self._thread.is_alive():
                waiting(len(self._verified), len(list(self._files())))
            self._thread.join(wait_seconds - moment)
        except KeyboardInterrupt:
            self._failure = self._failure or "interrupted"
        self._given_up.set()
        there = {name: version for name, _, version in self._files()}
        unsent = tuple(sorted(name or self.source.name for name in there.keys() - self._verified))
        failure = self._failure or f"it took longer than {wait_seconds:.0f} s"
        sent = sum(self._sent[name].sent_bytes for name in self._verified & there.keys())
        return UploadOutcome(sent, unsent, failure if unsent else "")

    def _work(self) -> None:
        while not self._given_up.is_set():
            ending = self._ending.is_set()
            try:
                if self._round(ending=ending):
                    return
                self._ending.wait(LOOK_SECONDS)
                continue
            except StoreFailure as failure:
                self._failure = failure.words
                if ending and failure.refused:
                    return
            except (OSError, UsageError) as error:  # a problem of the local folder, which still has everything
                self._failure = system_words(error) if isinstance(error, OSError) else error.what
                if ending:
                    return
            (self._given_up if ending else self._ending).wait(PAUSE_SECONDS)

    def _round(self, *, ending: bool) -> bool:
        """Send the files that are due. Returns whether the upload is over."""
        for name, path, version in sorted(self._files(), key=_roll_ups_first):
            sent = self._sent.get(name)
            since = time.monotonic() - sent.at_seconds if sent is not None else 0.0
            if self._given_up.is_set():
                return True
            if is_due(version, sent, since) or (ending and (sent is None or version != sent.version)):
                self._send(name, path, version)
            if ending and name not in self._verified:
                self._verify(name)
        return ending

    def _send(self, name: str, path: Path, version: Version) -> None:
        snapshot = self.source.with_name(f".{self.source.name}.snapshot")
        try:
            shutil.copyfile(path, snapshot)
            size = snapshot.stat().st_size
            self._open().put(snapshot, name)
        finally:
            snapshot.unlink(missing_ok=True)
        self._sent[name] = SentFile(version, size, time.monotonic())

    def _verify(self, name: str) -> None:
        """Raise StoreFailure if the size of a file in the store is not that of what was sent."""
        expected, stored = self._sent[name].sent_bytes, self._open().size(name)
        if stored != expected:
            del self._sent[name]
            raise StoreFailure(f"of {expected} bytes of {name or self.source.name} the store has {stored}")
        self._verified.add(name)

    def _open(self) -> Store:
        if self._store is None:
            self._store = Store(self.place)
        return self._store

    def _files(self) -> Iterator[tuple[str, Path, Version]]:
        """Yield name, path and version of the files to upload, without hidden files, which are being written."""
        if self.source.is_file():
            yield "", self.source, _version(self.source)
            return
        for folder, inside, names in os.walk(self.source):
            inside[:] = [name for name in inside if not name.startswith(".")]
            for name in names:
                path = Path(folder, name)
                if name.startswith(".") or path.is_symlink() or not path.is_file():
                    continue
                yield path.relative_to(self.source).as_posix(), path, _version(path)


def _version(path: Path) -> Version:
    status = path.stat()
    return Version(status.st_size, status.st_mtime_ns)


def _roll_ups_first(file: tuple[str, Path, Version]) -> tuple[bool, str]:
    name, _, _ = file
    return not name.startswith("rollup/"), name
