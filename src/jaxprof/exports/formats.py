"""The formats that a session can be exported to, by their names on the command line."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Final, Protocol, cast

from jaxprof.analysis.timeline import TEXT_NAME, read_timeline
from jaxprof.errors import UsageError, unknown_name
from jaxprof.exports.source import ExportSource
from jaxprof.session import Run, Session


class ExportModule(Protocol):
    """What the module of a format has. `pieces` of one file, `files` of a folder."""

    def runs(self, session: Session) -> list[Run]:
        """The runs that have what the format is made of."""
        ...

    def pieces(self, source: ExportSource) -> Iterable[str] | Iterable[bytes]:
        """The file, as text in UTF-8 or as bytes."""
        ...

    def files(self, source: ExportSource) -> Iterable[tuple[str, bytes]]:
        """Each file's name and content."""
        ...


@dataclass(frozen=True, slots=True)
class ExportFormat:
    """A format, without the module that writes it: that is imported when it is used."""

    name: str
    suffix: str
    """Of its files, for documents and hints."""
    what: str
    """What the file is, and for which tool."""
    has: str
    """What a run must have: `a timeline`."""
    hint: str
    """How a run comes to have that."""
    views: tuple[str, ...]
    """The views of a profile that it is made of; empty if it is not made of profiles."""
    several: bool = True
    """Whether one file can have several runs."""
    binary: bool = False
    """Whether its files are no text, which stdout does not take."""
    folder: bool = False
    """Whether it is a folder of files."""
    opens: str = ""
    """Where the file opens, for the note after it was written."""

    @property
    def module(self) -> ExportModule:
        """The module that writes it."""
        return cast("ExportModule", import_module(f"jaxprof.exports.{self.name.replace('-', '_')}"))


_CAPTURED: Final = "A run has it if its kernels were captured."
FORMATS: Final = {
    form.name: form
    for form in (
        ExportFormat(
            "perfetto", ".json.gz", "a timeline for ui.perfetto.dev", "a timeline", _CAPTURED, ("timeline", "trust"),
            several=False, opens="open it at https://ui.perfetto.dev",
        ),
        ExportFormat(
            "html", ".html", "one page for any browser", "", "",
            ("kernels", "steps", "compile", "memory", "trust", "timeline"), opens="open it in a browser",
        ),
        ExportFormat(
            "speedscope", ".speedscope.json", "timelines, kernels, compile passes and lines for speedscope",
            "a timeline, kernels, compile passes or sampled lines", _CAPTURED,
            ("kernels", "compile", "timeline", "trust"), opens="open it at https://www.speedscope.app",
        ),
        ExportFormat(
            "pprof", ".pb.gz", "kernels or sampled lines as stacks for pprof", "kernels or sampled lines",
            _CAPTURED, ("kernels", "trust"), several=False, binary=True,
            opens="go tool pprof -http localhost: opens it",
        ),
        ExportFormat(
            "parquet", "", "the tables of `jaxprof query` as files of Parquet", "", "",
            ("kernels", "steps", "compile", "memory", "trust", "timeline"), folder=True,
        ),
        ExportFormat(
            "pytest-benchmark", ".json", "times for benchmark dashboards", "times",
            "A run of `jaxprof run` has them; in a test, read result.median_seconds.", (),
        ),
    )
}  # fmt: skip
"""The first one is the default."""


def chosen_runs(form: ExportFormat, session: Session, file: str, run_id: str | None) -> Sequence[Run]:
    """The runs that are exported: the one that was named, else all that have what the format is made of. Raises
    UsageError if there is none, or if there are several and a file has one."""
    having = form.module.runs(session)
    those = ", ".join(f"{run.id} ({run.label})" for run in having[:10])
    if run_id is not None:
        if run_id not in session.runs:
            raise unknown_name("run", run_id, session.runs)
        if session.runs[run_id] not in having:
            raise UsageError(f"run {run_id} has no {_bare(form.has)}", f"These have: {those}." if those else form.hint)
        return [session.runs[run_id]]
    if not having and form.has:
        raise UsageError(f"no run of {file} has {form.has}", form.hint)
    if len(having) > 1 and not form.several:
        raise UsageError(f"{len(having)} runs of {file} have {form.has}", f"Choose one with --run: {those}.")
    return having


def _bare(has: str) -> str:
    return has.removeprefix("a ")


def left_out_notes(form: ExportFormat, session: Session, runs: Sequence[Run], run_id: str | None) -> list[str]:
    """What the file does not hold: runs without what it is made of, and intervals that the profile's timeline lacks."""
    notes = []
    left = [run.id for run in session.runs.values() if run not in runs]
    if left and run_id is None and form.several:
        notes.append(f"note: without {form.has}, and left out: {', '.join(left)}")
    if "timeline" in form.views and form.has:
        for run in runs:
            stored = session.text(run.id, TEXT_NAME)
            if stored and (missing := read_timeline(stored).left_out):
                notes.append(f"note: the {missing} shortest intervals are not in the timeline")
    return notes
