"""`jaxprof agent mcp`: sessions, HLO and documents as tools of the Model Context Protocol, over stdin and stdout."""

from __future__ import annotations

import sys

import click

from jaxprof.errors import UsageError


@click.command("mcp")
@click.option("--allow-run", is_flag=True, help="Also offer tools that run code: run, ab, and hlo of your functions.")
@click.option("--allow-urls", is_flag=True, help="Let tools fetch what is named by URL.")
def command(allow_run: bool, allow_urls: bool) -> None:
    """Serve tools for a coding agent over stdin and stdout (MCP): explain, show, query, compare, hlo, docs.

    They read what was recorded and change nothing. A client starts this command itself; its configuration names the
    command `jaxprof` with the argument `mcp`.
    """
    from importlib.util import find_spec

    if find_spec("mcp") is None:
        raise UsageError(
            "`mcp` needs the mcp package, which is not installed", f"{sys.executable} -m pip install 'mcp>=2.3,<3'"
        )
    if sys.stdin.isatty():
        raise UsageError(
            "`mcp` talks to a client over stdin, and this is a terminal", "Let a client start it: jaxprof agent mcp."
        )
    from jaxprof.cli.agent.server import make_server

    make_server(allow_run=allow_run, allow_urls=allow_urls).run("stdio")
