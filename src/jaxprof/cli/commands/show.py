"""`jaxprof show FILE`: a kept session on stdout. A torn one, or one with failed runs, is shown like any other."""

from __future__ import annotations

import click

from jaxprof.cli.complete import complete_session
from jaxprof.cli.output import format_option, print_json


@click.command("show")
@click.argument("file", metavar="FILE", shell_complete=complete_session)
@format_option("text", "json", "csv", "markdown")
def command(file: str, form: str) -> None:
    """Print the session FILE: a path, the name of a kept session, part of it, or `last`."""
    from jaxprof.session import Session
    from jaxprof.store import Library, load
    from jaxprof.store.library import is_live

    path = Library().find(file)
    session = load(path, Session)
    live = not session.complete and is_live(path)
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

        click.echo(to_text(session, live=live))
