"""Formats that a session can be exported to, by their names on the command line, and their common input."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from jaxprof.analysis.timeline import TEXT_NAME, read_timeline
from jaxprof.errors import UsageError, unknown_name
from jaxprof.exports import perfetto, pprof
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


def _page(source: ExportSource) -> Iterator[str]:
    """Yield the session as one HTML page, which always has all runs."""
    from jaxprof.report.page.document import to_page

    yield to_page(source.session, source.name)


def _tables(source: ExportSource) -> Iterator[tuple[str, bytes]]:
    """Yield name and content of a Parquet file for each table of `jaxprof query --schema` that has rows. Raises
    UsageError without the extra `query`, because these are its tables."""
    try:
        from jaxprof.query.columnar import arrow_table
        from jaxprof.query.output import write_parquet
    except ImportError as error:
        raise UsageError(f"parquet needs {error.name}", "pip install 'duckdb>=2,<3' pyarrow installs it.") from error
    from jaxprof.facts import SessionFile
    from jaxprof.query.tables import TABLES

    file = SessionFile(source.path, source.session)
    for table in TABLES.values():
        rows = arrow_table(table, file)
        if rows.num_rows:
            sink = io.BytesIO()
            write_parquet(rows, sink)
            yield f"{table.name}.parquet", sink.getvalue()


_ALL_VIEWS: Final = ("kernels", "steps", "compile", "memory", "trust", "timeline")


@dataclass(frozen=True, slots=True)
class ExportFormat:
    """A format with the function that writes it."""

    name: str
    pieces: Callable[[ExportSource], Iterable[Any]]
    """Yields the file in pieces, as text in UTF-8 or as bytes; of a folder name and content of each file."""
    views: tuple[str, ...] = _ALL_VIEWS
    """Views of a profile that the format holds."""
    has: str = ""
    """Data that a run needs for the format, such as `a timeline`; empty if every run has it."""
    runs: Callable[[Session], list[Run]] = lambda session: list(session.runs.values())
    """Returns the runs that have that data."""
    suffix: str = ""
    """Suffix of files of a binary format, which cannot be written to stdout."""
    folder: bool = False
    """Whether the format is a folder of files."""
    opens: str = ""
    """Where to open the file, for the note after it was written."""


FORMATS: Final = {
    form.name: form
    for form in (
        ExportFormat(
            "perfetto", lambda source: perfetto.pieces(source.session, *source.runs), ("timeline", "trust"),
            "a timeline", perfetto.runs, opens="open it at https://ui.perfetto.dev",
        ),
        ExportFormat("html", _page, opens="open it in a browser"),
        ExportFormat(
            "pprof", lambda source: pprof.pieces(source.session, *source.runs), ("kernels", "trust"),
            "kernels or sampled lines", pprof.runs, ".pb.gz", opens="go tool pprof -http localhost: opens it",
        ),
        ExportFormat("parquet", _tables, folder=True),
    )
}  # fmt: skip
"""Formats by name. The first one is the default."""
_CAPTURED: Final = "`jaxprof run` captures kernels, and `jaxprof script --capture-steps 100` those of a script."


def chosen_runs(form: ExportFormat, session: Session, file: str, run_id: str | None) -> Sequence[Run]:
    """Return the runs to export: run `run_id`, or by default all runs with the data that the format needs. Raises
    UsageError if there is none, or if there are several and the format needs data of one."""
    usable = form.runs(session)
    listed = ", ".join(f"{run.id} ({run.label})" for run in usable[:10])
    if run_id is not None:
        if run_id not in session.runs:
            raise unknown_name("run", run_id, session.runs)
        if session.runs[run_id] not in usable:
            hint = f"These have: {listed}." if listed else _CAPTURED
            raise UsageError(f"run {run_id} has no {form.has.removeprefix('a ')}", hint)
        return [session.runs[run_id]]
    if not usable and form.has:
        raise UsageError(f"no run of {file} has {form.has}", _CAPTURED)
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
