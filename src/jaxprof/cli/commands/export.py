"""`jaxprof export FILE`: a page for any browser, a timeline for ui.perfetto.dev, times for benchmark dashboards."""

from __future__ import annotations

import gzip
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from jaxprof.cli.complete import complete_run, complete_session
from jaxprof.cli.output import note, print_pieces
from jaxprof.cli.profiles import profile_at, profile_options

if TYPE_CHECKING:
    from jaxprof.report.perfetto import ExportedHlo
    from jaxprof.session import Run, Session


@click.command("export")
@click.argument("file", metavar="FILE", shell_complete=complete_session)
@click.option(
    "--format",
    "form",
    type=click.Choice(["perfetto", "html", "pytest-benchmark"]),
    default="perfetto",
    show_default=True,
    help="A timeline for ui.perfetto.dev, a page for a browser, or times for benchmark dashboards.",
)
@click.option(
    "--run",
    "run_id",
    metavar="ID",
    shell_complete=complete_run,
    help="The run: r2. Needed if several runs have a timeline; pages and times are of all runs.",
)
@click.option(
    "-o", "--out", type=click.Path(path_type=Path), metavar="FILE", help="Default: stdout. With .gz, compressed."
)
@click.option("--force", is_flag=True, help="Replace the file of --out.")
@profile_options
def command(
    file: str, form: str, run_id: str | None, out: Path | None, force: bool, profile_run: str, hosts: tuple[str, ...]
) -> None:
    """Write the session FILE in a form that other tools read.

    As perfetto, the timeline of a run (or of a profile), which ui.perfetto.dev opens; as html, everything on one page
    that needs no network; as pytest-benchmark, the times of its runs with their exact facts, as JSON that benchmark
    dashboards and `pytest-benchmark compare` read.
    """
    from jaxprof.cli.given import refuse, refuse_without
    from jaxprof.cli.profiles import imported, refuse_of_profile
    from jaxprof.errors import UsageError
    from jaxprof.session import Session
    from jaxprof.session.log import Library, load
    from jaxprof.session.log.library import is_live

    refuse_without("out", ("force",))
    if form == "pytest-benchmark":
        refuse(("profile_run", "hosts"), "applies to the timeline of a profile", "Times are those of a session's runs.")
        _times(load(Library().find(file), Session), file, run_id, out, force)
        return
    if form == "html" and run_id is not None:
        raise UsageError("--run does not apply to --format html", "The page has all runs.")
    profile = profile_at(file)
    if profile is not None:
        views = (
            ("kernels", "steps", "compile", "memory", "trust", "timeline") if form == "html" else ("timeline", "trust")
        )
        with imported(profile, profile_run, hosts, views) as (_, session):
            _page(session, str(profile), out, force) if form == "html" else _export(session, file, run_id, out, force)
        return
    refuse_of_profile(file)
    library = Library()
    path = library.find(file)
    session = load(path, Session)
    if form == "html":
        _page(session, library.name_of(path), out, force, live=not session.complete and is_live(path))
    else:
        _export(session, file, run_id, out, force)


def _page(session: Session, name: str, out: Path | None, force: bool, *, live: bool = False) -> None:
    from jaxprof.report.page.document import to_page

    _put([to_page(session, name, live=live)], out, force, " (open it in a browser)")


def _export(session: Session, file: str, run_id: str | None, out: Path | None, force: bool) -> None:
    from jaxprof.analysis.timeline import TEXT_NAME, read_timeline
    from jaxprof.report.perfetto import to_perfetto

    run = _chosen(session, file, run_id)
    timeline = read_timeline(session.text(run.id, TEXT_NAME) or "")
    if timeline.left_out:
        note(f"note: the {timeline.left_out} shortest intervals are not in the timeline")
    _put(
        to_perfetto(timeline, run.label, list(_modules(session, run))),
        out,
        force,
        " (open it at https://ui.perfetto.dev)",
    )


def _times(session: Session, file: str, run_id: str | None, out: Path | None, force: bool) -> None:
    from jaxprof.errors import UsageError, unknown_name
    from jaxprof.report.pytest_benchmark import timed_runs, to_pytest_benchmark
    from jaxprof.text import json_text

    if run_id is not None and run_id not in session.runs:
        raise unknown_name("run", run_id, session.runs)
    wanted = [run for run in session.runs.values() if run_id in (None, run.id)]
    timed = [run for run in timed_runs(session) if run in wanted]
    if not timed:
        those = f"run {run_id}" if run_id is not None else f"no run of {file}"
        hint = "A run of `jaxprof run` has them; in a test, read result.median_seconds."
        raise UsageError(f"{those} has {'no ' if run_id is not None else ''}times", hint)
    if len(timed) < len(wanted):
        left = [run.id for run in wanted if run not in timed]
        note(f"note: without times, and left out: {', '.join(left)}")
    _put([json_text(to_pytest_benchmark(session, timed)), "\n"], out, force)


def _put(pieces: Iterable[str], out: Path | None, force: bool, hint: str = "") -> None:
    from jaxprof.errors import StorageError, system_words

    if out is None:
        print_pieces(pieces)
        return
    try:
        _write(pieces, out, force)
    except FileExistsError as error:
        raise StorageError(f"{out} already exists", "--force replaces it.") from error
    except OSError as error:
        raise StorageError(f"{out} cannot be written: {system_words(error)}", "Name another place.") from error
    note(f"written: {out}{hint}")


def _modules(session: Session, run: Run) -> Iterator[ExportedHlo]:
    """The HLO of the programs in the timeline of `run`: its own, or, for a profile, that of all its programs."""
    from jaxprof.analysis.profile import programs_of
    from jaxprof.report.perfetto import ExportedHlo

    for of_program in programs_of(session, run):
        text = session.text(of_program.id, "hlo")
        if text:
            name = text.split("HloModule ", 1)[-1].split(",", 1)[0].split(None, 1)[0] if run is of_program else ""
            program = of_program.plan.parameters.get("program")
            yield ExportedHlo(name or of_program.plan.workload, None if program is None else str(program), text)


def _write(pieces: Iterable[str], out: Path, force: bool) -> None:
    with out.open("wb" if force else "xb") as raw:
        if out.suffix == ".gz":
            with gzip.GzipFile(fileobj=raw, mode="wb", compresslevel=6, mtime=0) as packed:
                packed.writelines(piece.encode() for piece in pieces)
        else:
            raw.writelines(piece.encode() for piece in pieces)


def _chosen(session: Session, file: str, run_id: str | None) -> Run:
    from jaxprof.analysis.timeline import TEXT_NAME
    from jaxprof.errors import UsageError, unknown_name

    having = [run for run in session.runs.values() if TEXT_NAME in run.texts]
    those = ", ".join(f"{run.id} ({run.label})" for run in having[:10])
    if run_id is not None:
        if run_id not in session.runs:
            raise unknown_name("run", run_id, session.runs)
        if run_id not in {run.id for run in having}:
            raise UsageError(f"run {run_id} has no timeline", f"These have one: {those}." if those else "")
        return session.runs[run_id]
    if not having:
        raise UsageError(f"no run of {file} has a timeline", "A run has one if its kernels were captured.")
    if len(having) > 1:
        raise UsageError(f"{len(having)} runs of {file} have a timeline", f"Choose one with --run: {those}.")
    return having[0]
