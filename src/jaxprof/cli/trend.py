"""`jaxprof compare --over-time`: the trend of a figure over the kept sessions, with the points at which it changed."""

from __future__ import annotations

import re
import time
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import click

from jaxprof.cli.answers import command_line
from jaxprof.cli.output import combine_options, print_json, print_pieces, print_text
from jaxprof.errors import UsageError

if TYPE_CHECKING:
    from jaxprof.analysis.history import LibraryHistory

TREND = ("phase", "fact", "last", "since")
"""Parameters that only a trend takes."""
_AGE = re.compile(r"(\d+(?:\.\d+)?)\s*([mhdw])$")
_AGES = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


def moment(value: str) -> float:
    """Return a Unix time from an age such as `12h`, `7d`, `2w`, or from a date with or without a time, in UTC. Raises
    BadParameter."""
    text = value.strip()
    try:
        if age := _AGE.match(text):
            return time.time() - timedelta(**{_AGES[age.group(2)]: float(age.group(1))}).total_seconds()
        date = datetime.fromisoformat(text)
        return (date if date.tzinfo is not None else date.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        raise click.BadParameter(f"{value!r} is neither an age such as 7d nor a date such as 2026-11-20") from None


trend_options = combine_options(
    click.option(
        "--over-time",
        is_flag=True,
        help="The trend of A (a workload, WORKLOAD:VARIANT, a function of yours), or of all, over the kept sessions.",
    ),
    click.option(
        "--phase",
        type=click.Choice(("run", "trace", "lower", "compile", "first_run")),
        help="With --over-time: the steady call (run, the default), or what is paid once.",
    ),
    click.option(
        "--fact",
        type=click.Choice(("flops", "bytes", "peak")),
        help="With --over-time: an exact fact instead of a time.",
    ),
    click.option(
        "--last", type=click.IntRange(1), metavar="N", help="With --over-time: the newest N points of each measurement."
    ),
    click.option(
        "--since", type=moment, metavar="WHEN", help="With --over-time: later points alone: 7d, 12h, 2026-11-20 (UTC)."
    ),
)


def print_trend(
    workload: str, form: str, *, phase: str | None, fact: str | None, last: int | None, since: float | None
) -> None:
    """Print the trend of each measurement of the workload (of all workloads if it is empty), with the points at which
    it changed for good. Runs of the same workload, variant, kind of device, parameters, arguments and precision on the
    same hardware are one measurement."""
    if phase is not None and fact is not None:
        raise UsageError("--phase chooses a time, and --fact an exact fact", "Give one of them.")
    from jaxprof.analysis.history import read_history
    from jaxprof.report import history as report
    from jaxprof.session.log import Library

    found = read_history(Library().paths(), fact or phase or "run", workload, last=last, since=since)
    if form == "json":
        print_json("history", report.history_json(found), _around_changes(found))
    elif form == "csv":
        print_pieces([report.history_csv(found)])
    elif form == "markdown":
        print_text(report.history_markdown(found))
    elif workload:
        print_text(report.history_text(found, report.POINTS_SHOWN if last is None else None))
    else:
        print_text(report.overview_text(found))


def _around_changes(found: LibraryHistory) -> list[str]:
    """Return the commands that compare, for each series with a change, the session before and after the latest one."""
    changes = [(series.changes[-1].last, series.changes[-1].first) for series in found.series if series.changes]
    return [command_line("compare", f"{last.path}:{last.run}", f"{first.path}:{first.run}") for last, first in changes]
