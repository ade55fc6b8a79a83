from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from jaxprof.events import Event, Header
from jaxprof.session import LogWriter, Session


def fold(header: Header, events: Iterable[Event]) -> Session:
    """The session of these `events`."""
    session = Session(header)
    session.extend(events)
    return session


def changed(events: Iterable[Event], kind: type[Event], **fields: Any) -> list[Event]:
    """The events, of which those of a kind have other values in these fields."""
    return [replace(event, **fields) if isinstance(event, kind) else event for event in events]


def written(path: Path, events: Iterable[Event], header: Header) -> Path:
    """The closed file of a session of these `events`."""
    writer = LogWriter(header, path)
    for event in events:
        writer.append(event)
    writer.close()
    return path
