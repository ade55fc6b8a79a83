"""Keep baselines by name: sessions that later ones are compared with, each with the decisions made about it.

A baseline is a session file `NAME.jaxprof`; the decisions are in `NAME.decisions.json` beside it. Each file is written
whole under another name and then renamed, so that a reader never sees half of one. A file of decisions that cannot be
read is an error, because the gate would decide differently without it.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec

from jaxprof.errors import FileRefusedError, StorageError, UsageError, system_words, unknown_name
from jaxprof.files import PRIVATE, private_folder, taking_place
from jaxprof.session.log.reader import is_live
from jaxprof.session.log.state import state_folder
from jaxprof.session_names import EXTENSION

DECISIONS: Final = ".decisions.json"
_NAME: Final = re.compile(r"\w[\w.@+-]{0,79}")
_SCHEMA: Final = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """A growth that a user accepted."""

    program: str
    """Program of the baseline: its name, variant, device, parameters and arguments."""
    fact: str
    """Name of the fact: `flops`, `kernels`..."""
    value: float
    """Largest value accepted, in the unit of the fact; the least, for a fact that must not shrink."""
    detail: str = ""
    """What had changed if the value does not show it, such as another kind of collective."""
    reason: str
    """Why it was accepted, in the user's words."""
    decided: str
    """UTC time of the decision: `2026-11-22T12:40:00Z`."""
    jax: str | None = None
    jaxlib: str | None = None
    counted: str = ""
    """How FLOPs and bytes were counted; empty in files of versions that took XLA's cost analysis."""


class _File(msgspec.Struct, forbid_unknown_fields=False):
    """Content of a file of decisions."""

    schema: int
    decisions: list[Decision]


_DECODER = msgspec.json.Decoder(_File)


class Baselines:
    """The named baselines of one folder."""

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder if folder is not None else state_folder() / "baselines"

    def names(self) -> list[str]:
        """Return the names, in alphabetical order."""
        return sorted(path.name.removesuffix(EXTENSION) for path in self.folder.glob(f"*{EXTENSION}"))

    def path(self, name: str) -> Path:
        """Return the path of the baseline of that name, which need not exist. Raises UsageError for an invalid name."""
        if not _NAME.fullmatch(name) or name.endswith((EXTENSION, ".py")):
            raise UsageError(
                f"{name!r} cannot be the name of a baseline",
                "Use letters, digits, '-', '_' and '.', as in feature-x: no path, and no file's ending.",
            )
        return self.folder / f"{name}{EXTENSION}"

    def search(self, name: str) -> Path | None:
        """Return the session of the baseline `name`; None if there is none."""
        path = self.folder / f"{name}{EXTENSION}"
        return path if _NAME.fullmatch(name) and path.is_file() else None

    def find(self, name: str) -> Path:
        """Do the same as `search`, but raise UsageError with similar names if there is none."""
        path = self.search(name)
        if path is None:
            raise unknown_name("baseline", name, self.names())
        return path

    @contextlib.contextmanager
    def replacing(self, name: str, *, replace: bool) -> Iterator[Path]:
        """Yield a path for the session of the baseline `name`, which takes its place at the end; the decisions about
        the former one are deleted. After an error nothing has changed. Raises UsageError for an invalid name or one
        that is taken (unless it may be replaced), StorageError if it cannot be written."""
        path = self.path(name)
        if path.exists() and not replace:
            raise UsageError(f"there is a baseline {name} already", "Give another name, or --force to replace it.")
        try:
            private_folder(self.folder)
            with taking_place(path, PRIVATE) as fresh:
                yield fresh
                self._decisions(name).unlink(missing_ok=True)
        except OSError as error:
            raise StorageError(f"the baseline cannot be written to {path}: {system_words(error)}") from error

    def save(self, name: str, session: Path, *, replace: bool) -> Path:
        """Keep a copy of the session file as the baseline `name`. Raises what `replacing` does, and UsageError
        for a session that is being written."""
        if is_live(session):
            raise UsageError(f"{session} is being written now", "Wait until its runs are over.")
        with self.replacing(name, replace=replace) as fresh:
            fresh.write_bytes(session.read_bytes())
        return self.path(name)

    def delete(self, name: str) -> None:
        """Delete the baseline and the decisions about it. Raises UsageError or StorageError."""
        path = self.find(name)
        try:
            self._decisions(name).unlink(missing_ok=True)
            path.unlink()
        except OSError as error:
            raise StorageError(f"{path} cannot be deleted: {system_words(error)}") from error

    def decisions(self, name: str) -> tuple[Decision, ...]:
        """Return the decisions about the baseline `name`, in the order made. Raises FileRefusedError for a damaged
        file."""
        path = self._decisions(name)
        try:
            data = path.read_bytes()
        except FileNotFoundError:
            return ()
        except OSError as error:
            raise FileRefusedError(f"{path} cannot be read: {system_words(error)}") from error
        hint = "It holds what was accepted. Fix it, or delete it to start anew: limits are then passed again."
        try:
            read = _DECODER.decode(data)
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
            raise FileRefusedError(f"{path} is damaged: {error}", hint) from error
        if read.schema > _SCHEMA:
            raise FileRefusedError(f"{path} was written by a newer jaxprof", "Update jaxprof.")
        return tuple(read.decisions)

    def decide(self, name: str, decisions: Sequence[Decision]) -> None:
        """Keep these decisions; of two about the same fact of a program the later one counts. Raises FileRefusedError
        for a damaged file, StorageError if it cannot be written."""
        path = self._decisions(name)
        with self._locked():
            fresh = {(one.program, one.fact): one for one in (*self.decisions(name), *decisions)}
            data = msgspec.json.format(msgspec.json.encode(_File(_SCHEMA, list(fresh.values()))), indent=2) + b"\n"
            try:
                with taking_place(path, PRIVATE) as fresh_file, fresh_file.open("wb") as file:
                    file.write(data)
                    file.flush()
                    os.fsync(file.fileno())
            except OSError as error:
                raise StorageError(f"the decision cannot be written to {path}: {system_words(error)}") from error

    def _decisions(self, name: str) -> Path:
        return self.path(name).with_name(name + DECISIONS)

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        """Hold a lock, so that two processes that decide at once lose no decision. On Windows there is none."""
        try:
            import fcntl
        except ImportError:
            yield
            return
        try:
            file = (self.folder / ".lock").open("ab")
        except OSError as error:
            raise StorageError(f"{self.folder} cannot be written: {system_words(error)}") from error
        with file:
            fcntl.flock(file.fileno(), fcntl.LOCK_EX)
            yield
