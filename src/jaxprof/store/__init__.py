"""Sessions on disk: the log that is appended to, and the folder that keeps them. A session file is the event log."""

from __future__ import annotations

from jaxprof.store.library import Entry, Library
from jaxprof.store.reader import Follower, load
from jaxprof.store.writer import LogWriter, new_header

__all__ = ["Entry", "Follower", "Library", "LogWriter", "load", "new_header"]
