"""`jaxprof history [WORKLOAD]`: how a figure went over the kept sessions, and where it changed for good."""

from __future__ import annotations

import re
import time
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import click

from jaxprof.cli.answers import command_line
from jaxprof.cli.complete import complete_workload
from jaxprof.cli.output import format_option, print_json, print_pieces, print_text

if TYPE_CHECKING:
    from jaxprof.analysis.history import LibraryHistory

_AGE = re.compile(r"(\d+(?:\.\d+)?)\s*([mhdw])$")
_AGES = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


def since(value: str) -> float:
    """A Unix time: an age such as `12h`, `7d`, `2w`, or a date with or without a time, in UTC. Raises BadParameter."""
    text = value.strip()
    try:
        if age := _AGE.match(text):
            return time.time() - timedelta(**{_AGES[age.group(2)]: float(age.group(1))}).total_seconds()
        moment = datetime.fromisoformat(text)
        return (moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        raise click.BadParameter(f"{value!r} is neither an age such as 7d nor a date such as 2026-11-20") from None


@click.command("history")
@click.argument("workload", default="", shell_complete=complete_workload)
@click.option(
    "--phase",
    type=click.Choice(("run", "trace", "lower", "compile", "first_run")),
    help="Which time: the steady call (run, the default), or what is paid once.",
)
@click.option("--fact", type=click.Choice(("flops", "bytes", "peak")), help="An exact fact instead of a time.")
@click.option("--last", type=click.IntRange(1), metavar="N", help="Only the newest N points of each measurement.")
@click.option("--since", "since_", type=since, metavar="WHEN", help="Only later points: 7d, 12h, 2026-11-20 (UTC).")
@format_option("text", "json", "csv", "markdown")
def command(
    workload: str, phase: str | None, fact: str | None, last: int | None, since_: float | None, form: str
) -> None:
    """The trend of each measurement over the kept sessions, with the points where it changed for good.

    WORKLOAD is a workload, WORKLOAD:VARIANT, or a function of yours as `run` takes it; without it, each measurement of
    any workload has a line. Runs of the same workload, variant, kind of device, parameters, arguments and precision on
    the same hardware are one measurement. A change is found by e-divisive with a permutation test, in six points and
    more; the sessions were not measured together, so a slower machine looks the same as a slower program.
    """
    if phase is not None and fact is not None:
        raise click.UsageError("--phase chooses a time, --fact an exact fact: give one of them.")
    from jaxprof.analysis.history import read_history
    from jaxprof.report import history as report
    from jaxprof.session.log import Library

    found = read_history(Library().paths(), fact or phase or "run", workload, last=last, since=since_)
    if form == "json":
        print_json("history", report.history_json(found), _next(found))
    elif form == "csv":
        print_pieces([report.history_csv(found)])
    elif form == "markdown":
        print_text(report.history_markdown(found))
    elif workload:
        print_text(report.history_text(found, report.POINTS_SHOWN if last is None else None))
    else:
        print_text(report.overview_text(found))


def _next(found: LibraryHistory) -> list[str]:
    """The session before and the one after the latest change of each series that has one, compared."""
    changes = [(series.changes[-1].last, series.changes[-1].first) for series in found.series if series.changes]
    return [command_line("compare", f"{last.path}:{last.run}", f"{first.path}:{first.run}") for last, first in changes]
