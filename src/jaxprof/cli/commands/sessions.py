"""`jaxprof sessions`: list, rename and delete the kept sessions, and make the tables of a job (`rollup`), for
jaxprof itself and for other engines. Listing folds no session."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from jaxprof.base.errors import UsageError
from jaxprof.base.limits import size_of
from jaxprof.base.units import bytes_, counted, utc_text
from jaxprof.cli import options
from jaxprof.cli.answers import command_line, print_answer, print_facts
from jaxprof.cli.options import require_packages
from jaxprof.cli.output import ExitCode, confirm, format_option, note, notes, print_lines
from jaxprof.events.base import with_failures
from jaxprof.facts import column, pick
from jaxprof.facts.answers import ENTRY
from jaxprof.remote import path_here
from jaxprof.session import Entry, Library
from jaxprof.session.library import bytes_on_disk

_LARGEST = 1 << 60


def size(value: str) -> int:
    """Return a size on disk in bytes, as `size_of` does. Raises BadParameter."""
    found = size_of(value)
    if found is None or found > _LARGEST:
        raise click.BadParameter(f"{value!r} is not a size such as 500M or 2G")
    return found


@click.group("sessions", cls=options.ListingGroup)
def command() -> None:
    """List the kept sessions, and jobs (run.jaxprof.d) kept there or in the current folder, with their sizes; rename,
    delete or prune them; make the summary tables of a job."""


@command.command("list")
@format_option("text", "json")
def list_(form: str) -> None:
    """List the kept sessions, and the jobs here, the newest first."""
    from jaxprof.report import Table, text_lines

    library = Library()
    entries = list(library.entries())
    total = sum(entry.size_bytes for entry in entries)
    if form == "json":
        data = {"folder": str(library.folder), "size_bytes": total, "sessions": entries}
        print_facts("sessions", data, [command_line("open", entry.path) for entry in entries[:1]])
        return
    columns = (
        *pick(ENTRY, "name"),
        column("created", "header.created", utc_text, right=False),
        *pick(ENTRY, "size_bytes"),
        column("runs", _runs, right=True),
        column("state", _state, widest=40),
        column("workloads", _workloads, widest=40),
    )
    print_lines(text_lines(Table(columns, entries), indent=""))
    jobs = sum(entry.job is not None for entry in entries)
    here = any(entry.path.parent.absolute() != library.folder.absolute() for entry in entries)
    where = f"{library.folder}{' and the current folder' if here else ''}"
    print_lines([f"{_counts(len(entries) - jobs, jobs)}, {bytes_(total)}, in {where}"])


@command.command()
@click.argument("name", shell_complete=options.complete_with("session"))
@click.argument("new_name")
def rename(name: str, new_name: str) -> None:
    """Give the session, or the job, NAME another name."""
    library = Library()
    print_lines([str(library.rename(library.find(name, jobs=True), new_name))])


@command.command()
@click.argument("names", nargs=-1, required=True, metavar="NAME...", shell_complete=options.complete_with("session"))
@options.yes("-y")
def delete(names: tuple[str, ...], yes: bool) -> None:
    """Delete sessions, or jobs with all their processes, after asking."""
    library = Library()
    _delete(library, list(dict.fromkeys(library.find(name, jobs=True) for name in names)), yes=yes)


@command.command()
@click.option("--keep", type=click.IntRange(0), metavar="N", help="Keep the newest N.")
@click.option("--older-than", type=click.FloatRange(0), metavar="DAYS", help="Delete sessions older than DAYS.")
@click.option("--max-size", type=size, metavar="SIZE", help="Delete the oldest until the rest fits: 500M, 2G.")
@options.yes("-y")
def prune(keep: int | None, older_than: float | None, max_size: int | None, yes: bool) -> None:
    """Delete old sessions and jobs, after asking. Only those in the folder of sessions; what is being written is
    kept."""
    if keep is None and older_than is None and max_size is None:
        raise UsageError("nothing says what to delete", "Give --keep N, --older-than DAYS or --max-size SIZE.")
    library = Library()
    _delete(library, library.prunable(keep=keep, older_than_days=older_than, max_bytes=max_size), yes=yes)


def _counts(sessions: int, jobs: int) -> str:
    """Return `3 sessions and 1 job`. A count of 0 is left out, except that of the sessions if there is no job."""
    counts = [counted(sessions, "session")] if sessions or not jobs else []
    return " and ".join([*counts, *([counted(jobs, "job")] if jobs else [])])


def _runs(entry: Entry) -> str:
    closed, planned = len(entry.closed), len(entry.planned)
    return f"{closed}/{planned}" if closed < planned else str(closed)


def _workloads(entry: Entry) -> str:
    """Return what was run, or why that cannot be read; for a job also its number of processes."""
    words = entry.problem or ", ".join(entry.workloads)
    return f"{words} · {counted(len(entry.job.processes), 'process', 'processes')}" if entry.job is not None else words


def _state(entry: Entry) -> str:
    if entry.problem:
        return "unreadable"
    if entry.job is not None:
        missing = [f"{entry.job.missing} missing"] if entry.job.missing else []
        return ", ".join([*(f"{count} {status}" for status, count in entry.job.by_status.items()), *missing])
    return with_failures(entry.state, (run.status for run in entry.closed))


def _delete(library: Library, doomed: Sequence[Path], *, yes: bool) -> None:
    """Delete after asking. Without a terminal, `--yes` is required."""
    if not doomed:
        note("Nothing to delete.")
        return
    jobs = sum(path.is_dir() for path in doomed)
    what = f"{_counts(len(doomed) - jobs, jobs)} ({bytes_(bytes_on_disk(*doomed))})"
    notes(map(str, doomed))
    if confirm(f"Delete {what}?", yes=yes):
        for path in doomed:
            library.delete(path)
        note(f"Deleted {what}.")


@command.command()
@click.argument("folder", metavar="DIR")
@click.option("--workers", type=click.IntRange(1), metavar="N", help="Worker processes. Default: one a processor.")
@click.option("--all", "every", is_flag=True, help="Also remake the roll-ups that are up to date.")
@format_option("text", "json")
def rollup(folder: str, workers: int | None, every: bool, form: str) -> int:
    """Make or refresh the roll-ups of a job.

    They are tables of some tens of KB for each process, as Parquet. DIR is the folder of a job, `run.jaxprof.d`.
    `jaxprof script` writes roll-ups as it records; this makes those that are missing or older than their session. With
    them a job of a thousand processes opens at once, and DuckDB, Spark, BigQuery and others can read it: docs/scale.md
    has the tables. Needs the extra `query`.
    """
    require_packages("rollup", *options.QUERY_PACKAGES)
    from jaxprof.analysis.target import Kind, kind_of
    from jaxprof.jobs.roll_ups import compact_all, find_outdated
    from jaxprof.rollup.making import roll_ups

    path = path_here(folder, "Copy the job here first.")
    if kind_of(path) is not Kind.JOB:
        hint = "Name one that `jaxprof script` wrote, such as train.jaxprof.d."
        raise UsageError(f"{path} is not the folder of a job", hint)
    sessions, notices = find_outdated(path, every=every)
    reports = sorted(roll_ups(sessions, workers), key=lambda report: report.session)
    if problem := compact_all(path):
        notices.append(f"the tables of all processes were not put together in one file each: {problem}")
    data = {"folder": str(path), "processes": reports, "notices": notices}
    lines = [f"! {notice}" for notice in notices]
    for report in reports:
        lines += (f"! {report.session}: {notice}" for notice in report.notices)
        if report.error:
            lines.append(f"✗ {report.session}: {report.error}")
    made = [report for report in reports if report.bytes is not None]
    if made:
        written = sum(report.bytes or 0 for report in made)
        total = sum(report.session_bytes or 0 for report in made)
        lines.append(f"{counted(len(made), 'roll-up')} in {path}: {bytes_(written)}, of {bytes_(total)} of sessions")
    elif not reports:
        lines.append(f"every roll-up in {path} is up to date")
    print_answer(form, "rollup", data, lines, [command_line("open", path)])
    return ExitCode.FAILED if any(report.error for report in reports) else ExitCode.OK
