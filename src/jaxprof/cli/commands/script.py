"""`jaxprof script`: run a program unchanged, and record what it compiled and where its time went."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from jaxprof.analysis.target import Kind, resolve, wrong_kind
from jaxprof.base.errors import UsageError, missing_file
from jaxprof.cli import options
from jaxprof.cli.options import refuse
from jaxprof.cli.output import format_option, refuse_existing, terminal_problem
from jaxprof.session.files import JOB_EXTENSION, session_path

if TYPE_CHECKING:
    from jaxprof.runner.interpreter import Interpreter
    from jaxprof.runner.program import ProgramCommand


_duration = partial(click.option, type=options.positive_seconds)


@click.command("script", context_settings={"allow_interspersed_args": False})
@click.argument("target", metavar="FILE.py | -m MODULE")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED, metavar="[ARGS]...")
@click.option("-m", "module", is_flag=True, help="Run a module, as python -m does.")
@click.option(
    "-n",
    "--processes",
    type=click.IntRange(1, 1024),
    metavar="N",
    help="Run N processes here as one job; the program itself must call jax.distributed.initialize().",
)
@click.option("--oversubscribe", is_flag=True, help="With -n: start more than 4 processes for each processor.")
@options.out(help="Where to write the session; of a job, the folder.")
@options.force()
@click.option(
    "--plain", is_flag=True, help="Do not open the app: the program has the terminal, and notes follow at its end."
)
@options.python(help="The interpreter or environment that runs the program.")
@click.option(
    "--capture-steps", type=click.IntRange(1), metavar="N", help="Capture kernel times of N steps (a window)."
)
@_duration(
    "--capture-after", "capture_after_seconds", metavar="10s", help="Time from the program's start to the window."
)
@_duration("--capture-seconds", metavar="S", help="How long the window is.")
@click.option(
    "--capture-ranks", metavar="0,4-7", help="Of a job: which processes capture. Indices, ranges, or all (the default)."
)
@click.option(
    "--function", default="", metavar="NAME", help="Measure this function, with the arguments of a real call."
)
@click.option("--values", is_flag=True, help="Keep the values of those arguments, not only their shapes.")
@options.keep_constants()
@format_option("text", "json")
def command(
    target: str,
    arguments: tuple[str, ...],
    module: bool,
    processes: int | None,
    oversubscribe: bool,
    out: Path | None,
    force: bool,
    plain: bool,
    python: Path | None,
    capture_ranks: str | None,
    form: str,
    **recording: Any,
) -> int:
    """Run a program as `python FILE.py ARGS` would, and record its compilations, its time line and its findings.

    Everything after FILE.py (or after -m MODULE) belongs to the program. The exit code is the program's. With --format
    json the answer has stdout to itself: what the program prints there goes to stderr.

    Under srun, mpirun or torchrun each process writes into one folder, and `jaxprof open FOLDER` compares them; -n
    starts such a job on this machine.
    """
    from jaxprof.base.operating_system import refuse_to_run
    from jaxprof.cli.plain_script import launch_job, run_process
    from jaxprof.engine.protocol import RecordingOptions
    from jaxprof.jobs.process import job_process, take_own_variables
    from jaxprof.remote import is_url
    from jaxprof.runner.interpreter import find_interpreter
    from jaxprof.runner.job_launch import job_folder, options_of, read_ranks, refuse_too_many
    from jaxprof.runner.program import ProgramCommand

    refuse_to_run("jaxprof script")
    process = job_process()
    launched = take_own_variables()
    if processes is not None and not oversubscribe:
        refuse_too_many(processes)
    recorded = RecordingOptions(**recording)
    if not recorded.wants_window:
        refuse(("capture_ranks",), "chooses who captures, and no window was requested", "Add --capture-steps 100.")
    if capture_ranks is not None:
        recorded = options_of(read_ranks(capture_ranks, processes or process.count), process.index, recorded)
    program = ProgramCommand(path=target, arguments=arguments, module=module, options=recorded)
    interpreter = find_interpreter(python)
    if not module and target != "-":  # only Python itself can find a module
        if is_url(target):
            raise UsageError(f"{target} is a URL, and a program has to be here", "Copy it to this machine first.")
        _refuse_others(target)
    is_member = process.count != 1 or launched
    is_job = processes is not None or is_member or (out is not None and out.name.endswith(JOB_EXTENSION))
    out = job_folder(out) if out is not None and is_job else out
    if processes is not None:
        code = launch_job(processes, out, force=force, form=form)
    elif is_member:
        code = run_process(program, interpreter, process, out, force=force, quiet=launched)
    else:
        path = session_path(out, 0) if out is not None and is_job else out
        code = _run_alone(program, interpreter, path, force=force, form=form, plain=plain)
    if not is_member:  # processes of a job may share one terminal
        note_own_options(target, arguments)
    return code


def _refuse_others(word: str) -> None:
    """Raise UsageError for what Python would take for a program, or for nothing, and is something else: a session, HLO,
    a function. A file without an ending is a program whatever its first bytes are."""
    path = Path(word)
    target = resolve(word, code=True, kept=False)
    recorded = target.kind in (Kind.SESSION, Kind.JOB, Kind.HLO) or (target.kind is Kind.PROFILE and path.suffix)
    holds_none = path.is_dir() and not (path / "__main__.py").is_file()
    if recorded or holds_none or not path.exists():
        raise wrong_kind(target, "a program") or missing_file(word)


def note_own_options(path: str, arguments: tuple[str, ...]) -> None:
    """Print a note if arguments of the program at `path` are long options of this command, too."""
    ours = {option for parameter in command.params for option in parameter.opts if option.startswith("--")}
    words = dict.fromkeys(argument.partition("=")[0] for argument in arguments)
    if given := [word for word in words if word in ours]:
        from jaxprof.cli.plain_script import note

        verb = "goes" if len(given) == 1 else "go"
        note(f"{' and '.join(given)} {verb} to {path}; jaxprof's own options stand before it")


def _run_alone(
    program: ProgramCommand, interpreter: Interpreter, out: Path | None, *, force: bool, form: str, plain: bool
) -> int:
    """Record the program in the app; plainly on request, if its output goes elsewhere, and if it reads stdin."""
    from jaxprof.cli.plain_script import run_plain

    has_terminal = not terminal_problem() and sys.stderr is not None and sys.stderr.isatty()
    if plain or form == "json" or not has_terminal:
        return run_plain(program, interpreter, out, force=force, form=form)
    from jaxprof.tui.shell.launch import launch

    if out is not None:
        refuse_existing(out, force=force)
        out.unlink(missing_ok=True)
    return launch(out, program=program, interpreter=interpreter)
