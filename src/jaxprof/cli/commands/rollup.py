"""`jaxprof sessions rollup DIR`: tables of a job's sessions, for jaxprof itself and for other engines."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from jaxprof.cli.answers import command_line
from jaxprof.cli.options import refuse
from jaxprof.cli.output import ExitCode, format_option, print_json, print_text
from jaxprof.cli.target import job_at
from jaxprof.errors import UsageError
from jaxprof.files import with_home
from jaxprof.remote.place import RemotePlace, is_url
from jaxprof.text import safe
from jaxprof.units import bytes_, counted

if TYPE_CHECKING:
    from jaxprof.rollup.making import RollUpReport, SessionPlace

ON: Final = ("local", "ray")
"""Where sessions are read: in worker processes on this machine, or by tasks of a Ray cluster."""


@click.command("rollup")
@click.argument("folder", metavar="DIR|URL")
@click.option(
    "--on",
    type=click.Choice(ON),
    default="local",
    help="Where: in processes of this machine (local), or on a Ray cluster.",
)
@click.option(
    "--address",
    metavar="HOST:PORT",
    help="With --on ray: the cluster, else RAY_ADDRESS; auto finds one that runs here, local starts one.",
)
@click.option("--workers", type=click.IntRange(1), metavar="N", help="Worker processes. Default: one a processor.")
@click.option("--all", "every", is_flag=True, help="Also remake the roll-ups that are up to date.")
@format_option("text", "json")
def command(folder: str, on: str, address: str | None, workers: int | None, every: bool, form: str) -> int:
    """Make or refresh the roll-ups of a job: tables of some tens of KB for each process, as Parquet.

    DIR is the folder of a job, `run.jaxprof.d`, or its URL. `jaxprof script` writes roll-ups as it records; this makes
    those that are missing or older than their session. With them a job of a thousand processes opens at once, and
    DuckDB, Spark, BigQuery and others can read it: docs/scale.md has the tables. Needs the extra `query`.

    With --on ray the sessions are read by tasks of a Ray cluster, whose nodes need this version of jaxprof, and see DIR
    at the same path, or the store. Needs the extra `ray`.
    """
    from jaxprof.rollup.job import has_extra

    if not has_extra():
        hint = f"{sys.executable} -m pip install 'duckdb>=2,<3' pyarrow"
        raise UsageError("`rollup` needs duckdb and pyarrow, which are not installed", hint)
    if on != "ray":
        refuse(("address",), "names a Ray cluster", "Add --on ray.")
    from jaxprof.rollup.making import due_in
    from jaxprof.rollup.reading import compact_all

    place, shown = _place(folder)
    wanted, notices = due_in(place, every=every)
    reports = sorted(_roll_up(wanted, on, address, workers), key=lambda report: report.session)
    problem = "" if is_url(place) else compact_all(Path(place))
    if problem:
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


def _place(folder: str) -> tuple[str, str]:
    """Return the folder of a job as its readers take it, and as it may be shown. Raises UsageError."""
    if is_url(folder):
        return folder, RemotePlace(folder).shown
    path = job_at(folder)
    if path is None:
        raise UsageError(
            f"{with_home(folder)} is not the folder of a job",
            "Name one that `jaxprof script` wrote, such as train.jaxprof.d.",
        )
    return str(path), str(path)


def _roll_up(wanted: list[SessionPlace], on: str, address: str | None, workers: int | None) -> Iterator[RollUpReport]:
    if on == "ray" and wanted:
        from jaxprof.rollup.on_ray import cluster, roll_up_on

        with cluster(address, workers) as ray:
            yield from roll_up_on(ray, wanted)
        return
    from jaxprof.rollup.making import in_processes, roll_up_at

    yield from in_processes(roll_up_at, wanted, workers)


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
