"""Sends a recording to a store while it grows: a thread that only reads what others write here.

The folder here (the spool) is complete at any time, whatever the store does. A file is sent whole, from a snapshot,
when it has grown by a quarter, or after a while that is longer for larger files: what is sent in all stays below five
times its final size and `RATE` besides. A store that is slow or gone is waited for by this thread alone.
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
from jaxprof.session_names import EXTENSION

GROWTH: Final = 1.25
SHORTEST_SECONDS: Final = 5.0
"""Between two times of one file, however fast it grows."""
USUAL_SECONDS: Final = 60.0
"""After which a file is sent again that has changed by less."""
RATE: Final = (4 << 20) / 60.0
"""Bytes a second that one file costs at most, besides those for its growth."""
LOOK_SECONDS: Final = 2.0
_FIRST_PAUSE_SECONDS: Final = 1.0
_LONGEST_PAUSE_SECONDS: Final = 60.0
_PAUSE_AT_END_SECONDS: Final = 5.0
_BLOCK: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class Version:
    """A file as it was at a moment."""

    size: int
    modified_ns: int


@dataclass(frozen=True, slots=True)
class SentFile:
    """What of a file is in the store."""

    version: Version
    sent_bytes: int
    """Those of its whole lines."""
    at_seconds: float
    """On the monotonic clock."""


@dataclass(frozen=True, slots=True)
class UploadOutcome:
    """How the upload ended."""

    bytes: int
    """In the store, with their sizes looked at there."""
    unsent: tuple[str, ...]
    """Names of files that are not there, or not as they are here."""
    failure: str
    """What the store said last, where something is unsent."""


def is_due(now: Version, sent: SentFile | None, seconds: float) -> bool:
    """Whether a file is sent now, while it may still grow. `seconds`: since it was sent last."""
    if sent is None:
        return now.size > 0
    if now == sent.version or seconds < SHORTEST_SECONDS:
        return False
    return now.size >= GROWTH * sent.version.size or seconds >= max(USUAL_SECONDS, now.size / RATE)


class Uploader:
    """Uploads one file, or all files of a folder, to a place. `finish` is called once, when nothing grows any more."""

    def __init__(self, place: RemotePlace, source: Path) -> None:
        """`source`: what is recorded here. It need not exist yet."""
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
        """Begin."""
        self._thread.start()

    def finish(self, wait_seconds: float, waiting: Callable[[int, int], None] | None = None) -> UploadOutcome:
        """Send the rest, for at most so long; an interrupt ends the wait. `waiting`: called now and then with how many
        files are in the store, of how many."""
        self._ending.set()
        due = time.monotonic() + wait_seconds
        try:
            while self._thread.is_alive() and (left := due - time.monotonic()) > 0:
                self._thread.join(min(left, LOOK_SECONDS))
                if waiting is not None and self._thread.is_alive():
                    waiting(len(self._verified), len(list(self._files())))
        except KeyboardInterrupt:
            self._failure = self._failure or "interrupted"
        self._given_up.set()
        there = {name: version for name, _, version in self._files()}
        unsent = tuple(sorted(name or self.source.name for name in there.keys() - self._verified))
        failure = self._failure or f"it took longer than {wait_seconds:.0f} s"
        sent = sum(self._sent[name].sent_bytes for name in self._verified & there.keys())
        return UploadOutcome(sent, unsent, failure if unsent else "")

    def _work(self) -> None:
        pause = _FIRST_PAUSE_SECONDS
        while not self._given_up.is_set():
            ending = self._ending.is_set()
            try:
                if self._round(ending=ending):
                    return
                pause = _FIRST_PAUSE_SECONDS
                self._ending.wait(LOOK_SECONDS)
            except StoreFailure as failure:
                self._failure = failure.words
                if ending and failure.refused:
                    return
                self._wait(pause)
                pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)
            except (OSError, UsageError) as error:  # of the folder here: nothing of it is lost
                self._failure = system_words(error) if isinstance(error, OSError) else error.what
                if ending:
                    return
                self._wait(pause)

    def _round(self, *, ending: bool) -> bool:
        """Send what is due; whether all is done."""
        for name, path, version in sorted(self._files(), key=_first):
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
            size = _snapshot(path, version.size, snapshot)
            self._open().put(snapshot, name)
        finally:
            snapshot.unlink(missing_ok=True)
        self._sent[name] = SentFile(version, size, time.monotonic())

    def _verify(self, name: str) -> None:
        """Raises StoreFailure where the store has another size than what was sent."""
        expected, there = self._sent[name].sent_bytes, self._open().size(name)
        if there != expected:
            del self._sent[name]
            raise StoreFailure(f"of {expected} bytes of {name or self.source.name} the store has {there}")
        self._verified.add(name)

    def _open(self) -> Store:
        if self._store is None:
            self._store = Store(self.place)
        return self._store

    def _files(self) -> Iterator[tuple[str, Path, Version]]:
        """Name, path and version of what is to be in the store: no hidden files, which are half written."""
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

    def _wait(self, seconds: float) -> None:
        """A pause after a failure, which the end of the recording cuts short once."""
        if not self._ending.is_set():
            self._ending.wait(seconds)
        else:
            self._given_up.wait(min(seconds, _PAUSE_AT_END_SECONDS))


def _version(path: Path) -> Version:
    status = path.stat()
    return Version(status.st_size, status.st_mtime_ns)


def _first(file: tuple[str, Path, Version]) -> tuple[bool, str]:
    """Roll-ups before sessions."""
    return not file[0].startswith("rollup/"), file[0]


def _snapshot(path: Path, size: int, target: Path) -> int:
    """Copy the first `size` bytes, of a session only whole lines. Returns how many bytes the copy has."""
    with path.open("rb") as source, target.open("wb") as copy:
        left, end = size, 0
        while left and (block := source.read(min(left, _BLOCK))):
            copy.write(block)
            left -= len(block)
            if (at := block.rfind(b"\n")) >= 0:
                end = size - left - len(block) + at + 1
        copied = size - left
        if path.name.endswith(EXTENSION) and end:
            copy.truncate(end)
            copied = end
    return copied


def clear_spool(folder: Path) -> None:
    """Delete a spool folder of which everything is in the store."""
    shutil.rmtree(folder, ignore_errors=True)
