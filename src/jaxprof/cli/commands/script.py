"""`jaxprof script`: run a program unchanged, and record what it compiled and where its time went."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from jaxprof.cli.given import refuse, refuse_without
from jaxprof.cli.options import positive_seconds
from jaxprof.cli.output import format_option
from jaxprof.cli.session_output import clear_place

_UNITS = (("ms", 1e-3), ("s", 1.0), ("m", 60.0))


def duration(value: str | float) -> float:
    """`10`, `10s`, `500ms`, `2m` in seconds. Raises BadParameter."""
    number, scale = str(value).strip(), 1.0
    for unit, seconds in _UNITS:
        if number.endswith(unit):
            number, scale = number.removesuffix(unit), seconds
            break
    try:
        return positive_seconds(float(number) * scale)
    except ValueError:
        raise click.BadParameter(f"{value!r} is not a time such as 10s, 500ms or 2m") from None


@click.command("script", context_settings={"allow_interspersed_args": False})
@click.argument("target", metavar="FILE.py | -m MODULE")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED, metavar="[ARGS]...")
@click.option("-m", "module", is_flag=True, help="Run a module, as python -m does.")
@click.option(
    "-n",
    "--processes",
    type=click.IntRange(1, 1024),
    metavar="N",
    help="Run N processes here as one job, with jax.distributed.",
)
@click.option(
    "--out", type=click.Path(path_type=Path), metavar="FILE", help="Where to write the session; of a job, the folder."
)
@click.option("--force", is_flag=True, help="Replace the file of --out.")
@click.option("--plain", is_flag=True, help="No app: the program has the terminal, notes follow after it ends.")
@click.option("--python", metavar="PATH", help="The interpreter or environment that runs the program.")
@click.option(
    "--capture-steps", type=click.IntRange(1), metavar="N", help="Capture kernel times of N steps (a window)."
)
@click.option("--capture-after", type=duration, metavar="10s", help="When the window begins.")
@click.option("--capture-seconds", type=duration, metavar="S", help="How long the window is.")
@click.option(
    "--function", default="", metavar="NAME", help="Measure this function, with the arguments of a real call."
)
@click.option("--values", is_flag=True, help="Keep the values of those arguments, not only their shapes.")
@click.option(
    "--transfers", is_flag=True, help="Count implicit copies exactly. The program's stderr is then no terminal."
)
@click.option("--keep-constants", is_flag=True, help="Keep long literals in the recorded HLO (weights, secrets).")
@click.option("--keep-trace", is_flag=True, help="Keep the folder of the window's raw profile.")
@format_option("text", "json")
def command(
    target: str,
    arguments: tuple[str, ...],
    module: bool,
    processes: int | None,
    out: Path | None,
    force: bool,
    plain: bool,
    python: str | None,
    capture_steps: int | None,
    capture_after: float | None,
    capture_seconds: float | None,
    function: str,
    values: bool,
    transfers: bool,
    keep_constants: bool,
    keep_trace: bool,
    form: str,
) -> int:
    """Run a program as `python FILE.py ARGS` would, and record its compilations, its time line and its findings.

    Everything after FILE.py (or after -m MODULE) belongs to the program. The exit code is the program's. With --format
    json the answer has stdout to itself: what the program prints there goes to stderr.

    Under srun, mpirun or torchrun each process writes into one folder, which `jaxprof show FOLDER --hosts` compares; -n
    starts such a job on this machine.
    """
    from jaxprof.engine.protocol.recording import RecordingOptions
    from jaxprof.job_process import job_process, take_own_variables
    from jaxprof.operating_system import refuse_to_run
    from jaxprof.runner.program import ProgramCommand

    refuse_to_run("jaxprof script")
    process = job_process()
    launched = take_own_variables()
    if processes is None and process.count == 1:
        refuse_without("out", ("force",))
    refuse_without("function", ("values",))

    options = RecordingOptions(
        capture_after_seconds=capture_after,
        capture_steps=capture_steps,
        capture_seconds=capture_seconds,
        function=function,
        values=values,
        transfers=transfers,
        keep_constants=keep_constants,
    )
    if not options.wants_window:
        refuse(
            ("keep_trace",),
            "keeps the profile of a window, and no window was requested",
            "--capture-steps N requests one.",
        )
    from jaxprof.cli.plain_script import is_missing, run_missing, run_plain
    from jaxprof.errors import missing_file
    from jaxprof.runner.interpreter import find_interpreter

    program = ProgramCommand(path=target, arguments=arguments, module=module, options=options, keep_trace=keep_trace)
    interpreter = find_interpreter(Path(python) if python else None)
    if is_missing(program):
        if form == "json":
            raise missing_file(target)
        return run_missing(interpreter.path, program)
    if processes is not None:
        from jaxprof.cli.job_script import launch_job

        return launch_job(processes, out, force=force, form=form)
    if process.count > 1 or launched:
        from jaxprof.cli.job_script import run_process

        return run_process(program, interpreter, process, out, force=force, quiet=launched)
    if plain or form == "json" or not _has_terminal():
        return run_plain(program, interpreter, out, force=force, form=form)
    from jaxprof.tui.launch import launch_program

    if out is not None:
        clear_place(out, replace_existing=force)
    return launch_program(program, path=out, interpreter=interpreter)


def _has_terminal() -> bool:
    """Whether to open the app: not for a program whose output goes elsewhere, or that reads stdin."""
    return all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stdout, sys.stderr))
