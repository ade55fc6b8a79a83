"""The one error base: what failed, and what to do about it.

Every error that a user can see derives from `JaxprofError`, so that one boundary (the command line, or the app)
can catch it and show both halves. Nothing here prints or exits.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from itertools import islice
from typing import ClassVar

_FILE_ENDINGS = (
    ".jaxprof", ".jaxprof.d", ".py", ".hlo", ".txt", ".mlir", ".pb", ".pbtxt", ".json", ".gz", ".csv", ".md",
)  # fmt: skip
"""Endings of file names that no workload, module or kept session has."""
_MOST_COMPARED = 2000
"""How many files of a folder are compared with a misspelt name; this takes 20 ms."""


class JaxprofError(Exception):
    """Something that the user can act on.

    `what` says what failed and on what; `hint` says what to do about it, and may be empty.
    """

    code: ClassVar[str] = "failed"
    """The kind of error as one word, for programs."""

    def __init__(self, what: str, hint: str = "") -> None:
        super().__init__(what, hint)
        self.what = what
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.what}\n{self.hint}" if self.hint else self.what


class UsageError(JaxprofError):
    """The request itself is wrong: an unknown name, an unreadable value. Exit code 2."""

    code = "usage"


class NotAllowedError(UsageError):
    """Code of the user's would run, which whoever started this process did not allow. Exit code 2."""

    code = "not_allowed"


class FileRefusedError(JaxprofError):
    """A file that is not what it should be: another format, a newer major version, empty. Exit code 2."""

    code = "file_refused"


class HloError(FileRefusedError):
    """The input is not HLO, or none of it can be read. The error names what it seems to be."""

    code = "not_hlo"


class MissingFileError(FileRefusedError, UsageError):
    """There is nothing at a path: the request names a wrong file, and the file is refused. Exit code 2."""

    code = "missing_file"


class StorageError(JaxprofError):
    """A session could not be written: disk full, a read-only folder. Measuring continues in memory."""

    code = "storage"


class WorkerError(JaxprofError):
    """The engine's process did not start, or ended before its run was finished."""

    code = "worker"


class DoesNotFitError(JaxprofError):
    """The work needs more memory than is free."""

    code = "does_not_fit"


def system_words(error: OSError) -> str:
    """Return the system's words for what it refused, `No space left on device`, without its number, and without the
    path, which the error around it names."""
    return error.strerror or str(error)


def is_path(word: str) -> bool:
    """Return whether `word`, which names no file, was meant as a path: it has a folder or a file's ending."""
    return "/" in word or os.sep in word or word.startswith("~") or word.endswith(_FILE_ENDINGS)


def _similar(name: str, names: list[str], cutoff: float) -> list[str]:
    from difflib import get_close_matches  # not needed for `--help`

    return get_close_matches(name, names, n=3, cutoff=cutoff)


def missing_file(path: str | os.PathLike[str]) -> MissingFileError:
    """Return the error for a path with nothing at it. Its hint names similar files, or the folder that was searched."""
    folder, name = os.path.split(os.path.abspath(os.path.expanduser(path)))
    what = f"there is no file {os.fspath(path)}"
    if "://" in os.fspath(path):
        return MissingFileError(what, "URLs work with open, explain, query, compare, hlo and export.")
    try:
        names = list(islice(os.listdir(folder), _MOST_COMPARED))
    except (OSError, ValueError):
        return MissingFileError(what, f"There is no folder {folder} either.")
    near = _similar(name, names, 0.6)
    return MissingFileError(what, f"Similar names there: {', '.join(near)}." if near else f"The folder is {folder}.")


def not_found(kind: str, word: str, known: Iterable[str]) -> UsageError:
    """Return the error for a `word` that can be a path or the name of a `kind`: a missing file if it was meant as a
    path, else an unknown name. Every command decides this here."""
    return missing_file(word) if is_path(word) else unknown_name(kind, word, known)


def unknown_name(kind: str, name: str, known: Iterable[str]) -> UsageError:
    """Return the error for an unknown `name` of a `kind` (workload, variant...), with similar names or all names."""
    choices = sorted(set(known))
    near = _similar(name.lower(), choices, 0.5)
    if near:
        return UsageError(f"unknown {kind} {name!r}", f"Did you mean {', '.join(near)}?")
    if not choices:
        return UsageError(f"unknown {kind} {name!r}", f"There is no {kind} to choose from.")
    return UsageError(f"unknown {kind} {name!r}", f"Known: {', '.join(choices)}.")
