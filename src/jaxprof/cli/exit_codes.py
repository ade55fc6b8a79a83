"""What the process says with its exit code, and which error says what. Documented in `docs/exit-codes.md`."""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jaxprof.errors import JaxprofError

SIGNAL_BASE = 128
"""A process that a signal ended exits with this plus the signal's number, as shells count it."""


class ExitCode(IntEnum):
    """The exit codes of every command."""

    OK = 0
    """All went well. `show` of a torn session, or of one with failed runs, is well."""
    FAILED = 1
    """A run failed, crashed or was cancelled by its limits; or the session could not be kept where it was wanted."""
    USAGE = 2
    """Wrong usage, a refused file, or a terminal that is none."""
    INTERRUPTED = 130
    """Interrupted with ctrl+c; what was measured is kept and printed."""
    BROKEN_PIPE = 141
    """Whoever read stdout went away."""


def for_error(error: JaxprofError) -> ExitCode:
    """The exit code of an error that reached the boundary: a fault of the work itself is 1, all others are 2."""
    from jaxprof.errors import WorkerError

    return ExitCode.FAILED if isinstance(error, WorkerError) else ExitCode.USAGE
