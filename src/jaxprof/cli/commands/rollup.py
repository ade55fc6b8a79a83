"""`jaxprof sessions rollup DIR`: tables of a job's sessions, for jaxprof itself and for other engines."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from jaxprof.cli.answers import command_line
from jaxprof.cli.output import ExitCode, format_option, print_json, print_text
from jaxprof.cli.target import job_at
from jaxprof.errors import UsageError
from jaxprof.remote.place import path_here
from jaxprof.text import safe
from jaxprof.units import bytes_, counted

if TYPE_CHECKING:
    from jaxprof.rollup.making import RollUpReport


@click.command("rollup")
@click.argument("folder", metavar="DIR")
@click.option("--workers", type=click.IntRange(1), metavar="N", help="Worker processes. Default: one a processor.")
@click.option("--all", "every", is_flag=True, help="Also remake the roll-ups that are up to date.")
@format_option("text", "json")
def command(folder: str, workers: int | None, every: bool, form: str) -> int:
    """Make or refresh the roll-ups of a job: tables of some tens of KB for each process, as Parquet.

    DIR is the folder of a job, `run.jaxprof.d`. `jaxprof script` writes roll-ups as it records; this makes those that
    are missing or older than their session. With them a job of a thousand processes opens at once, and DuckDB, Spark,
    BigQuery and others can read it: docs/scale.md has the tables. Needs the extra `query`.
    """
    from jaxprof.rollup.job import has_extra

    if not has_extra():
        hint = f"{sys.executable} -m pip install 'duckdb>=2,<3' pyarrow"
        raise UsageError("`rollup` needs duckdb and pyarrow, which are not installed", hint)
    from jaxprof.rollup.job import outdated
    from jaxprof.rollup.making import in_processes, roll_up
    from jaxprof.rollup.reading import compact_all

    path = _job_folder(folder)
    shown = str(path)
    sessions, notices = outdated(path, every=every)
    reports = sorted(in_processes(roll_up, sessions, workers), key=lambda report: report.session)
    if problem := compact_all(path):
        notices.append(f"the tables of all processes were not put together in one file each: {problem}")
    failed = [report for report in reports if report.error]
    if form == "json":
        from jaxprof.cli.kinds import ROLL_UP
        from jaxprof.facts import recorder

        data = {"folder": shown, "processes": list(map(recorder(ROLL_UP), reports)), "notices": notices}
        print_json("rollup", data, [command_line("open", shown)])
    else:
        print_text("\n".join(_lines(shown, reports, notices)))
    return ExitCode.FAILED if failed else ExitCode.OK


def _job_folder(folder: str) -> Path:
    """Return the folder of a job. Raises UsageError."""
    path = path_here(folder, "A job that is recorded to a URL has its roll-ups there.")
    if job_at(str(path)) is None:
        hint = "Name one that `jaxprof script` wrote, such as train.jaxprof.d."
        raise UsageError(f"{path} is not the folder of a job", hint)
    return path


def _lines(folder: str, reports: list[RollUpReport], notices: list[str]) -> Iterator[str]:
    yield from (f"! {safe(notice)}" for notice in notices)
    for report in reports:
        yield from (f"! {safe(report.session)}: {safe(notice)}" for notice in report.notices)
        if report.error:
            yield f"✗ {safe(report.session)}: {safe(report.error)}"
    made = [report for report in reports if report.bytes is not None]
    size = sum(report.bytes or 0 for report in made)
    total = sum(report.session_bytes or 0 for report in made)
    if made:
        yield f"{counted(len(made), 'roll-up')} in {safe(folder)}: {bytes_(size)}, of {bytes_(total)} of sessions"
    elif not reports:
        yield f"every roll-up in {safe(folder)} is up to date"
