"""What stops a run from outside: cancelling, and the hard cap on its time.

Both are asked for between calls and between phases; a call that is going on is never torn.
"""

from __future__ import annotations

import threading
import time


class Cancelled(Exception):
    """The run was told to stop."""


class CapReached(Exception):
    """The hard cap of the run's time is over."""


class RunControl:
    """Shared by the thread that measures and those that may stop it."""

    def __init__(self) -> None:
        self._cancel = threading.Event()
        self._deadline: float | None = None

    def cancel(self) -> None:
        """Orders the run to stop at the next occasion."""
        self._cancel.set()

    def start_clock(self, max_seconds: float | None) -> None:
        """Start-up is over: from here `max_seconds` are left, or no end of time."""
        self._deadline = None if max_seconds is None else time.monotonic() + max_seconds

    def stop_clock(self) -> None:
        """The run is over: its cap means nothing any more."""
        self._deadline = None

    def remaining_seconds(self) -> float | None:
        """Time left until the hard cap, negative past it; None without a cap."""
        deadline = self._deadline
        return None if deadline is None else deadline - time.monotonic()

    def check(self) -> None:
        """Raises Cancelled or CapReached where there is a reason to stop."""
        if self._cancel.is_set():
            raise Cancelled
        remaining = self.remaining_seconds()
        if remaining is not None and remaining <= 0:
            raise CapReached
