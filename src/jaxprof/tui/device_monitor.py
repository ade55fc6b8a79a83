"""The machine's devices in the app: each device, its readings of the last minute, and the threads that read them.

Everything about a machine blocks, so threads do it and post messages; `DeviceTable` lives on the UI thread.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

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
PERIOD_SECONDS = 0.5


@dataclass(slots=True)
class DeviceRow:
    """A device with its readings."""

    device: Device
    reading: DeviceReading | None = None
    history: deque[float | None] = field(default_factory=lambda: deque(maxlen=HISTORY))


class DeviceTable:
    """All devices by their ids; those that JAX can use come first."""

    def __init__(self) -> None:
        self.rows: dict[str, DeviceRow] = {}
        self.asked = False
        """Whether JAX has answered, or failed to."""

    def __iter__(self) -> Iterator[DeviceRow]:
        return iter(self.rows.values())

    def set_devices(self, devices: Iterable[Device], *, asked: bool = True) -> None:
        """Replace the devices; those that remain keep their readings. `asked`: JAX has said which it uses."""
        before, self.rows = self.rows, {}
        self.asked = self.asked or asked
        for device in sorted(devices, key=lambda device: (device.used_by_jax is False, device.platform == "cpu")):
            row = self.rows[device.id] = before.get(device.id) or DeviceRow(device)
            row.device = device

    def take(self, readings: Iterable[DeviceReading]) -> None:
        """Add readings of the devices."""
        for reading in readings:
            if (row := self.rows.get(reading.device)) is not None:
                row.reading = reading
                row.history.append(reading.utilisation)

    def fail(self, error: JaxprofError) -> None:
        """Mark every device as unusable, because JAX could not be asked. NumPy still runs on the host."""
        self.asked = True
        for row in self.rows.values():
            row.device = replace(row.device, used_by_jax=False, reason=error.what, hint=error.hint)


class MachineSource:
    """Reads this machine; every method blocks. One thread reads; another asks JAX once. The lock guards the monitor,
    which then follows what JAX reported."""

    def __init__(self) -> None:
        from jaxprof.devices.inventory.machine import local_devices
        from jaxprof.devices.live.monitor import Monitor

        self._lock = threading.Lock()
        self._local = local_devices()
        self._monitor = Monitor(self._local)

    def local(self) -> Iterable[Device]:
        """Return the machine's devices without asking JAX."""
        return self._local

    def usable(self, interpreter: Interpreter) -> Iterable[Device]:
        """Return the devices after asking JAX in a child process. Raises WorkerError."""
        from jaxprof.devices.inventory.join import merge
        from jaxprof.devices.inventory.machine import gather, local_devices
        from jaxprof.runner.engine_process import jax_devices

        merged = merge(local_devices(gather(interpreter.path)), jax_devices(interpreter))
        with self._lock:
            self._monitor.follow(merged)
        return merged

    def read(self) -> list[DeviceReading]:
        """Return the current readings, one for each device."""
        with self._lock:
            return self._monitor.read()


class DeviceMonitor:
    """Reads until it is stopped, and changes the table on the UI thread.

    Its threads are daemons, not Textual workers: quitting must not wait until a child has imported jax.
    """

    def __init__(
        self,
        app: App[Any],
        table: DeviceTable,
        make: Callable[[], MachineSource],
        interpreter: Callable[[], Interpreter],
        changed: Callable[[], object],
    ) -> None:
        """`changed` is called on the UI thread after each change of the table."""
        self._app, self._table = app, table
        self._make, self._interpreter, self._changed = make, interpreter, changed
        self._stop = threading.Event()

    def start(self) -> None:
        """Start the thread that reads; that thread starts the one that asks JAX."""
        in_daemon(self._read, "jaxprof-readings", self._fail)

    def stop(self) -> None:
        """Stop reading at once."""
        self._stop.set()

    def _fail(self, error: JaxprofError) -> None:
        """Show an error, and that no device is looked for any more."""
        if not self._table.rows:
            self._later(self._table.fail, error)
        self._later(self._app.post_message, Failed(error))

    def _read(self) -> None:
        source = self._make()
        self._later(partial(self._table.set_devices, asked=False), source.local())
        in_daemon(lambda: self._ask(source), "jaxprof-ask-jax", self._fail)
        while not self._stop.is_set():
            self._later(self._table.take, source.read())
            self._stop.wait(PERIOD_SECONDS)

    def _ask(self, source: MachineSource) -> None:
        """Show which devices JAX uses, or why it cannot say; NumPy still runs on the host in that case."""
        try:
            self._later(self._table.set_devices, source.usable(self._interpreter()))
        except JaxprofError as error:
            self._later(self._table.fail, error)

    def _later(self, change: Callable[[Any], object], value: Any) -> None:
        """Make a change on the UI thread."""

        def make() -> None:
            change(value)
            self._changed()

        if self._app.is_running and not self._stop.is_set():
            self._app.call_later(make)
