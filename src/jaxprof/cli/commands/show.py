"""`jaxprof show FILE`: a kept session on stdout. A session that was interrupted or has failed runs is shown too."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import click

from jaxprof.cli.answers import next_of_session, print_session
from jaxprof.cli.complete import complete_session
from jaxprof.cli.options import chosen_view, profile_options, refuse, run_option, seconds_of, view_options
from jaxprof.cli.output import format_option, print_json, print_pieces, print_text
from jaxprof.cli.target import job_named, local_source, of_one_process, recorded
from jaxprof.errors import UsageError, unknown_name
from jaxprof.files import with_home

if TYPE_CHECKING:
    from pathlib import Path

    from jaxprof.session import Session


@click.command("show")
@click.argument("file", metavar="FILE", callback=local_source, shell_complete=complete_session)
@view_options(
    {
        "kernels": "The measured kernels alone.",
        "compile": "Where the compile time went: XLA's phases and passes.",
        "steps": "Where the time of each step went.",
        "memory": "What the peak memory is made of, and the largest buffers.",
        "trust": "Whether the captures can be trusted.",
        "flame": "Time as frames inside frames: of a program its lines, else kernels by named scope.",
        "compiles": "For a program: each compilation, and why.",
        "findings": "For a program: what to change, and at which line.",
        "transfers": "For a program: implicit copies, host to device.",
        "timeline": "For a program: where its wall time went.",
        "hosts": "For the folder of a job: its processes beside each other, and which one is late.",
        "lanes": "Busy and idle time of each lane of the timeline, and its kernels, --from a time --to another.",
    }
)
@click.option(
    "--from",
    "begin",
    metavar="TIME",
    callback=seconds_of,
    help="With --lanes: from this time of the timeline, 1.5ms or 2s.",
)
@click.option("--to", "end", metavar="TIME", callback=seconds_of, help="With --lanes: up to this time.")
@run_option(help="Only this run (r2) and its baseline.")
@profile_options
@format_option("text", "json", "csv", "markdown")
def command(
    file: str,
    begin: float | None,
    end: float | None,
    run_id: str | None,
    profile_run: str,
    hosts: tuple[str, ...],
    form: str,
) -> None:
    """Print the session FILE: a path, the name of a kept session, part of it, or `last`.

    FILE can also be a profile that was recorded elsewhere: an .xplane.pb (or .gz), a .trace.json.gz, the folder that
    jax.profiler wrote to. It can be at a URL: gs://, s3://, ssh://, https://... The folder of a job (run.jaxprof.d) is
    shown as with --hosts.
    """
    view = chosen_view()
    if view != "lanes":
        refuse(("begin", "end"), "has no effect without --lanes", "Add --lanes, or leave it out.")
    job = job_named(file)
    if view == "hosts" or job is not None:
        _print_job(job or with_home(file), view, run_id, form)
        return
    show = partial(_print_lanes, begin, end) if view == "lanes" else partial(_print_view, view) if view else None
    with recorded(file, profile_run, hosts, _needed(view)) as found:
        session = _only(found.session, run_id, with_baseline=view is None, with_programs=view == "flame")
        if show is not None:
            show(session, form, found.given)
        else:
            _print_session(session, form, found.given, live=found.live)


def _print_job(folder: Path, view: str | None, run_id: str | None, form: str) -> None:
    from jaxprof.cli.job_answers import print_job, read

    if view not in (None, "hosts") or run_id is not None:
        raise of_one_process("jaxprof show", folder, f"--{view}" if view is not None else "--run")
    print_job(read(folder), form)


def _only(session: Session, run_id: str | None, *, with_baseline: bool = False, with_programs: bool = False) -> Session:
    """`session` with this run alone, or with it and its baseline, or of a profile its programs. Raises UsageError."""
    if run_id is None:
        return session
    from copy import copy

    if run_id not in session.runs:
        raise unknown_name("run", run_id, session.runs)
    kept = {run_id, session.runs[run_id].plan.baseline if with_baseline else run_id}
    if with_programs:
        from jaxprof.analysis.profile import programs_of

        kept |= {program.id for program in programs_of(session, session.runs[run_id])}
    part = copy(session)
    part.runs = {name: run for name, run in session.runs.items() if name in kept}
    return part


def _needed(view: str | None) -> tuple[str, ...]:
    """The views to derive from a profile: without a chosen view, all except the timeline, which is not printed."""
    if view is None:
        return ("kernels", "steps", "compile", "memory", "trust")
    if view == "lanes":
        return ("timeline",)
    if view == "flame":
        return ("kernels", "trust")
    return (view,) if view in ("kernels", "compile", "steps", "memory", "trust") else ("trust",)


def _print_session(session: Session, form: str, path: Path, *, live: bool = False) -> None:
    if form == "json":
        print_session(session, path, live=live)
    elif form == "csv":
        from jaxprof.report.runs import to_csv

        print_pieces([to_csv(session, live=live)])
    elif form == "markdown":
        from jaxprof.report.markdown import to_markdown

        print_text(to_markdown(session, live=live))
    else:
        from jaxprof.report.text import to_text
        from jaxprof.report.views import is_profile, profile_text

        print_text(profile_text(session) if is_profile(session) else to_text(session, live=live))


def _print_view(view: str, session: Session, form: str, path: Path) -> None:
    """One view of the captures, or of a program. Raises UsageError for a format that it does not have."""
    if view in ("compiles", "findings", "transfers", "timeline"):
        from jaxprof.report.recording import tables, text

        forms = tables.program_view_json, tables.program_view_csv, text.program_view_text
    else:
        from jaxprof.report import views

        forms = views.view_json, views.view_csv, views.view_text
    as_json, as_csv, as_text = forms
    if form == "json":
        others = [line for line in next_of_session(session, path) if f" --{view} " not in line]
        print_json(f"session-{view}", as_json(session, view), others)
    elif form == "csv":
        print_pieces([as_csv(session, view)])
    elif form == "text":
        print_text(as_text(session, view))
    else:
        raise _no_form(view)


def _print_lanes(begin: float | None, end: float | None, session: Session, form: str, path: Path) -> None:
    """The totals of a range of the timeline. Raises UsageError for a range with nothing in it."""
    from jaxprof.report.lanes import lanes_csv, lanes_json, lanes_text, ranges

    if form == "markdown":
        raise _no_form("lanes")
    found = ranges(session, begin, end)
    if form == "json":
        others = [line for line in next_of_session(session, path) if " --lanes " not in line]
        print_json("session-lanes", lanes_json(found), others)
    elif form == "csv":
        print_pieces([lanes_csv(found)])
    else:
        print_text(lanes_text(found))


def _no_form(view: str) -> UsageError:
    return UsageError(f"--{view} has no markdown form", "It has --format text, json and csv.")
