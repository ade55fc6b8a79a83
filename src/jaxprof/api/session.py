"""The session of the Python API, and loading one from a file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jaxprof import session as fold_room
from jaxprof.analysis import RunResult, results
from jaxprof.errors import StorageError
from jaxprof.remote.place import path_here
from jaxprof.session.log import LogWriter
from jaxprof.session.log import load as load_file
from jaxprof.session_names import EXTENSION

if TYPE_CHECKING:
    from jaxprof.events import Event, Header


class Session(fold_room.Session):
    """A session: prints as text, can be saved, and has the figures of its runs."""

    def __init__(self, header: Header | None = None) -> None:
        super().__init__(header)
        self._events: list[Event] = []

    def apply(self, event: Event) -> None:
        """Fold one event, and keep it, so that `save` writes the log unchanged."""
        super().apply(event)
        self._events.append(event)

    @property
    def figures(self) -> list[RunResult]:
        """The figures of each run: medians, intervals, phases, speed-up, warnings."""
        return results(self)

    def to_dict(self) -> dict[str, Any]:
        """The documented JSON form (`docs/json.md`) as plain dicts, lists and numbers."""
        from jaxprof.report.json import to_dict

        return to_dict(self)

    def save(self, path: str | Path, *, replace: bool = False) -> Path:
        """Write the session to `path` (`.jaxprof` is added if there is no extension).

        Raises UsageError for a URL, StorageError if the file already exists (unless `replace`) or cannot be written.
        """
        target = path_here(path, "Save it here, and copy it there.")
        if not target.suffix:
            target = target.with_suffix(EXTENSION)
        writer = LogWriter(self.header, target, replace_existing=replace)
        for event in self._events:
            writer.append(event)
        writer.sync()
        writer.close()
        if writer.failure is not None:
            raise StorageError(writer.failure.what, "Give another path.")
        return target

    def __iter__(self) -> Iterator[RunResult]:
        return iter(self.figures)

    def __str__(self) -> str:
        from jaxprof.report.text import to_text

        return to_text(self)

    def _repr_html_(self) -> str:
        """For notebooks: tables, without scripts."""
        from jaxprof.report.html import to_html

        return to_html(self)

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """For IPython in a terminal: the report if a line returns the session, the short form inside a list."""
        alone = not cycle and len(printer.stack) == 1
        printer.text(str(self) if alone else repr(self))

    def __repr__(self) -> str:
        states = ", ".join(f"{run.label}: {run.shown.status}" for run in self.runs.values())
        return f"<jaxprof.Session {self.header.session} [{states}]>"


def load(path: str | Path) -> Session:
    """Load the session in a file, even one that was interrupted. Raises FileRefusedError if it is not a session, and
    UsageError for a URL."""
    return load_file(path_here(path, "`jaxprof show URL` and the other commands fetch it."), Session)
