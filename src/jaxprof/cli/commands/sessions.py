"""`jaxprof sessions`: the kept sessions, their sizes, and how to be rid of them. Listing folds nothing."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from jaxprof.cli.complete import complete_session
from jaxprof.cli.exit_codes import ExitCode
from jaxprof.cli.output import format_option, print_json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jaxprof.store import Entry, Library

_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([kmgt]?)i?b?$", re.IGNORECASE)
_SCALE = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}


def size(value: str) -> int:
    """A size on disk in bytes: `500M`, `2G`, `1048576`; units are binary. Raises BadParameter."""
    match = _SIZE.match(value.strip())
    if match is None:
        raise click.BadParameter(f"{value!r} is not a size such as 500M or 2G")
    return int(float(match.group(1)) * _SCALE[match.group(2).lower()])


@click.group("sessions", invoke_without_command=True)
@format_option("text", "json")
@click.pass_context
def command(ctx: click.Context, form: str) -> None:
    """List the kept sessions with their sizes; rename, delete or prune them."""
    if ctx.invoked_subcommand is None:
        _list(form)


@command.command("list")
@format_option("text", "json")
def list_(form: str) -> None:
    """List the kept sessions, the newest first."""
    _list(form)


@command.command()
def path() -> None:
    """Print the folder that keeps them."""
    click.echo(_library().folder)


@command.command()
@click.argument("name", shell_complete=complete_session)
@click.argument("new_name")
def rename(name: str, new_name: str) -> None:
    """Give the session NAME another name."""
    library = _library()
    click.echo(library.rename(library.find(name), new_name))


@command.command()
@click.argument("names", nargs=-1, required=True, metavar="NAME...", shell_complete=complete_session)
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
def delete(names: tuple[str, ...], yes: bool) -> int:
    """Delete sessions, after asking."""
    library = _library()
    return _delete(library, list(dict.fromkeys(library.find(name) for name in names)), yes=yes)


@command.command()
@click.option("--keep", type=click.IntRange(0), metavar="N", help="Keep the newest N.")
@click.option("--older-than", type=click.FloatRange(0), metavar="DAYS", help="Delete what is older than so many days.")
@click.option("--max-size", type=size, metavar="SIZE", help="Delete the oldest until the rest fits: 500M, 2G.")
@click.option("--dry-run", is_flag=True, help="Only print what would be deleted.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
def prune(keep: int | None, older_than: float | None, max_size: int | None, dry_run: bool, yes: bool) -> int:
    """Delete old sessions, after asking. Those that are being written now are left alone."""
    if keep is None and older_than is None and max_size is None:
        raise click.UsageError("Say what to delete: --keep N, --older-than DAYS or --max-size SIZE.")
    library = _library()
    doomed = library.prunable(keep=keep, older_than_days=older_than, max_bytes=max_size)
    if dry_run:
        for each in doomed:
            click.echo(each)
        return ExitCode.OK
    return _delete(library, doomed, yes=yes)


def _library() -> Library:
    from jaxprof.store import Library

    return Library()


def _list(form: str) -> None:
    library = _library()
    entries = list(library.entries())
    if form == "json":
        total = sum(entry.size_bytes for entry in entries)
        print_json(
            {"folder": str(library.folder), "size_bytes": total, "sessions": [_entry_json(each) for each in entries]}
        )
        return
    from jaxprof.report.table import table
    from jaxprof.units import bytes_

    if entries:
        rows = [("session", "created", "size", "runs", "state", "workloads")]
        rows += [_row(entry) for entry in entries]
        click.echo("\n".join(table(rows, right=(2, 3), indent="", widest=(34, 0, 0, 0, 24, 40))))
    total_text = bytes_(sum(entry.size_bytes for entry in entries))
    count = f"{len(entries)} session{'' if len(entries) == 1 else 's'}"
    click.echo(f"{count}, {total_text}, in {library.folder}")


def _row(entry: Entry) -> tuple[str, str, str, str, str, str]:
    from jaxprof.units import bytes_

    created = entry.header.created.replace("T", " ").removesuffix("Z") if entry.header is not None else "-"
    failed = sum(run.status != "ok" for run in entry.closed)
    runs = (
        f"{len(entry.closed)}/{len(entry.planned)}"
        if len(entry.closed) < len(entry.planned)
        else f"{len(entry.closed)}"
    )
    state = "complete" if entry.complete else "being written" if entry.live else "cut off"
    if entry.problem:
        state = "not readable"
    elif failed:
        state += f", {failed} not well"
    return entry.name, created, bytes_(entry.size_bytes), runs, state, entry.problem or ", ".join(entry.workloads)


def _entry_json(entry: Entry) -> dict[str, Any]:
    return {
        "name": entry.name,
        "path": str(entry.path),
        "size_bytes": entry.size_bytes,
        "id": entry.header.session if entry.header is not None else None,
        "created": entry.header.created if entry.header is not None else None,
        "complete": entry.complete,
        "live": entry.live,
        "problem": entry.problem or None,
        "workloads": entry.workloads,
        "runs": [
            {
                "id": run.run,
                "workload": run.workload,
                "variant": run.variant,
                "device": run.device,
                "status": run.status,
                "median_seconds": run.median_seconds,
                "ci95_seconds": run.ci95_seconds,
            }
            for run in entry.closed
        ],
    }


def _delete(library: Library, doomed: Sequence[Path], *, yes: bool) -> int:
    """Deletes after asking; where nobody can be asked, `--yes` must say so."""
    if not doomed:
        click.echo("Nothing to delete.", err=True)
        return ExitCode.OK
    from jaxprof.units import bytes_

    taken = bytes_(sum(each.stat().st_size for each in doomed))
    for each in doomed:
        click.echo(each, err=True)
    if not yes:
        if not sys.stdin.isatty():
            raise click.UsageError("Deleting asks first, and stdin is no terminal: add --yes.")
        if not click.confirm(f"Delete {len(doomed)} ({taken})?", err=True):
            return ExitCode.OK
    for each in doomed:
        library.delete(each)
    click.echo(f"Deleted {len(doomed)} ({taken}).", err=True)
    return ExitCode.OK
