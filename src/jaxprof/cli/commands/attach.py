"""`jaxprof attach HOST:PORT`: a capture from a program that runs, over its profiler server."""

from __future__ import annotations

import tempfile
from pathlib import Path

import click


@click.command("attach")
@click.argument("address", metavar="HOST:PORT")
@click.option(
    "--seconds",
    "duration",
    type=click.FloatRange(min=0.001, max=600),
    default=2.0,
    show_default=True,
    metavar="S",
    help="How long to capture.",
)
@click.option("-o", "--out", type=click.Path(path_type=Path), metavar="FILE", help="Where to write the session.")
@click.option("--force", is_flag=True, help="Replace the file of --out.")
@click.option("--python", metavar="PATH", help="The interpreter, or environment, that has jax and xprof.")
def command(address: str, duration: float, out: Path | None, force: bool, python: str | None) -> None:
    """Capture a program that runs, and make a session of its kernels, steps and HLO.

    The program must have called jax.profiler.start_server(PORT); mind that such a server lets in everybody who can
    reach the machine. PORT alone means this machine. Needs xprof: pip install "jaxprof[xprof]". Without --out the
    session is kept with the others, as `jaxprof sessions` lists them.
    """
    from jaxprof.cli.profiles import import_to
    from jaxprof.errors import StorageError, UsageError
    from jaxprof.store import Library, new_header
    from jaxprof.worker import find_interpreter
    from jaxprof.worker.attach import collect, read_address

    place = read_address(address)
    if out is not None and out.is_dir():
        raise UsageError(f"{out} is a directory", f"Name a file in it: --out {out / 'attached.jaxprof'}")
    if out is not None and out.exists() and not force:
        raise StorageError(f"{out} is there already", "Give another name, or --force to replace it.")
    target = out if out is not None else Library().new_path(new_header({}))
    with tempfile.TemporaryDirectory(prefix="jaxprof-attach-") as folder:
        click.echo(f"capturing {place} for {duration:g} s", err=True)
        collect(place, duration, Path(folder), find_interpreter(Path(python) if python else None))
        session = import_to(Path(folder), target, replace=force and out is not None)
    programs = len(session.runs) - 1
    click.echo(f"session: {target} ({programs} program{'s' * (programs != 1)})", err=True)
