"""Waiting for the very thing that a test needs, with a bound."""

import time
from collections.abc import Callable

PATIENCE_SECONDS = 30.0


def until(holds: Callable[[], object]) -> None:
    """Waits until it holds; fails where it never does."""
    due = time.monotonic() + PATIENCE_SECONDS
    while not holds():
        assert time.monotonic() < due
        time.sleep(0.005)
