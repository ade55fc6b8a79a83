"""Sessions on disk: the log of each, which is its file, and the folder in which they are kept."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jaxprof.base import lazy_names

if TYPE_CHECKING:
    from jaxprof.session.log.library import Entry, Library
    from jaxprof.session.log.lines import Follower, load
    from jaxprof.session.log.writer import LogWriter, new_header

__all__ = ["Entry", "Follower", "Library", "LogWriter", "load", "new_header"]

_HOME = {
    **dict.fromkeys(("Entry", "Library"), "library"),
    **dict.fromkeys(("Follower", "load"), "lines"),
    **dict.fromkeys(("LogWriter", "new_header"), "writer"),
}

if not TYPE_CHECKING:  # a wrong name is an error for a type checker
    __getattr__ = lazy_names("jaxprof.session.log", _HOME)  # a reader needs no writer
