from __future__ import annotations

from collections.abc import Iterable

from jaxprof.events import Event, Header
from jaxprof.session import Session


def fold(header: Header, events: Iterable[Event]) -> Session:
    """The session of these `events`."""
    session = Session(header)
    session.extend(events)
    return session
