"""The thread that reads the devices twice a second while the app runs, and asks JAX once which of them it uses."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from jaxprof.errors import JaxprofError
from jaxprof.tui.messages import DevicesFound, ReadingsTaken

if TYPE_CHECKING:
    from collections.abc import Callable

    from textual.app import App

    from jaxprof.tui.devices import DeviceSource
    from jaxprof.worker import Interpreter

PERIOD_SECONDS = 0.5


class Monitor:
    """Reads until it is stopped; every reading goes to the app as one message.

    Its threads are daemons and no Textual workers: leaving the app must not wait until a child has imported jax.
    """

    def __init__(self, app: App[Any], make: Callable[[], DeviceSource], interpreter: Callable[[], Interpreter]) -> None:
        self._app = app
        self._make = make
        self._interpreter = interpreter
        self._stop = threading.Event()

    def start(self) -> None:
        """Starts the thread that reads, which starts the one that asks."""
        self._thread(self._read, "jaxprof-readings")

    def stop(self) -> None:
        """Ends the reading, at once."""
        self._stop.set()

    def _thread(self, work: Callable[[], None], name: str) -> None:
        threading.Thread(target=work, name=name, daemon=True).start()

    def _read(self) -> None:
        source = self._make()
        self._post(DevicesFound(source.facts(), asked=False))
        self._thread(lambda: self._ask(source), "jaxprof-ask-jax")
        while not self._stop.is_set():
            self._post(ReadingsTaken(source.read()))
            self._stop.wait(PERIOD_SECONDS)

    def _ask(self, source: DeviceSource) -> None:
        """Which devices JAX uses. Without jax, or when it fails, NumPy still runs on the host: that is said."""
        try:
            facts = source.usable(self._interpreter())
        except JaxprofError as error:
            self._post(DevicesFound([], asked=True, error=error))
            return
        self._post(DevicesFound(facts, asked=True))

    def _post(self, message: Any) -> None:
        if self._app.is_running and not self._stop.is_set():
            self._app.post_message(message)
