from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from jaxprof.events import Event, Header
from jaxprof.session import Session
from jaxprof.session.log import LogWriter


def fold(header: Header, events: Iterable[Event]) -> Session:
    """The session of these `events`."""
    session = Session(header)
    session.extend(events)
    return session


def written(path: Path, events: Iterable[Event], header: Header) -> Path:
    """The closed file of a session of these `events`."""
    writer = LogWriter(header, path)
    for event in events:
        writer.append(event)
    writer.close()
    return path
