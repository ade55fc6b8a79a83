"""The messages between the app's threads, its session and its screens."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from textual.message import Message

if TYPE_CHECKING:
    from jaxprof.errors import JaxprofError
    from jaxprof.events import Event
    from jaxprof.session import Session


@dataclass
class SessionChanged(Message, bubble=False):
    """Events were folded into `app.session`, or another session was opened. Posted to the screens in view.

    A screen derives the results of `runs` again and updates what it shows of them. `replaced`: this is another session,
    and nothing of the previous one is valid.
    """

    runs: frozenset[str]
    replaced: bool = False


@dataclass
class EventsArrived(Message):
    """A batch of events of a session that this app writes, as its log has them. Posted by the scheduler's thread."""

    events: list[Event]
    session: Session
    """Session of these events; the app may have started another one since."""


@dataclass
class LiveChanged(Message, bubble=False):
    """The queue of runs became empty or busy. The app passes the message on to the screen in view."""

    busy: bool


@dataclass
class StorageFailed(Message):
    """The session can no longer be written; it stays in memory until the user chooses another file."""

    error: JaxprofError


@dataclass
class Failed(Message):
    """Work in a thread failed; the error has a hint."""

    error: JaxprofError
