"""Sessions on disk: the log of each, which is its file, and the folder in which they are kept."""

from __future__ import annotations

from jaxprof.session.log.entry import Entry
from jaxprof.session.log.library import Library
from jaxprof.session.log.reader import Follower, load, read_outline
from jaxprof.session.log.writer import LogWriter, new_header

__all__ = ["Entry", "Follower", "Library", "LogWriter", "load", "new_header", "read_outline"]
