"""The fold: events in, the state of a session out. The live screen, a loaded file and a followed file share it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jaxprof.base import lazy_names

if TYPE_CHECKING:
    from jaxprof.session.fold import Session
    from jaxprof.session.run import Phase, RecordedProgram, Run, RunEnd, Series

__all__ = ["Phase", "RecordedProgram", "Run", "RunEnd", "Series", "Session"]

_HOME = {
    "Session": "fold",
    **dict.fromkeys(("Phase", "RecordedProgram", "Run", "RunEnd", "Series"), "run"),
}

if not TYPE_CHECKING:  # a wrong name is an error for a type checker
    __getattr__ = lazy_names("jaxprof.session", _HOME)  # listing sessions on disk folds none
