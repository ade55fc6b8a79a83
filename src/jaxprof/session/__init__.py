"""The fold: events in, the state of a session out. The live screen, a loaded file and a followed file share it."""

from __future__ import annotations

from jaxprof.session.fold import Session, fold
from jaxprof.session.program import Program
from jaxprof.session.run import Phase, Run, Series
from jaxprof.session.texts import Texts

__all__ = ["Phase", "Program", "Run", "Series", "Session", "Texts", "fold"]
