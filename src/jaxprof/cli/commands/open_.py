"""`jaxprof open FILE`: in the terminal app, on stdout, or kept as a session; and `jaxprof` alone.

A session that was interrupted or has failed runs is shown too.
"""

from __future__ import annotations

import os
import re
from copy import copy
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from jaxprof.analysis.target import Kind, Target, resolve
from jaxprof.base.errors import FileRefusedError, UsageError, missing_file, unknown_name
from jaxprof.base.files import with_home
from jaxprof.base.units import counted
from jaxprof.cli import options
from jaxprof.cli.answers import next_of_session, print_conclusion, print_facts, print_job, print_session
from jaxprof.cli.options import choose_view, is_given, refuse_others
from jaxprof.cli.output import (
    ExitCode,
    format_option,
    no_form,
    note,
    print_csv,
    print_report,
    print_text,
    refuse_existing,
    terminal_problem,
)
from jaxprof.cli.recorded import import_to, open_recorded

if TYPE_CHECKING:
    from jaxprof.runner.interpreter import Interpreter
    from jaxprof.session import Session

_ADDRESS = re.compile(r"(localhost|\d+(\.\d+){3}|\[[\da-f:]+\]):\d{1,5}")
_OF_CAPTURES = ("kernels", "steps", "compile", "memory", "trust")
"""The views that are derived from a profile; its timeline is not printed."""


@click.command("open")
@click.argument("file", metavar="FILE", shell_complete=options.complete_with("session"))
@options.views(options.VIEWS)
@options.run(help="Only this run (r2) and its baseline.")
@click.option("--keep", is_flag=True, help="Save a profile as a session, among the kept ones or as --out FILE.")
@options.out()
@options.force()
@click.option(
    "--seconds",
    "duration",
    type=options.capture_seconds,
    metavar="S",
    help="FILE is the HOST:PORT of a profiler server: capture its program for S seconds.",
)
@click.option(
    "--follow", is_flag=True, help="Follow a session that another process, or another host, is still writing."
)
@options.profile
@options.python(help="The interpreter whose jax the app measures; with HOST:PORT, one that has jax and xprof.")
@format_option("text", "json", "csv", "markdown")
def command(file: str, python: Path | None, follow: bool, **words: Any) -> int | None:
    """Open FILE: a session's path or name, part of it, the folder of a job (run.jaxprof.d), or `last`, the newest.

    In a terminal this opens the app. Without one, with --format, or with an option that names a view, it prints.
    FILE can also be HLO (text, a proto, the folder of an XLA dump), or a profile that was recorded elsewhere: an
    .xplane.pb (or .gz), or the folder that jax.profiler wrote to. --keep makes a session of a profile.
    Each can be at a URL: gs://, s3://, ssh://, https://...

    HOST:PORT with --seconds captures a running program that called jax.profiler.start_server(PORT), and keeps its
    kernels, steps and HLO as a session. PORT alone means this machine. Anyone who can reach the machine
    can use that server. Needs xprof: the extra `xprof`.

    A session that a process on this machine is writing is followed anyway. --follow is for a writer that cannot be
    seen, such as another host writing to a shared folder.
    """
    if is_given("duration"):  # only this option makes FILE an address: reading a file contacts no other machine
        refuse_others(
            "does not apply to a program that is running", "file", "duration", "out", "force", "python", "form"
        )
        from jaxprof.base.operating_system import refuse_to_run
        from jaxprof.base.reaper import TemporaryFolder
        from jaxprof.runner.attach import collect, read_address
        from jaxprof.runner.interpreter import find_interpreter

        refuse_to_run("jaxprof open HOST:PORT")
        address, duration, form, force = read_address(file), words["duration"], words["form"], words["force"]
        session_path = _new_session(words["out"], form, force=force)
        with TemporaryFolder("attach") as folder:
            note(f"capturing {address} for {duration:g} s")
            collect(address, duration, folder, find_interpreter(python))
            _import(folder, session_path, form, force=force)
        return None
    if _ADDRESS.fullmatch(file) and not os.path.exists(with_home(file)):
        raise UsageError(f"{file} is not a session", "If a profiler server listens there, add --seconds 2.")
    target = resolve(file, note, jobs=True)
    if words["keep"] or is_given("out"):
        refuse_others(
            "does not apply to a profile that is kept", "file", "keep", "out", "force", "profile_run", "host", "form"
        )
        session_path = _new_session(words["out"], words["form"], force=words["force"])
        path, kind = target.path, target.kind
        if path is None:
            raise missing_file(target.word)
        if kind is Kind.JOB or (path.is_file() and kind in (Kind.HLO, Kind.SESSION)):
            printing = "hlo" if kind is Kind.HLO else "open"
            raise FileRefusedError(f"{path} is {kind.value}, not a profile", f"jaxprof {printing} {path} prints it.")
        _import(path, session_path, words["form"], force=words["force"])
        return None
    is_printed = choose_view() is not None or is_given("form") or is_given("run_id") or terminal_problem()
    if is_printed and not follow and not is_given("python"):
        return _print(target, words["run_id"], words["form"])
    refuse_others("does not apply to the app", "file", "follow", "python", "profile_run", "host")
    return _open(target, python, follow=follow)


