"""Formats that a session can be exported to, by their names on the command line, and their common input."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Final, Protocol, cast

from jaxprof.analysis.timeline import TEXT_NAME, read_timeline
from jaxprof.errors import UsageError, unknown_name
from jaxprof.session import Run, Session


@dataclass(frozen=True, slots=True)
class ExportSource:
    """A session with the runs to export."""

    session: Session
    runs: Sequence[Run]
    path: Path
    """File of the session."""
    name: str = "last"
    """Name of the session for later commands."""


class ExportModule(Protocol):
    """Functions of the module of a format: `runs` if a run needs data for it, `pieces` if it is one file, `files` if it
    is a folder."""

    def runs(self, session: Session) -> list[Run]:
        """Return the runs that have the data that the format needs."""
        ...

    def pieces(self, source: ExportSource) -> Iterable[str] | Iterable[bytes]:
        """Yield the file in pieces, as text in UTF-8 or as bytes."""
        ...

    def files(self, source: ExportSource) -> Iterable[tuple[str, bytes]]:
        """Yield name and content of each file."""
        ...


@dataclass(frozen=True, slots=True)
class ExportFormat:
    """A format. The module that writes it is imported when it is used."""

    name: str
    suffix: str
    """Suffix of its files, for documents and hints."""
    has: str
    """Data that a run needs for the format, such as `a timeline`; empty if every run has it."""
    hint: str
    """How to record a run with that data."""
    views: tuple[str, ...]
    """Views of a profile that the format holds."""
    binary: bool = False
    """Whether the file is binary, so that it cannot be written to stdout."""
    folder: bool = False
    """Whether the format is a folder of files."""
    opens: str = ""
    """Where to open the file, for the note after it was written."""

    @property
    def module(self) -> ExportModule:
        """Module that writes the format."""
        return cast("ExportModule", import_module(f"jaxprof.exports.{self.name}"))


_CAPTURED: Final = "`jaxprof run` captures kernels, and `jaxprof script --capture-steps 100` those of a script."
FORMATS: Final = {
    form.name: form
    for form in (
        ExportFormat(
            "perfetto", ".json.gz", "a timeline", _CAPTURED, ("timeline", "trust"),
            opens="open it at https://ui.perfetto.dev",
        ),
        ExportFormat(
            "html", ".html", "", "",
            ("kernels", "steps", "compile", "memory", "trust", "timeline"), opens="open it in a browser",
        ),
        ExportFormat(
            "pprof", ".pb.gz", "kernels or sampled lines",
            _CAPTURED, ("kernels", "trust"), binary=True,
            opens="go tool pprof -http localhost: opens it",
        ),
        ExportFormat(
            "parquet", "", "", "",
            ("kernels", "steps", "compile", "memory", "trust", "timeline"), folder=True,
        ),
    )
}  # fmt: skip
"""Formats by name. The first one is the default."""


def chosen_runs(form: ExportFormat, session: Session, file: str, run_id: str | None) -> Sequence[Run]:
    """Return the runs to export: run `run_id`, or by default all runs with the data that the format needs. Raises
    UsageError if there is none, or if there are several and the format needs data of one."""
    usable = form.module.runs(session) if form.has else list(session.runs.values())
    listed = ", ".join(f"{run.id} ({run.label})" for run in usable[:10])
    if run_id is not None:
        if run_id not in session.runs:
            raise unknown_name("run", run_id, session.runs)
        if session.runs[run_id] not in usable:
            hint = f"These have: {listed}." if listed else form.hint
            raise UsageError(f"run {run_id} has no {form.has.removeprefix('a ')}", hint)
        return [session.runs[run_id]]
    if not usable and form.has:
        raise UsageError(f"no run of {file} has {form.has}", form.hint)
    if len(usable) > 1 and form.has:
        raise UsageError(f"{len(usable)} runs of {file} have {form.has}", f"Choose one with --run: {listed}.")
    return usable


def left_out_notes(form: ExportFormat, session: Session, runs: Sequence[Run]) -> Iterator[str]:
    """Yield a note on each run with intervals that its timeline does not have."""
    if "timeline" in form.views and form.has:
        for run in runs:
            stored = session.text(run.id, TEXT_NAME)
            if stored and (missing := read_timeline(stored).left_out):
                yield f"note: the {missing} shortest intervals are not in the timeline"
