"""Keep the columns that queries have derived of closed sessions, so that the next query decodes no line of these.

They stand in one file of the state folder, for the sessions that are kept there. Those of a session count only while
its file is the one that was read, by its inode, its size and both of its times: whoever writes a file can set back when
it was modified, but not when that was done. They count only for the code that derived them, under the same limits. The
file has values alone, which are checked as they are read; whatever does not fit is derived again.

Columns that depend on more than the session's own file are not kept, nor are those of large tables.
"""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Sequence
from contextlib import suppress
from math import inf
from pathlib import Path
from typing import Any, TypeAlias

import msgspec

from jaxprof.base import __version__
from jaxprof.base.files import PRIVATE, open_regular, replace_file
from jaxprof.base.limits import VARIABLE
from jaxprof.facts import Relation
from jaxprof.query.columnar import arrow_rows, facts_read
from jaxprof.session.files import columns_file, sessions_folder

_TABLES = ("sessions", "runs")
_NOT_KEPT = frozenset(("path", "from_file"))
"""Columns about where a session is, and about the list of those that this machine has recorded."""
_MOST_BYTES = 256 << 20
"""Largest file that is written and read: that of a hundred thousand sessions."""
_SETTLED_NS = 2_000_000_000
"""Age from which a further change shows in the times of a file: some file systems count in whole seconds."""
_TEXTS = msgspec.json.Decoder(list[str | None])
_DECODERS: dict[str, msgspec.json.Decoder[Any]] = {
    "VARCHAR": _TEXTS,
    "TIMESTAMP": _TEXTS,
    "DOUBLE": msgspec.json.Decoder(list[float | None]),
    "BIGINT": msgspec.json.Decoder(list[int | None]),
    "BOOLEAN": msgspec.json.Decoder(list[bool | None]),
}
TablesRead: TypeAlias = list[tuple[str, Any, list[str]]]
"""Of a session, each table that a query reads: its name, its rows, and what could not be read."""
_State: TypeAlias = tuple[int, ...]


class _Kept(msgspec.Struct):
    state: _State
    notices: list[str]
    columns: dict[str, dict[str, msgspec.Raw]]
    """Lists of cells, by table and column."""


class _File(msgspec.Struct):
    made_by: str
    sessions: dict[str, _Kept]


class KeptColumns:
    """What is kept of the columns that a query reads, for all sessions."""

    def __init__(self, tables: Sequence[Relation], needed: Collection[str] | None) -> None:
        self._tables = tables
        self._read = {table.name: facts_read(table, needed) for table in tables}
        keys = {fact.key for facts in self._read.values() for fact in facts}
        self._usable = self._read.keys() <= set(_TABLES) and keys.isdisjoint(_NOT_KEPT)
        self._sessions: dict[str, _Kept] = {}
        self._changed = False
        if self._usable:
            self._folder, self._made_by = sessions_folder(), _code_version()
            with suppress(OSError, RecursionError, ValueError), open_regular(columns_file()) as file:
                size = os.fstat(file.fileno()).st_size
                if size <= _MOST_BYTES:
                    found = msgspec.json.decode(file.read(size), type=_File)
                    self._sessions = found.sessions if found.made_by == self._made_by else {}

    def state_of(self, path: Path) -> _State | None:
        """Return a stamp that changes whenever the file of a session does; None if nothing of it may be kept."""
        if self._usable and path.parent == self._folder:
            with suppress(OSError):
                status = path.stat()
                return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns
        return None

    def take(self, path: Path, state: _State | None) -> TablesRead | None:
        """Return the tables of a session in this state; None if a column is not kept."""
        kept = self._sessions.get(path.name)
        if kept is None or kept.state != state:
            return None
        found: TablesRead = []
        try:
            for table in self._tables:
                columns, facts = kept.columns[table.name], self._read[table.name]
                part = {fact.key: _DECODERS[fact.unit.sql].decode(columns[fact.key]) for fact in facts}
                found.append((table.name, arrow_rows(table, [part]), kept.notices))
        except (KeyError, RecursionError, ValueError):
            return None
        return found

    def add(self, path: Path, state: _State | None, found: TablesRead) -> None:
        """Keep the tables of a closed session that had this state before it was read."""
        if state is None or state != self.state_of(path) or time.time_ns() - max(state[-2:]) < _SETTLED_NS:
            return
        kept = self._sessions.get(path.name)
        columns = kept.columns if kept is not None and kept.state == state else {}
        for name, rows, _ in found:
            for fact in self._read[name]:
                cells = rows[fact.key].to_pylist()
                if inf in cells or -inf in cells:  # JSON has no such number
                    return
                columns.setdefault(name, {})[fact.key] = msgspec.Raw(msgspec.json.encode(cells))
        self._sessions[path.name] = _Kept(state, found[0][2], columns)
        self._changed = True

    def write(self) -> None:
        """Write what was added, without what is kept of sessions that are gone; nothing where that cannot be done."""
        if not self._changed:
            return
        with suppress(OSError):
            there = set(os.listdir(self._folder))
            kept = {name: each for name, each in self._sessions.items() if name in there}
            data = msgspec.json.encode(_File(self._made_by, kept))
            if len(data) <= _MOST_BYTES:
                with replace_file(columns_file(), PRIVATE, only_regular=True) as fresh:
                    fresh.write_bytes(data)


def _code_version() -> str:
    """Return an identification of the code that derives columns, and of the limits for what it reads."""
    files = (f"{folder}/{name}" for folder, _, names in os.walk(Path(__file__).parents[1]) for name in names)
    times = [os.stat(file).st_mtime_ns for file in files if file.endswith(".py")]  # 3 ms; a checkout keeps its version
    return f"{__version__} {len(times)} {sum(times)} {os.environ.get(VARIABLE, '')}"
