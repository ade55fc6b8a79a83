"""The one error base: what failed, and what mends it.

Every error that a user can meet derives from `JaxprofError`, so that one boundary (the command line, or the app)
can catch it and show both halves. Nothing here prints or exits.
"""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


class JaxprofError(Exception):
    """Something that the user can act on.

    `what` says what failed and on what; `mend` says what to do about it, and may be empty.
    """

    def __init__(self, what: str, mend: str = "") -> None:
        super().__init__(what, mend)
        self.what = what
        self.mend = mend

    def __str__(self) -> str:
        return f"{self.what}\n{self.mend}" if self.mend else self.what


class UsageError(JaxprofError):
    """The request itself is wrong: an unknown name, a value that cannot be read. Exit code 2."""


class FileRefusedError(JaxprofError):
    """A file that is not what it should be: another format, a newer major version, empty. Exit code 2."""


class StorageError(JaxprofError):
    """A session could not be written: disk full, a read-only folder. The measuring goes on in memory."""


class WorkerError(JaxprofError):
    """The engine's process could not be started, or ended otherwise than by finishing its run."""


def unknown_name(kind: str, name: str, known: Iterable[str]) -> UsageError:
    """The error for a `name` that no `kind` (workload, variant, device...) has, naming the near ones, or all."""
    choices = sorted(set(known))
    near = get_close_matches(name.lower(), choices, n=3, cutoff=0.5)
    if near:
        return UsageError(f"unknown {kind} {name!r}", f"Did you mean {', '.join(near)}?")
    if not choices:
        return UsageError(f"unknown {kind} {name!r}", f"There is no {kind} to choose from.")
    return UsageError(f"unknown {kind} {name!r}", f"Known: {', '.join(choices)}.")
