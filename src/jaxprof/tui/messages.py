"""The messages between the app's threads, its session and its screens."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.message import Message

if TYPE_CHECKING:
    from pathlib import Path

    from jaxprof.errors import JaxprofError
    from jaxprof.events import DeviceReading, Event
    from jaxprof.session import Session
    from jaxprof.store import Entry, Follower
    from jaxprof.tui.devices import DeviceFacts
    from jaxprof.workloads.model import WorkloadCard


class SessionChanged(Message, bubble=False):
    """Events were folded into `app.session`, or another session was opened. Posted to the screens in view.

    A screen reads `results` again for `runs` and updates what it shows of them; `replaced` says that it is another
    session, and that nothing of the old one holds.
    """

    def __init__(self, runs: frozenset[str], *, replaced: bool = False) -> None:
        super().__init__()
        self.runs = runs
        self.replaced = replaced


class EventsArrived(Message):
    """A batch of events of a session that this app writes, as they stand in its log. Posted by its thread."""

    def __init__(self, events: list[Event], made: list[Session]) -> None:
        super().__init__()
        self.events = events
        self._made = made

    @property
    def session(self) -> Session | None:
        """The session that they belong to: this app may have begun another since."""
        return self._made[0] if self._made else None


class LiveChanged(Message, bubble=False):
    """The queue of runs became empty or busy. The app passes it on to the screen in view."""

    def __init__(self, busy: bool) -> None:
        super().__init__()
        self.busy = busy


class StorageFailed(Message):
    """The session cannot be written any more; it is kept in memory until another place is chosen."""

    def __init__(self, error: JaxprofError) -> None:
        super().__init__()
        self.error = error


class Failed(Message):
    """Something that was done in a thread failed, with what mends it."""

    def __init__(self, error: JaxprofError) -> None:
        super().__init__()
        self.error = error


class SessionOpened(Message):
    """A session was read in a thread and can be shown; `written` while another process goes on writing it."""

    def __init__(self, follower: Follower[Session], path: Path, *, written: bool, go: str) -> None:
        super().__init__()
        self.follower = follower
        self.path = path
        self.written = written
        self.go = go
        """The mode to go to."""


class ReadingsTaken(Message, bubble=False):
    """Live readings of all devices, taken by the monitor's thread."""

    def __init__(self, readings: list[DeviceReading]) -> None:
        super().__init__()
        self.readings = readings


class DevicesFound(Message):
    """The machine's devices are known; `asked` when JAX has said which of them it uses, or could not."""

    def __init__(self, facts: list[DeviceFacts], *, asked: bool, error: JaxprofError | None = None) -> None:
        super().__init__()
        self.facts = facts
        self.asked = asked
        self.error = error


class DevicesChanged(Message, bubble=False):
    """`app.devices` has other devices or other readings. Posted to the screen in view."""


class CardsLoaded(Message):
    """Descriptions of workloads were read."""

    def __init__(self, cards: list[WorkloadCard]) -> None:
        super().__init__()
        self.cards = cards


class EntriesRead(Message):
    """The kept sessions were listed."""

    def __init__(self, entries: list[Entry], size_bytes: int, folder: Path) -> None:
        super().__init__()
        self.entries = entries
        self.size_bytes = size_bytes
        """Of the whole folder."""
        self.folder = folder
