"""Exit codes, and the code of each error. Documented in `docs/exit-codes.md`."""

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
    """Success. `show` also succeeds on a session that was interrupted or has failed runs."""
    FAILED = 1
    """A run failed, crashed or was cancelled by its limits; or the session could not be written as requested; or a
    defect ended the app."""
    USAGE = 2
    """Wrong usage, a refused file, or no terminal."""
    LIMIT_PASSED = 3
    """`gate`: a fact, or a time, has grown by more than its limit allows."""
    UNDECIDED = 4
    """`gate --strict`: no limit was passed, and one is undecided."""
    NOT_WHOLE = 5
    """The printed answer is unreliable, because a part of its subject is missing. The answer says which part."""
    STDOUT_LOST = 74
    """Stdout cannot be written: its disk is full, or it is closed (EX_IOERR of sysexits.h). A session is kept."""
    INTERRUPTED = 130
    """Interrupted with ctrl+c; what was measured is kept and printed."""
    BROKEN_PIPE = 141
    """The reader of stdout closed it."""


def for_error(error: JaxprofError) -> ExitCode:
    """The exit code of an error that reached the boundary: 1 for a failure of the work itself, 2 for all others."""
    from jaxprof.errors import WorkerError

    return ExitCode.FAILED if isinstance(error, WorkerError) else ExitCode.USAGE
