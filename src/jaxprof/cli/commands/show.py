"""`jaxprof show FILE`: a kept session on stdout. A torn one, or one with failed runs, is shown like any other."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from jaxprof.cli.complete import complete_session
from jaxprof.cli.output import format_option, print_json
from jaxprof.cli.profiles import profile_at, profile_options

if TYPE_CHECKING:
    from jaxprof.session import Session


@click.command("show")
@click.argument("file", metavar="FILE", shell_complete=complete_session)
@click.option("--kernels", "view", flag_value="kernels", help="The measured kernels alone.")
@click.option("--compile", "view", flag_value="compile", help="Where the compile time went: XLA's phases and passes.")
@click.option("--steps", "view", flag_value="steps", help="Where the time of each step went.")
@click.option("--memory", "view", flag_value="memory", help="What the peak memory is made of, and the largest buffers.")
@click.option("--trust", "view", flag_value="trust", help="Whether the captures can be trusted.")
@click.option("--compiles", "view", flag_value="compiles", help="Of a program: each compilation, and why.")
@click.option("--findings", "view", flag_value="findings", help="Of a program: what to change, and at which line.")
@click.option("--transfers", "view", flag_value="transfers", help="Of a program: implicit copies, host to device.")
@click.option("--timeline", "view", flag_value="timeline", help="Of a program: where its wall time went.")
@profile_options
@format_option("text", "json", "csv", "markdown")
def command(file: str, view: str | None, profile_run: str, hosts: tuple[str, ...], form: str) -> None:
    """Print the session FILE: a path, the name of a kept session, part of it, or `last`.

    Or a profile that was recorded elsewhere: an .xplane.pb (or .gz), a .trace.json.gz, the folder that jax.profiler
    wrote to.
    """
    from jaxprof.session import Session
    from jaxprof.store import Library, load
    from jaxprof.store.library import is_live

    profile = profile_at(file)
    if profile is not None:
        from jaxprof.cli.profiles import imported

        with imported(profile, profile_run, hosts) as (_, read):
            if view is not None:
                _print_view(read, view, form)
            else:
                _print_session(read, form)
        return
    path = Library().find(file)
    session = load(path, Session)
    live = not session.complete and is_live(path)
    if view is not None:
        _print_view(session, view, form)
    else:
        _print_session(session, form, live=live)


def _print_session(session: Session, form: str, *, live: bool = False) -> None:
    if form == "json":
        from jaxprof.report.json import to_dict

        print_json(to_dict(session, live=live))
    elif form == "csv":
        from jaxprof.report.csv import to_csv

        click.echo(to_csv(session, live=live), nl=False)
    elif form == "markdown":
        from jaxprof.report.markdown import to_markdown

        click.echo(to_markdown(session, live=live))
    else:
        from jaxprof.report.text import to_text
        from jaxprof.report.views import is_profile, profile_text

        click.echo(profile_text(session) if is_profile(session) else to_text(session, live=live))


def _print_view(session: Session, view: str, form: str) -> None:
    """One view of the captures, or of a program. Raises UsageError for a form that it does not have."""
    from jaxprof.errors import UsageError
    from jaxprof.report import views
    from jaxprof.report.recording import json, text

    of_program = view in json.PROGRAM_VIEWS
    if form == "json":
        print_json((json.program_view_json if of_program else views.view_json)(session, view))
    elif form == "csv":
        click.echo((json.program_view_csv if of_program else views.view_csv)(session, view), nl=False)
    elif form == "text":
        click.echo((text.program_view_text if of_program else views.view_text)(session, view))
    else:
        raise UsageError(f"--{view} is not written as {form}", "It has --format text, json and csv.")
