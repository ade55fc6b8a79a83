"""Upload a recording to a store while it grows, with a thread that only reads the local files.

The local folder (the spool) is complete at any time, whatever the store does. A file is sent whole, from a snapshot,
when it has grown by a quarter, or after a time that is longer for larger files. In all, less than five times its final
size is sent, plus `RATE`. Only this thread waits for a store that is slow or gone.
"""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple

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


class Sent(NamedTuple):
    """A file whose content is in the store, where its size was checked."""

    size: int
    modified_ns: int
    at_seconds: float
    """When it was sent, on the monotonic clock."""


def is_due(size: int, sent_size: int, seconds: float) -> bool:
    """Return whether a file that has changed is sent although it may grow further. `sent_size`: its size when it was
    sent, `seconds` ago; 0 if it was not."""
    if not sent_size:
        return size > 0
    wait = SHORTEST_SECONDS if size >= GROWTH * sent_size else max(USUAL_SECONDS, size / RATE)
    return seconds >= wait


class Uploader:
    """Uploads one file, or all files of a folder, to a place. Call `finish` once, when no file grows any more."""

    def __init__(self, place: RemotePlace, source: Path) -> None:
        """`source`: the file or folder that is recorded. It need not exist yet."""
        self.place = place
        self.source = source
        self.failure = ""
        """Why the last upload failed; empty if none has."""
        self._store: Store | None = None
        self._sent: dict[str, Sent] = {}
        self._ending = threading.Event()
        self._given_up = threading.Event()
        self._thread = threading.Thread(target=self._work, name="jaxprof-upload", daemon=True)

    @property
    def sent_bytes(self) -> int:
        """Bytes of the files that are in the store."""
        return sum(sent.size for sent in self._sent.values())

    def start(self) -> None:
        """Begin to upload."""
        self._thread.start()

    def finish(self, wait_seconds: float, waiting: Callable[[int, int], None] | None = None) -> list[str]:
        """Send the rest, for at most `wait_seconds`; an interrupt ends the wait. Return the names of the files that are
        not in the store in their last version; `failure` says why. `waiting`: called if it takes longer than a moment,
        with the number of files that are in the store, and the number of all files."""
        self._ending.set()
        moment = min(LOOK_SECONDS, wait_seconds)
        try:
            self._thread.join(moment)
            if waiting is not None and self._thread.is_alive():
                count = len(self._files())
                waiting(count - len(self._unsent()), count)
            self._thread.join(wait_seconds - moment)
        except KeyboardInterrupt:
            self.failure = self.failure or "interrupted"
        self._given_up.set()
        self.failure = self.failure or f"it took longer than {wait_seconds:.0f} s"
        return [path.name for path in self._unsent()]

    def _work(self) -> None:
        while not self._given_up.is_set():
            ending = self._ending.is_set()
            try:
                self._round(ending=ending)
                if ending:
                    return
                self._ending.wait(LOOK_SECONDS)
                continue
            except StoreFailure as failure:
                self.failure = failure.words
                if ending and failure.refused:
                    return
            except (OSError, UsageError) as error:  # a problem of the local folder, which still has everything
                self.failure = system_words(error) if isinstance(error, OSError) else error.what
                if ending:
                    return
            (self._given_up if ending else self._ending).wait(PAUSE_SECONDS)

    def _round(self, *, ending: bool) -> None:
        """Send the files that have changed, and unless no file grows any more, are due."""
        for path in self._unsent():
            sent = self._sent.get(self._name(path), Sent(0, 0, 0.0))
            if self._given_up.is_set():
                return
            if ending or is_due(path.stat().st_size, sent.size, time.monotonic() - sent.at_seconds):
                self._send(path)

    def _send(self, path: Path) -> None:
        name, status = self._name(path), path.stat()
        snapshot = self.source.with_name(f".{self.source.name}.snapshot")
        if self._store is None:
            self._store = Store(self.place)
        try:
            shutil.copyfile(path, snapshot)
            self._store.put(snapshot, name)
            expected, stored = snapshot.stat().st_size, self._store.size(name)
        finally:
            snapshot.unlink(missing_ok=True)
        if stored != expected:
            raise StoreFailure(f"of {expected} bytes of {path.name} the store has {stored}")
        self._sent[name] = Sent(status.st_size, status.st_mtime_ns, time.monotonic())

    def _unsent(self) -> list[Path]:
        """Return the files that are not in the store, or have changed since."""
        return [path for path in self._files() if self._sent.get(self._name(path), (0, 0))[:2] != _version(path)]

    def _files(self) -> list[Path]:
        """Return the files to upload, roll-ups first, without hidden files, which are being written."""
        found = [self.source] if self.source.is_file() else self.source.rglob("*")
        files = [path for path in found if path.is_file() and not path.is_symlink()]
        shown = [path for path in files if not f"/{self._name(path)}".count("/.")]
        return sorted(shown, key=lambda path: (not self._name(path).startswith("rollup/"), path))

    def _name(self, path: Path) -> str:
        """Return the name of a file in the store: its path in the folder, or an empty text for the file itself."""
        return "" if path == self.source else path.relative_to(self.source).as_posix()


def _version(path: Path) -> tuple[int, int]:
    status = path.stat()
    return status.st_size, status.st_mtime_ns
