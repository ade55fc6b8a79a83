"""Waiting for the very thing that a test needs, with a bound. What is still there of processes."""

import os
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

SLOWER = 20 if hasattr(os, "nice") and os.nice(0) >= 15 else 1
"""How many times as long as usual a test may take. A process at nice 19 gets a fiftieth of a core that others want."""
PATIENCE_SECONDS = 30.0 * SLOWER


def until(holds: Callable[[], object]) -> None:
    """Waits until it holds; fails where it never does."""
    due = time.monotonic() + PATIENCE_SECONDS
    while not holds():
        assert time.monotonic() < due
        time.sleep(0.005)


def open_descriptors() -> set[int]:
    """The descriptors that this process has open. No `/dev/fd`: not every system has one."""
    found = set()
    for number in range(1024):
        with suppress(OSError):
            os.fstat(number)
            found.add(number)
    return found


def processes_with(variable: str) -> list[str]:
    """The command lines of the processes that have this `NAME=value` in their environment."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if variable.encode() in (folder / "environ").read_bytes():
                found.append((folder / "cmdline").read_bytes().replace(b"\0", b" ").decode())
        except OSError:
            continue
    return found
