"""The machine's devices in the app: the facts about each, the readings of the last minute, and the threads that read
them.

Everything about a machine blocks, so threads do it and post messages; `DeviceTable` lives on the UI thread.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol

from textual.message import Message

from jaxprof.errors import JaxprofError
from jaxprof.tui.kit.threads import in_daemon
from jaxprof.tui.messages import Failed

if TYPE_CHECKING:
    from collections.abc import Callable

    from textual.app import App

    from jaxprof.devices.inventory.machine import Device
    from jaxprof.events import DeviceReading
    from jaxprof.runner.interpreter import Interpreter


HISTORY = 120
"""Readings that the sparkline keeps: one minute at 2 Hz."""


@dataclass(frozen=True, slots=True)
class DeviceFacts:
    """The facts about one device. `usable` is None until JAX has answered."""

    id: str
    name: str = ""
    detail: str = ""
    """What distinguishes the device: `16 cores`, `sm 9.0`."""
    usable: bool | None = None
    reason: str = ""
    """Why JAX does not use the device; empty if it does."""
    hint: str = ""
    """Command that makes the device usable."""


class DeviceSource(Protocol):
    """Source of facts and readings. Every method blocks: for threads only."""

    def facts(self) -> list[DeviceFacts]:
        """Return the machine's devices without asking JAX, which is quick."""

    def usable(self, interpreter: Interpreter) -> list[DeviceFacts]:
        """Return the devices after asking JAX which of them it uses, which takes a second or two."""

    def read(self) -> list[DeviceReading]:
        """Return the current readings, one for each device."""


@dataclass(slots=True)
class DeviceRow:
    """A device with its readings."""

    facts: DeviceFacts
    reading: DeviceReading | None = None
    history: deque[float | None] = field(default_factory=lambda: deque(maxlen=HISTORY))

    def take(self, reading: DeviceReading) -> None:
        """Add a reading."""
        self.reading = reading
        self.history.append(reading.utilisation)


class DeviceTable:
    """All devices; those that JAX can use come first."""

    def __init__(self) -> None:
        self._by_id: dict[str, DeviceRow] = {"cpu:0": DeviceRow(DeviceFacts("cpu:0", "CPU"))}
        self.asked = False
        """Whether JAX has answered, or failed to."""

    def __iter__(self) -> Iterator[DeviceRow]:
        return iter(self._by_id.values())

    def get(self, device: str) -> DeviceRow | None:
        """Return the device with that id, or None."""
        return self._by_id.get(device)

    def set_facts(self, facts: Iterable[DeviceFacts]) -> None:
        """Replace the devices; those that remain keep their readings."""
        before = self._by_id
        self._by_id = {}
        for fact in sorted(facts, key=lambda fact: (fact.usable is False, fact.id.startswith("cpu"))):
            device = before.get(fact.id) or DeviceRow(fact)
            device.facts = fact
            self._by_id[fact.id] = device

    def take(self, readings: Iterable[DeviceReading]) -> None:
        """Add readings; a reading of an unknown device adds the device."""
        for reading in readings:
            device = self._by_id.get(reading.device)
            if device is None:
                device = self._by_id[reading.device] = DeviceRow(DeviceFacts(reading.device))
            device.take(reading)

    def fail(self, reason: str, hint: str) -> None:
        """Mark every device as unusable, because JAX could not be asked. NumPy still runs on the host."""
        self.asked = True
        for device in self._by_id.values():
            device.facts = replace(device.facts, usable=False, reason=reason, hint=hint)


class MachineSource:
    """Reads this machine. One thread reads; another asks JAX once. The lock guards the monitor, which then follows what
    JAX reported."""

    def __init__(self) -> None:
        from jaxprof.devices.inventory.machine import local_devices
        from jaxprof.devices.live.monitor import Monitor

        self._lock = threading.Lock()
        self._local = local_devices()
        self._monitor = Monitor(self._local)

    def facts(self) -> list[DeviceFacts]:
        """Return the machine's devices without asking JAX."""
        return [_facts(device) for device in self._local]

    def usable(self, interpreter: Interpreter) -> list[DeviceFacts]:
        """Return the devices after asking JAX in a child process. Raises WorkerError."""
        from jaxprof.devices.inventory.join import merge
        from jaxprof.devices.inventory.machine import gather, local_devices
        from jaxprof.runner.engine_process import jax_devices

        local = local_devices(gather(interpreter.path))
        merged = merge(local, jax_devices(interpreter))
        with self._lock:
            self._monitor.follow(merged)
        return [_facts(device) for device in merged]

    def read(self) -> list[DeviceReading]:
        """Return the current readings, one for each device."""
        with self._lock:
            return self._monitor.read()


def _facts(device: Device) -> DeviceFacts:
    details = []
    if device.core_count is not None:
        details.append(f"{device.core_count:g} core{'s' if device.core_count != 1 else ''}")
    if device.compute_capability is not None:
        details.append(f"sm {device.compute_capability}")
    return DeviceFacts(
        device.id,
        device.kind or device.platform.upper(),
        " · ".join(details),
        usable=device.used_by_jax,
        reason=device.reason,
        hint=device.hint,
    )


PERIOD_SECONDS = 0.5


@dataclass
class ReadingsTaken(Message, bubble=False):
    """Live readings of all devices, taken by the thread of the monitor."""

    readings: list[DeviceReading]


@dataclass
class DevicesFound(Message):
    """The machine's devices are known. `asked`: JAX has reported which of them it uses, or has failed to."""

    facts: list[DeviceFacts]
    asked: bool
    error: JaxprofError | None = None


class DeviceMonitor:
    """Reads until it is stopped, and posts each set of readings to the app as one message.

    Its threads are daemons, not Textual workers: quitting must not wait until a child has imported jax.
    """

    def __init__(self, app: App[Any], make: Callable[[], DeviceSource], interpreter: Callable[[], Interpreter]) -> None:
        self._app = app
        self._make = make
        self._interpreter = interpreter
        self._stop = threading.Event()

    def start(self) -> None:
        """Start the thread that reads; that thread starts the one that asks JAX."""
        self._thread(self._read, "jaxprof-readings")

    def stop(self) -> None:
        """Stop reading at once."""
        self._stop.set()

    def _thread(self, work: Callable[[], None], name: str) -> None:
        in_daemon(work, name, lambda error: self._post(Failed(error)))

    def _read(self) -> None:
        source = self._make()
        self._post(DevicesFound(source.facts(), asked=False))
        self._thread(lambda: self._ask(source), "jaxprof-ask-jax")
        while not self._stop.is_set():
            self._post(ReadingsTaken(source.read()))
            self._stop.wait(PERIOD_SECONDS)

    def _ask(self, source: DeviceSource) -> None:
        """Post which devices JAX uses, or why it cannot say; NumPy still runs on the host in that case."""
        try:
            facts = source.usable(self._interpreter())
        except JaxprofError as error:
            self._post(DevicesFound([], asked=True, error=error))
            return
        self._post(DevicesFound(facts, asked=True))

    def _post(self, message: Any) -> None:
        if self._app.is_running and not self._stop.is_set():
            self._app.post_message(message)
