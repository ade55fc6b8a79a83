"""`jaxprof export FILE`: a session, or a profile, in the form that another tool reads."""

from __future__ import annotations

import contextlib
import gzip
import io
import sys
from collections.abc import Iterable
from pathlib import Path

import click

from jaxprof.cli import options
from jaxprof.cli.options import refuse, refuse_without
from jaxprof.cli.output import note, notes, print_pieces, written_whole
from jaxprof.cli.target import local_source, recorded
from jaxprof.errors import JaxprofError, StorageError, UsageError, system_words

NAMES = ("perfetto", "html", "pprof", "parquet")
"""Names of `exports.formats.FORMATS`, repeated here so that completion and `--help` do not load the formats."""


@click.command("export")
@click.argument("file", metavar="FILE", callback=local_source, shell_complete=options.completed_by("session"))
@click.option(
    "--format",
    "form",
    type=click.Choice(NAMES),
    default=NAMES[0],
    show_default=True,
    help="What to write.",
)
@options.run(help="The run: r2. Needed for perfetto and pprof if several runs have one; the others have all runs.")
@options.out(help="Default: stdout. With .gz, compressed.")
@options.force()
@options.profile
def command(
    file: str,
    form: str,
    run_id: str | None,
    out: Path | None,
    force: bool,
) -> None:
    """Write the session FILE in a form that other tools read.

    \b
    perfetto  the timeline of a run, for ui.perfetto.dev
    html      everything on one page that needs no network
    pprof     kernels, or the lines of a program, as stacks
    parquet   the tables of `jaxprof query`, a file each in the folder of --out

    FILE can also be a profile that was recorded elsewhere.
    """
    from jaxprof.exports.formats import FORMATS, ExportSource, chosen_runs, left_out_notes

    refuse_without("out", ("force",))
    chosen = FORMATS[form]
    if form == "html" or chosen.folder:
        refuse(("run_id",), f"does not apply to --format {form}", "It has all runs.")
    if chosen.folder and out is None:
        raise UsageError(f"{form} writes several files", "Name a folder for them: -o tables.")
    if chosen.suffix and out is None:
        raise UsageError(f"{form} is a binary format", f"Name a file: -o run{chosen.suffix}.")
    with recorded(file, chosen.views) as found:
        runs = chosen_runs(chosen, found.session, found.name, run_id)
        notes(left_out_notes(chosen, found.session, runs))
        source = ExportSource(found.session, runs, found.path, found.name)
        if chosen.folder and out is not None:
            _put_files(chosen.pieces(source), out, force)
        else:
            _put(chosen.pieces(source), out, force, f" ({chosen.opens})" if chosen.opens else "")


def _put(pieces: Iterable[str] | Iterable[bytes], out: Path | None, force: bool, hint: str) -> None:
    """Print a file, or write it, compressed if its suffix is .gz and the format is not compressed by itself."""
    if out is None:
        if isinstance(sys.stdout, io.TextIOWrapper):  # the file says itself that it is UTF-8
            sys.stdout.reconfigure(encoding="utf-8")
        print_pieces(piece if isinstance(piece, str) else piece.decode() for piece in pieces)
        return
    encoded = (piece if isinstance(piece, bytes) else piece.encode() for piece in pieces)
    first = next(encoded, b"")
    with written_whole(out, force=force) as place, place.open("wb") as raw:
        packed = out.suffix == ".gz" and not first.startswith(b"\x1f\x8b")
        with gzip.GzipFile(fileobj=raw, mode="wb", compresslevel=6, mtime=0) if packed else raw as file:
            file.write(first)
            file.writelines(encoded)
    note(f"written: {out}{hint}")


def _put_files(files: Iterable[tuple[str, bytes]], folder: Path, force: bool) -> None:
    """Write all of the files, or none: each is written beside its place, and takes it when the last is written."""
    written = []
    is_new = not folder.exists()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with contextlib.ExitStack() as places:
            for name, content in files:
                places.enter_context(written_whole(folder / name, force=force)).write_bytes(content)
                written.append(name)
    except (OSError, JaxprofError) as error:
        if is_new:
            with contextlib.suppress(OSError):
                folder.rmdir()
        if isinstance(error, JaxprofError):
            raise
        raise StorageError(f"{folder} cannot be written: {system_words(error)}", "Name another place.") from error
    note(f"written: {', '.join(written)} in {folder}" if written else "note: the session has no rows in any table")
