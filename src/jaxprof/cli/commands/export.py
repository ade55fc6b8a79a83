"""`jaxprof export FILE`: a session, or a profile, in the form that another tool reads."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from pathlib import Path

import click

from jaxprof.analysis.target import resolve
from jaxprof.base.errors import JaxprofError, StorageError, UsageError, system_words
from jaxprof.base.files import write_pieces
from jaxprof.cli import options
from jaxprof.cli.options import refuse, require_packages
from jaxprof.cli.output import note, print_data, refuse_existing, write_whole
from jaxprof.cli.recorded import open_recorded
from jaxprof.facts import SessionFile

NAMES = ("perfetto", "html", "parquet")
_FORMATS = {".json": "perfetto", ".html": "html", ".htm": "html", ".parquet": "parquet"}
"""Format by the ending of the file, before `.gz`; with --format, a file with another ending can have any."""


@click.command("export")
@click.argument("file", metavar="FILE", shell_complete=options.complete_with("session"))
@click.option(
    "--format",
    "form",
    type=click.Choice(NAMES),
    help="What to write. Default: what the ending of --out says, or perfetto.",
)
@options.run(help="The run: r2. Needed for perfetto if several runs have a timeline; the others have all runs.")
@options.out(help="Default: stdout. With .gz, compressed.")
@options.force()
@options.profile
def command(file: str, form: str | None, run_id: str | None, out: Path | None, force: bool) -> None:
    """Write the session FILE in a form that other tools read.

    \b
    perfetto  the timeline of a run, for ui.perfetto.dev
    html      everything on one page that needs no network
    parquet   the tables of `jaxprof query`, a file each in the folder of --out

    FILE can also be a profile that was recorded elsewhere.
    """
    # The format is the one that is given, else that of the file's ending. An ending of another format, such as `.md`,
    # is refused.
    plain = out.with_suffix("") if out is not None and out.suffix == ".gz" else out
    of_ending = _FORMATS.get(plain.suffix.lower()) if plain is not None else None
    if form and plain is not None and of_ending not in (None, form):
        ending = next(ending for ending, name in _FORMATS.items() if name == form)
        hint = f"Leave out --format, or name it {plain.with_suffix(ending).name}."
        raise UsageError(f"{out} is the name of a file for {of_ending}, and --format is {form}", hint)
    if not form and of_ending is None and plain is not None and plain.suffix:
        raise UsageError(
            f"{out} is the name of a file for none of {', '.join(NAMES)}",
            f"Name it {plain.with_suffix('.json').name} or {plain.with_suffix('.html').name}, or give --format. "
            "jaxprof open prints text, JSON, CSV and Markdown.",
        )
    form = form or of_ending or NAMES[0]
    if form != "perfetto":
        refuse(("run_id",), f"chooses the timeline for perfetto, and {form} has all runs", "Leave it out.")
    if form == "parquet":
        require_packages("export --format parquet", *options.QUERY_PACKAGES)
        if out is None:
            raise UsageError(f"{form} writes several files", "Name a folder for them: -o tables.")
    with open_recorded(resolve(file, note), ("timeline", "trust") if form == "perfetto" else ()) as found:
        if form == "parquet" and out is not None:
            _write_tables(SessionFile(found.path, found.session), out, force)
        elif form == "html":
            from jaxprof.report.page.document import to_page

            _write([to_page(found.session, found.name)], out, force, "page.html", "open it in a browser")
        else:
            from jaxprof.report import perfetto

            pieces, left_out = perfetto.export(found.session, found.name, run_id)
            if left_out:
                note(f"note: the {left_out} shortest intervals are not in the timeline")
            _write(pieces, out, force, "timeline.json", "open it at https://ui.perfetto.dev")


def _write(pieces: Iterable[str], out: Path | None, force: bool, example: str, opens: str) -> None:
    if out is None:
        print_data(pieces)
        return
    refuse_existing(out, force=force, example=example)
    write_pieces(out, pieces)
    note(f"written: {out} ({opens})")


def _write_tables(file: SessionFile, folder: Path, force: bool) -> None:
    """Write a file for each table that has rows, or none: each is written beside its path, which it gets when the last
    is written."""
    from pyarrow.parquet import write_table

    from jaxprof.facts.tables import TABLES
    from jaxprof.query.columnar import arrow_table

    written = []
    is_new = not folder.exists()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with contextlib.ExitStack() as files:
            for table in TABLES.values():
                rows = arrow_table(table, file)
                if rows.num_rows:
                    name = f"{table.name}.parquet"
                    write_table(rows, files.enter_context(write_whole(folder / name, force=force)))
                    written.append(name)
    except (OSError, JaxprofError) as error:
        if is_new:
            with contextlib.suppress(OSError):
                folder.rmdir()
        if isinstance(error, JaxprofError):
            raise
        raise StorageError(f"{folder} cannot be written: {system_words(error)}", "Name another place.") from error
    note(f"written: {', '.join(written)} in {folder}" if written else "note: the session has no rows in any table")
