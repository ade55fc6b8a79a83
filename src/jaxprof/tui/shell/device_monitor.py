"""The machine's devices in the app: each device, its readings of the last minute, and the threads that read them.

Everything about a machine blocks, so threads do it.
"""

from __future__ import annotations

import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from jaxprof.base.errors import JaxprofError
from jaxprof.tui.kit.guard import Guarded, in_daemon

if TYPE_CHECKING:
    from jaxprof.devices import Device
    from jaxprof.events import DeviceReading
    from jaxprof.runner.interpreter import Interpreter


HISTORY = 60
"""Readings that the sparkline keeps."""
PERIOD_SECONDS = 0.5
"""Time between two readings, for each device: a line is some 400 bytes to draw, so a list of any length sends about
1 KB a second over the user's line."""
MOST_SECONDS = 8.0
"""Longest time between two readings."""


@dataclass(slots=True)
class DeviceRow:
    device: Device
    reading: DeviceReading | None = None
    history: deque[float | None] = field(default_factory=lambda: deque(maxlen=HISTORY))


class MachineSource:
    """Reads this machine; every method blocks. One thread reads; another asks JAX once. The lock guards the monitor,
    which then follows what JAX reported."""

    def __init__(self) -> None:
        from jaxprof.devices.live.host import Monitor

        self._lock = threading.Lock()
        self._answer: Mapping[str, Any] | None = None
        """What JAX has answered."""
        self.driver: str | None = None
        self.is_late = False
        """Whether NVML had not answered when the devices were listed."""
        self._python = sys.executable
        self._monitor = Monitor(self.local())

    def local(self) -> Sequence[Device]:
        """Return the devices: the machine's, with JAX's view laid over it once it was asked."""
        from jaxprof.devices.inventory.machine import gather, local_devices, merge

        facts = gather(self._python)
        self.is_late, self.driver = facts.nvidia.late, facts.nvidia.driver
        local = local_devices(facts)
        return merge(local, self._answer) if self._answer is not None else local

    def usable(self, interpreter: Interpreter) -> Sequence[Device]:
        """Return the devices after asking JAX in a child process. Raises WorkerError."""
        from jaxprof.runner.engine_questions import jax_devices

        self._answer, self._python = jax_devices(interpreter), interpreter.path
        return self._follow()

    def late(self) -> Sequence[Device] | None:
        """Return the devices again if NVML had not answered before and has now, else None."""
        from jaxprof.devices.live.nvidia import nvml_threads

        return self._follow() if self.is_late and not nvml_threads().listing().late else None

    def _follow(self) -> Sequence[Device]:
        devices = self.local()
        with self._lock:
            self._monitor.devices = devices
        return devices

    def read(self) -> list[DeviceReading]:
        with self._lock:
            return self._monitor.read()


class DeviceMonitor:
    """All devices by their ids, as nvidia-smi numbers them, with what threads read of them until it is stopped.

    The rows change on the UI thread. The threads are daemons, not Textual workers: quitting must not wait until a child
    has imported jax.
    """

    def __init__(self, app: Guarded, make: Callable[[], MachineSource], interpreter: Callable[[], Interpreter]) -> None:
        self.rows: dict[str, DeviceRow] = {}
        self.driver: str | None = None
        """Version of NVIDIA's driver."""
        self.late = False
        """Whether that driver has not listed its GPUs yet."""
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

    def _show(self, source: MachineSource, devices: Iterable[Device]) -> None:
        self.driver, self.late = source.driver, source.is_late
        self._set_devices(devices)

    def _set_devices(self, devices: Iterable[Device]) -> None:
        """Replace the devices; those that remain keep their readings, a GPU also under a new number (by its UUID)."""
        before = {row.device.uuid or row.device.id: row for row in self}
        self.rows = {}
        for device in devices:
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
        show = partial(self._show, source)
        self._later(show, source.local())
        in_daemon(lambda: self._ask(source), "jaxprof-ask-jax", self._fail)
        while not self._stop.is_set():
            if devices := source.late():
                self._later(show, devices)
            self._later(self.take, source.read())
            self._stop.wait(min(MOST_SECONDS, PERIOD_SECONDS * max(1, len(self.rows))))

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
