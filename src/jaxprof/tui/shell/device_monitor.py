"""The machine's devices in the app: each device, its readings of the last minute, and the threads that read them.

Everything about a machine blocks, so threads do it.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from jaxprof.base.errors import JaxprofError
from jaxprof.tui.kit.guard import Guarded, in_daemon

if TYPE_CHECKING:
    from jaxprof.devices import Device
    from jaxprof.events import DeviceReading
    from jaxprof.runner.interpreter import Interpreter


HISTORY = 120
"""Readings that the sparkline keeps: one minute at 2 Hz."""
PERIOD_SECONDS = 0.5


@dataclass(slots=True)
class DeviceRow:
    device: Device
    reading: DeviceReading | None = None
    history: deque[float | None] = field(default_factory=lambda: deque(maxlen=HISTORY))


class MachineSource:
    """Reads this machine; every method blocks. One thread reads; another asks JAX once. The lock guards the monitor,
    which then follows what JAX reported."""

    def __init__(self) -> None:
        from jaxprof.devices.inventory.machine import local_devices
        from jaxprof.devices.live.host import Monitor

        self._lock = threading.Lock()
        self._local = local_devices()
        self._monitor = Monitor(self._local)

    def local(self) -> Iterable[Device]:
        """Return the machine's devices without asking JAX."""
        return self._local

    def usable(self, interpreter: Interpreter) -> Iterable[Device]:
        """Return the devices after asking JAX in a child process. Raises WorkerError."""
        from jaxprof.runner.device_choice import usable_devices

        devices = usable_devices(interpreter)
        with self._lock:
            self._monitor.devices = devices
        return devices

    def read(self) -> list[DeviceReading]:
        with self._lock:
            return self._monitor.read()


class DeviceMonitor:
    """All devices by their ids, those that JAX can use first, with what threads read of them until it is stopped.

    The rows change on the UI thread. The threads are daemons, not Textual workers: quitting must not wait until a child
    has imported jax.
    """

    def __init__(self, app: Guarded, make: Callable[[], MachineSource], interpreter: Callable[[], Interpreter]) -> None:
        self.rows: dict[str, DeviceRow] = {}
        self.asked = False
        """Whether JAX has answered, or failed to."""
        self.changed: Callable[[], object] = lambda: None
        """Called on the UI thread after each change of the rows."""
        self._app, self._make, self._interpreter = app, make, interpreter
        self._stop = threading.Event()

    def __iter__(self) -> Iterator[DeviceRow]:
        return iter(self.rows.values())

    def start(self) -> None:
        """Start the thread that reads; that thread starts the one that asks JAX."""
        in_daemon(self._read, "jaxprof-readings", self._fail)

    def stop(self) -> None:
        self._stop.set()

    def take(self, readings: Iterable[DeviceReading]) -> None:
        for reading in readings:
            if (row := self.rows.get(reading.device)) is not None:
                row.reading = reading
                row.history.append(reading.utilisation)

    def _set_devices(self, devices: Iterable[Device]) -> None:
        """Replace the devices; those that remain keep their readings, a GPU also under a new number (by its UUID)."""
        before = {row.device.uuid or row.device.id: row for row in self}
        self.rows = {}
        for device in sorted(devices, key=lambda device: (device.used_by_jax is False, device.platform == "cpu")):
            row = self.rows[device.id] = before.get(device.uuid or device.id) or DeviceRow(device)
            row.device = device

    def _take_answer(self, answer: Iterable[Device] | JaxprofError) -> None:
        """Show the devices that JAX says it uses; if it cannot say, all are unusable, and NumPy runs on the host."""
        self.asked = True
        if not isinstance(answer, JaxprofError):
            self._set_devices(answer)
            return
        for row in self:
            row.device = replace(row.device, used_by_jax=False, reason=answer.what, hint=answer.hint)

    def _fail(self, error: JaxprofError) -> None:
        if not self.rows:
            self._later(self._take_answer, error)
        self._later(self._app.tell, error)

    def _read(self) -> None:
        source = self._make()
        self._later(self._set_devices, source.local())
        in_daemon(lambda: self._ask(source), "jaxprof-ask-jax", self._fail)
        while not self._stop.is_set():
            self._later(self.take, source.read())
            self._stop.wait(PERIOD_SECONDS)

    def _ask(self, source: MachineSource) -> None:
        try:
            self._later(self._take_answer, source.usable(self._interpreter()))
        except JaxprofError as error:
            self._later(self._take_answer, error)

    def _later(self, change: Callable[[Any], object], value: Any) -> None:
        def make() -> None:
            change(value)
            self.changed()

        if self._app.is_running and not self._stop.is_set():
            self._app.call_later(make)