def _open(target: Target, python: Path | None, *, follow: bool) -> int:
    interpreter = interpreter_of_app(python)  # before a profile is read, which takes a while
    if target.kind is Kind.JOB:
        from jaxprof.jobs.folder import check_job

        check_job(target.file)  # before the screen changes
    if target.kind in (Kind.JOB, Kind.HLO):
        return launch_app(target.file, interpreter)
    with open_recorded(target) as found:
        if found.imported is None:
            from jaxprof.session import Follower, Session

            # Reads the header: what is no session is refused before the screen changes.
            Follower(found.path, Session).finish()
        profile = found.given if found.imported is not None else None
        return launch_app(found.path, interpreter, follow=follow, profile=profile)


def interpreter_of_app(python: str | Path | None) -> Interpreter | None:
    """Return the interpreter that the app measures with; None if the app chooses one after its first frame. Raises
    UsageError for one that cannot be used, and without a terminal."""
    if problem := terminal_problem():
        instead = "jaxprof run NAME measures without the app, and jaxprof open FILE prints a session."
        raise UsageError(problem, instead)
    if python is None:
        return None
    from jaxprof.runner.interpreter import find_interpreter

    return find_interpreter(Path(python))


def launch_app(
    path: Path | None, interpreter: Interpreter | None, *, follow: bool = False, profile: Path | None = None
) -> int:
    """Start the app with the session at `path`, which may be made of a `profile`, and return its exit code."""
    from jaxprof.tui.shell.launch import launch

    return launch(path, interpreter=interpreter, follow=follow, profile=profile)


def _new_session(out: Path | None, form: str, *, force: bool) -> Path:
    """Return where to keep a profile as a session. Raises UsageError, also for a format that the answer lacks, and
    StorageError if there is something already."""
    from jaxprof.session import Library, new_header

    if form not in ("text", "json"):
        raise no_form("what is kept as a session", form, "text", "json")
    if out is None:
        return Library().new_path(new_header({}))
    refuse_existing(out, force=force)
    return out


def _import(profile: Path, target: Path, form: str, *, force: bool) -> None:
    """Make a session of the profile, and print where it is and what to do; as JSON the session itself."""
    session = import_to(profile, target, replace=force)
    note(f"session: {target} ({counted(len(session.runs) - 1, 'program')})")
    if form == "json":
        print_session(session, target)
    else:
        print_conclusion(session, target, note)


def _print(target: Target, run_id: str | None, form: str) -> int:
    view = choose_view()
    if target.kind is Kind.HLO:
        from jaxprof.cli.commands import hlo

        shown = {option for parameter in hlo.command.params for option in parameter.opts}
        if view is not None and f"--{view}" not in shown:
            raise UsageError(
                f"--{view} does not apply to HLO, and {target.word} is HLO", "jaxprof hlo FILE prints its views."
            )
        if form == "markdown":
            raise no_form("HLO", form, "text", "json", "csv")
        words = [*([f"--{view}"] if view else []), *(["--run", run_id] if run_id else [])]
        words += ["--format", form, "--", target.word]
        with hlo.command.make_context("jaxprof hlo", words) as context:
            return int(hlo.command.invoke(context))
    if target.kind is Kind.JOB:
        path = target.file
        if view is not None or run_id is not None:
            from jaxprof.session.lines import one_session_needed

            raise one_session_needed(path)
        from jaxprof.jobs.job import read_job_figures

        print_job(read_job_figures(path), form)
        return ExitCode.OK
    derived = _OF_CAPTURES if view is None else (view if view in _OF_CAPTURES else "trust",)
    with open_recorded(target, derived) as found:
        session = _with_one_run(found.session, run_id, with_baseline=view is None)
        if view is not None:
            if form == "markdown":
                raise no_form(f"--{view}", form, "text", "json", "csv")
            from jaxprof.report.session_text import view_table, view_text

            if form == "json":
                others = [line for line in next_of_session(session, found.given) if f" --{view} " not in line]
                print_facts(f"session-{view}", session, others)
            elif form == "csv":
                print_csv(view_table(session, view))
            else:
                print_text(view_text(session, view))
        elif form == "json":
            print_session(session, found.given)
        elif form == "csv":
            from jaxprof.facts.runs import RUNS, run_rows
            from jaxprof.report import Table

            print_csv(Table(RUNS.facts, run_rows(session)))
        else:
            from jaxprof.report.session_text import profile_text, to_text

            print_report([(profile_text if session.is_profile else to_text)(session)], form)
        if found.imported is None:
            return ExitCode.OK
        from jaxprof.trace.checks import INCOMPLETE

        # Every form of the answer names on stderr what could not be read of a profile.
        unread = [each for run in found.imported.runs.values() for each in run.warnings if each.code == INCOMPLETE]
        for warning in unread:
            note(f"note: {warning.message}. {warning.advice}")
        return ExitCode.NOT_WHOLE if unread else ExitCode.OK


def _with_one_run(session: Session, run_id: str | None, *, with_baseline: bool) -> Session:
    """Return `session` with this run alone, or also with its baseline. Raises UsageError."""
    if run_id is None:
        return session
    if run_id not in session.runs:
        raise unknown_name("run", run_id, session.runs)
    kept = {run_id, session.runs[run_id].plan.baseline if with_baseline else run_id}
    part = copy(session)
    part.runs = {name: run for name, run in session.runs.items() if name in kept}
    return part
