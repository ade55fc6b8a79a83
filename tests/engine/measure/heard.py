"""A reporter whose events are kept, and what is asked of them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from jaxprof.engine.measure.control import Reporter, RunControl
from jaxprof.events import Event, PhaseEnded


def reporter(control: RunControl | None = None) -> tuple[Reporter, list[Event]]:
    """A reporter, and the events that it will have passed on."""
    events: list[Event] = []
    return Reporter(events.append, control or RunControl()), events


def of(events: Iterable[Event], kind: type[Any]) -> list[Any]:
    """The events of one kind."""
    return [event for event in events if isinstance(event, kind)]


def only(events: Iterable[Event], kind: type[Any]) -> Any:
    """The one event of its kind."""
    (found,) = of(events, kind)
    return found


def phases(events: Iterable[Event]) -> list[str]:
    """The phases that ended, in that order."""
    return [event.phase for event in of(events, PhaseEnded)]
