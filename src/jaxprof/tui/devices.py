"""What the screens know of a device: who it is, whether JAX uses it, and its last readings. No Textual, no psutil here.

Readings come from a source that runs in a thread; this keeps the last minute of them and says what changed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from jaxprof.events import DeviceReading
    from jaxprof.worker import Interpreter

HISTORY = 120
"""Readings kept for the sparkline: a minute at 2 Hz."""


@dataclass(frozen=True, slots=True)
class DeviceFacts:
    """One device, as far as it is known. `usable` is None until JAX was asked."""

    id: str
    name: str = ""
    detail: str = ""
    """What else tells it apart: `16 cores`, `9.0`."""
    usable: bool | None = None
    reason: str = ""
    """Why JAX does not use it."""
    mend: str = ""
    """The command that mends it."""


class DeviceSource(Protocol):
    """Where facts and readings come from. All of it blocks: for threads only."""

    def facts(self) -> list[DeviceFacts]:
        """What the machine has, without JAX: quick."""

    def usable(self, interpreter: Interpreter) -> list[DeviceFacts]:
        """The same after JAX was asked: takes a second or two."""

    def read(self) -> list[DeviceReading]:
        """Readings of now, one for each device."""


@dataclass(slots=True)
class Device:
    """A device with its readings."""

    facts: DeviceFacts
    reading: DeviceReading | None = None
    history: deque[float | None] = field(default_factory=lambda: deque(maxlen=HISTORY))

    def take(self, reading: DeviceReading) -> None:
        """Takes a reading in."""
        self.reading = reading
        self.history.append(reading.utilisation)


class Devices:
    """All devices in their order: those that JAX can use first."""

    def __init__(self) -> None:
        self._by_id: dict[str, Device] = {"cpu:0": Device(DeviceFacts("cpu:0", "CPU"))}
        self.asked = False
        """Whether JAX was asked already."""

    def __iter__(self) -> Iterator[Device]:
        return iter(self._by_id.values())

    def get(self, device: str) -> Device | None:
        """The device of that id, if there is one."""
        return self._by_id.get(device)

    def set_facts(self, facts: Iterable[DeviceFacts]) -> None:
        """Takes what is known in; readings stay."""
        known = self._by_id
        self._by_id = {}
        for fact in sorted(facts, key=lambda fact: (fact.usable is False, fact.id.startswith("cpu"))):
            device = known.get(fact.id) or Device(fact)
            device.facts = fact
            self._by_id[fact.id] = device

    def take(self, readings: Iterable[DeviceReading]) -> None:
        """Takes readings in; one of a device that nobody named adds it."""
        for reading in readings:
            device = self._by_id.get(reading.device)
            if device is None:
                device = self._by_id[reading.device] = Device(DeviceFacts(reading.device))
            device.take(reading)

    def fail(self, reason: str, mend: str) -> None:
        """JAX could not be asked: NumPy still runs on the host."""
        self.asked = True
        for device in self._by_id.values():
            device.facts = replace(device.facts, usable=False, reason=reason, mend=mend)
