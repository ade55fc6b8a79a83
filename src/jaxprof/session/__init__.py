"""The fold: events in, the state of a session out. The live screen, a loaded file and a followed file share it. And
sessions on disk: the log of each, which is its file, and the folder in which they are kept."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jaxprof.base import lazy_names

if TYPE_CHECKING:
    from jaxprof.session.fold import Session
    from jaxprof.session.library import Entry, Library
    from jaxprof.session.lines import Follower, load
    from jaxprof.session.run import Phase, RecordedProgram, Run, RunEnd, Series
    from jaxprof.session.writer import LogWriter, new_header

_HOME = {
    "Session": "fold",
    **dict.fromkeys(("Phase", "RecordedProgram", "Run", "RunEnd", "Series"), "run"),
    **dict.fromkeys(("Follower", "load"), "lines"),
    **dict.fromkeys(("LogWriter", "new_header"), "writer"),
    **dict.fromkeys(("Entry", "Library"), "library"),
}
__all__ = [
    "Entry",
    "Follower",
    "Library",
    "LogWriter",
    "Phase",
    "RecordedProgram",
    "Run",
    "RunEnd",
    "Series",
    "Session",
    "load",
    "new_header",
]

if not TYPE_CHECKING:  # a wrong name is an error for a type checker
    __getattr__ = lazy_names("jaxprof.session", _HOME)  # listing sessions folds none, and a reader needs no writer
