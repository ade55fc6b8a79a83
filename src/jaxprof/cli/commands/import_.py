"""`jaxprof import PATH -o FILE` keeps a recorded profile as a session, `jaxprof attach HOST:PORT` the capture of a
running program, taken over its profiler server.
"""

from __future__ import annotations

from pathlib import Path

import click

from jaxprof.cli.answers import print_imported, refuse_existing
from jaxprof.cli.options import force_option, out_option, profile_options, python_option, refuse_without
from jaxprof.cli.output import format_option, note
from jaxprof.cli.target import job_at, local_path


@click.command("import")
@click.argument("path", metavar="PATH", callback=local_path)
@out_option("-o")
@force_option()
@profile_options
@format_option("text", "json")
def command(path: Path, out: Path | None, force: bool, profile_run: str, hosts: tuple[str, ...], form: str) -> None:
    """Turn a profile that was recorded elsewhere into a session.

    PATH is an .xplane.pb (or .gz), a .trace.json.gz, or the folder that jax.profiler wrote to. Without --out the
    session is kept with the others, as `jaxprof sessions` lists them. The profile itself is not changed.
    """
    from jaxprof.analysis.opener import Kind, kind_of
    from jaxprof.cli.profiles import import_to
    from jaxprof.errors import FileRefusedError, UsageError, missing_file
    from jaxprof.session.log import Library, new_header

    refuse_without("out", ("force",))
    if out is not None and out.is_dir():
        raise UsageError(f"{out} is a directory", f"Name a file in it: --out {out / 'profile.jaxprof'}")
    if not path.exists():
        raise missing_file(path)
    if job_at(str(path)) is not None:
        raise FileRefusedError(f"{path} is a job, not a profile", f"jaxprof show {path} prints it.")
    kind = kind_of(path) if path.is_file() else None
    if kind in (Kind.HLO, Kind.SESSION):
        printing = "hlo" if kind is Kind.HLO else "show"
        raise FileRefusedError(f"{path} is {kind.value}, not a profile", f"jaxprof {printing} {path} prints it.")
    target = out if out is not None else Library().new_path(new_header({}))
    session = import_to(path, target, profile_run, hosts, replace=force and out is not None)
    print_imported(session, target, form)


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
@out_option("-o")
@force_option()
@python_option(help="The interpreter or environment that has jax and xprof.")
@format_option("text", "json")
def attach(address: str, duration: float, out: Path | None, force: bool, python: Path | None, form: str) -> None:
    """Capture a running program, and keep its kernels, steps and HLO as a session.

    The program must have called jax.profiler.start_server(PORT). Note that anyone who can reach the machine can use
    that server. PORT alone means this machine. Needs xprof: pip install "jaxprof[xprof]". Without --out the session is
    kept with the others, as `jaxprof sessions` lists them.
    """
    from jaxprof.cli.profiles import import_to
    from jaxprof.errors import UsageError
    from jaxprof.operating_system import refuse_to_run
    from jaxprof.reaper import TemporaryFolder
    from jaxprof.runner import find_interpreter
    from jaxprof.runner.attach import collect, read_address
    from jaxprof.session.log import Library, new_header

    refuse_to_run("jaxprof attach")
    refuse_without("out", ("force",))
    place = read_address(address)
    if out is not None and out.is_dir():
        raise UsageError(f"{out} is a directory", f"Name a file in it: --out {out / 'attached.jaxprof'}")
    if out is not None and not force:
        refuse_existing(out)
    target = out if out is not None else Library().new_path(new_header({}))
    with TemporaryFolder("attach") as folder:
        note(f"capturing {place} for {duration:g} s")
        collect(place, duration, folder, find_interpreter(python))
        session = import_to(folder, target, replace=force and out is not None)
    print_imported(session, target, form)
