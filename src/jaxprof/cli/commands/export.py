"""`jaxprof export FILE --format perfetto`: the timeline of a run for ui.perfetto.dev."""

from __future__ import annotations

import gzip
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from jaxprof.cli.complete import complete_session
from jaxprof.cli.profiles import profile_at, profile_options

if TYPE_CHECKING:
    from jaxprof.session import Run, Session


@click.command("export")
@click.argument("file", metavar="FILE", shell_complete=complete_session)
@click.option(
    "--format", "form", type=click.Choice(["perfetto"]), default="perfetto", show_default=True, help="What to."
)
@click.option("--run", "run_id", metavar="ID", help="The run: r2. Needed where several have a timeline.")
@click.option("-o", "--out", type=click.Path(path_type=Path), metavar="FILE", help="Default: stdout. With .gz, packed.")
@click.option("--force", is_flag=True, help="Replace the file of --out.")
@profile_options
def command(
    file: str, form: str, run_id: str | None, out: Path | None, force: bool, profile_run: str, hosts: tuple[str, ...]
) -> None:
    """Write the timeline of the session FILE (or of a profile) as a trace that ui.perfetto.dev opens."""
    from jaxprof.cli.profiles import imported
    from jaxprof.session import Session
    from jaxprof.store import Library, load

    profile = profile_at(file)
    if profile is not None:
        with imported(profile, profile_run, hosts) as (_, session):
            _export(session, file, run_id, out, force)
    else:
        _export(load(Library().find(file), Session), file, run_id, out, force)


def _export(session: Session, file: str, run_id: str | None, out: Path | None, force: bool) -> None:
    from jaxprof.errors import StorageError
    from jaxprof.report.perfetto import to_perfetto
    from jaxprof.results.timeline import TEXT_NAME, read_timeline

    run = _chosen(session, file, run_id)
    timeline = read_timeline(session.text(run.id, TEXT_NAME) or "")
    if timeline.left_out:
        click.echo(f"note: the {timeline.left_out} shortest intervals are not in the timeline", err=True)
    pieces = to_perfetto(timeline, run.label)
    if out is None:
        for piece in pieces:
            click.echo(piece, nl=False)
        return
    try:
        _write(pieces, out, force)
    except FileExistsError as error:
        raise StorageError(f"{out} is there already", "--force replaces it.") from error
    except OSError as error:
        raise StorageError(f"{out} cannot be written: {error.strerror or error}", "Name another place.") from error
    click.echo(f"written: {out} (open it at https://ui.perfetto.dev)", err=True)


def _write(pieces: Iterable[str], out: Path, force: bool) -> None:
    with out.open("wb" if force else "xb") as raw:
        if out.suffix == ".gz":
            with gzip.GzipFile(fileobj=raw, mode="wb", compresslevel=6, mtime=0) as packed:
                packed.writelines(piece.encode() for piece in pieces)
        else:
            raw.writelines(piece.encode() for piece in pieces)


def _chosen(session: Session, file: str, run_id: str | None) -> Run:
    from jaxprof.errors import UsageError, unknown_name
    from jaxprof.results.timeline import TEXT_NAME

    having = [run for run in session.runs.values() if TEXT_NAME in run.texts]
    those = ", ".join(f"{run.id} ({run.label})" for run in having[:10])
    if run_id is not None:
        if run_id not in session.runs:
            raise unknown_name("run", run_id, session.runs)
        if run_id not in {run.id for run in having}:
            raise UsageError(f"run {run_id} has no timeline", f"These have one: {those}." if those else "")
        return session.runs[run_id]
    if not having:
        raise UsageError(f"no run of {file} has a timeline", "A run has one where its kernels were captured.")
    if len(having) > 1:
        raise UsageError(f"{len(having)} runs of {file} have a timeline", f"Choose one with --run: {those}.")
    return having[0]
