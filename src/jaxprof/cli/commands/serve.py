"""`jaxprof serve FILE`: the page of a session in a browser, following it while it is being written."""

from __future__ import annotations

import getpass
import os
import socket
from pathlib import Path

import click

from jaxprof.cli.complete import complete_session
from jaxprof.cli.options import profile_options
from jaxprof.cli.output import note, print_text
from jaxprof.cli.target import follow_fetched, local_source, recorded


@click.command("serve")
@click.argument("file", metavar="FILE", callback=local_source, shell_complete=complete_session)
@click.option("--port", type=click.IntRange(0, 65535), default=0, metavar="N", help="Default: any that is free.")
@profile_options
def command(file: str, port: int, profile_run: str, hosts: tuple[str, ...]) -> None:
    """Show the session FILE in a browser, and follow it while it is being written.

    The page is served on 127.0.0.1 alone, under an address with a random token, which is printed on stdout. The printed
    `ssh -L` brings it from a machine that you reach by SSH to your own. ctrl+c ends it.

    FILE can also be a profile that was recorded elsewhere.
    """
    from jaxprof.exports.formats import FORMATS

    with recorded(file, profile_run, hosts, FORMATS["html"].views) as found:
        if found.imported is None:
            follow_fetched()
        _serve(found.path, found.name, port)


def _serve(path: Path, name: str, port: int) -> None:
    from jaxprof.cli.page_server import ADDRESS, FollowedPage, PageServer
    from jaxprof.errors import UsageError, system_words

    page = FollowedPage(path, name)
    try:
        server = PageServer(page, port)
    except OSError as error:
        raise UsageError(f"port {port} cannot be used: {system_words(error)}", "Leave --port out.") from error
    with server:
        print_text(server.address)
        tunnel = f"ssh -L {server.port}:{ADDRESS}:{server.port} {_own_name()}"
        note(f"on another machine: {tunnel}, and the same address there")
        note("following the session while it is written; ctrl+c ends this")
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            note("ended")


def _own_name() -> str:
    """What ssh calls this machine: by the address that the present connection came to, if this is one."""
    connection = os.environ.get("SSH_CONNECTION", "").split()
    host = connection[2] if len(connection) == 4 else socket.gethostname()
    try:
        return f"{getpass.getuser()}@{host}"
    except (KeyError, OSError):  # a user without a name, as in some containers
        return host
