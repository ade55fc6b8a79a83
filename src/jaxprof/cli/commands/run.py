"""`jaxprof run`: measures, keeps the session, prints it."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from jaxprof.cli.complete import complete_session, complete_variant, complete_workload
from jaxprof.cli.exit_codes import SIGNAL_BASE, ExitCode
from jaxprof.cli.keeping import new_writer, tell_where
from jaxprof.cli.output import format_option, print_json

if TYPE_CHECKING:
    from jaxprof.cli.conduct import Conducting
    from jaxprof.session import Session
    from jaxprof.store import LogWriter
    from jaxprof.worker import Choice, Interpreter, Planned


def positive_seconds(value: str | float) -> float:
    """A time budget: above 0 and finite. Raises BadParameter."""
    try:
        number = float(value)
    except ValueError:
        raise click.BadParameter(f"{value!r} is not a number of seconds") from None
    if not (math.isfinite(number) and number > 0):
        raise click.BadParameter(f"{value!r} is not above 0 seconds")
    return number


@click.command("run")
@click.argument("names", nargs=-1, metavar="[NAME]...", shell_complete=complete_workload)
@click.option("--all", "everything", is_flag=True, help="Every built-in workload.")
@click.option(
    "--from",
    "source",
    metavar="SESSION[:RUN]",
    shell_complete=complete_session,
    help="Run again what a session has: all, or the run of that id, workload or function.",
)
@click.option(
    "--variant",
    "variants",
    multiple=True,
    metavar="V",
    shell_complete=complete_variant,
    help="Just this variant, beside the baseline. May be repeated.",
)
@click.option(
    "--device",
    "devices",
    multiple=True,
    show_default="cpu:0",
    metavar="D",
    help="Where to run: cpu:0, cuda:1, gpu:0, tpu:0. May be repeated.",
)
@click.option("--preset", default="quick", show_default=True, metavar="P", help="Sizes: quick, or published.")
@click.option("--set", "settings", multiple=True, metavar="n=4000", help="A parameter. May be repeated.")
@click.option("--sweep", default="", metavar="n=1e3..1e7[:POINTS]", help="A range of sizes of one parameter.")
@click.option(
    "--budget", type=positive_seconds, default=2.0, show_default=True, metavar="S", help="Seconds to sample a run."
)
@click.option("--max-seconds", type=positive_seconds, metavar="S", help="Hard cap of each run, after its start-up.")
@click.option("--python", metavar="PATH", help="The interpreter, or environment, whose jax is measured.")
@click.option("--arg", "arguments", multiple=True, metavar="SPEC", help="An argument of your function: f32[1024,1024].")
@click.option("--keep-constants", is_flag=True, help="Keep long literals in the recorded HLO (weights, secrets).")
@click.option("--cache", is_flag=True, help="Leave JAX's persistent compilation cache on.")
@click.option("--no-check", is_flag=True, help="Do not check the results.")
@click.option("--no-capture", is_flag=True, help="No kernel times and compile passes: no pass under the profiler.")
@click.option("--keep-trace", is_flag=True, help="Keep the raw .xplane.pb of each run beside the session.")
@click.option("--seed", type=click.IntRange(0, 2**32 - 1), default=0, show_default=True, help="Of the random inputs.")
@click.option("--out", type=click.Path(path_type=Path), metavar="FILE", help="Where to write the session.")
@click.option("--force", is_flag=True, help="Replace the file of --out.")
@format_option("text", "json")
def command(
    names: tuple[str, ...],
    everything: bool,
    source: str | None,
    variants: tuple[str, ...],
    devices: tuple[str, ...],
    preset: str,
    settings: tuple[str, ...],
    sweep: str,
    budget: float,
    max_seconds: float | None,
    python: str | None,
    arguments: tuple[str, ...],
    keep_constants: bool,
    cache: bool,
    no_check: bool,
    no_capture: bool,
    keep_trace: bool,
    seed: int,
    out: Path | None,
    force: bool,
    form: str,
) -> int:
    """Measure workloads phase by phase, each variant in a fresh process; print the session and keep it.

    NAME is a built-in workload, or a function of your own: path/to/file.py:function or package.module:function.
    Without a NAME, lists the names. With --from, what a session has is run again, as it was asked for then.
    """
    if not names and not everything and source is None:
        return _list_names()
    from jaxprof import workloads
    from jaxprof.cli.again import planned_from
    from jaxprof.cli.choosing import Chosen, find_cards, plan, read_settings
    from jaxprof.cli.devices import HOST, choose, idle_accelerators
    from jaxprof.worker import Choice, find_interpreter

    if source is not None:
        _refuse_beside_from(devices)
    interpreter = find_interpreter(Path(python) if python else None)
    choice = Choice(
        preset=preset,
        settings=read_settings(settings),
        variants=variants,
        devices=choose(devices or [HOST], interpreter),
        sweep=sweep,
        budget_seconds=budget,
        max_seconds=max_seconds,
        arguments=arguments,
        keep_constants=keep_constants,
        compilation_cache=cache,
        check=not no_check,
        capture=not no_capture,
        keep_trace=keep_trace,
        seed=seed,
    )
    if source is not None:
        chosen = Chosen(planned_from(source, _given_changes(choice), choice.devices[0] if devices else ""))
        devices = tuple(choice.devices)
    else:
        chosen = plan(find_cards([*names, *(workloads.names() if everything else ())], interpreter, arguments), choice)
    writer = new_writer(out, replace_existing=force)
    notes = list(chosen.notes)
    if not devices and (idle := idle_accelerators(interpreter)):
        notes.append(f"this runs on {HOST}; there is also {', '.join(idle)} (--device {idle[0]})")
    return _work(chosen.planned, notes, interpreter, writer, form)


def _work(
    planned: Sequence[Planned], notes: Sequence[str], interpreter: Interpreter, writer: LogWriter, form: str
) -> int:
    """Works the plan to its end, with `notes` said before; prints the session. Gives the exit code."""
    from jaxprof.cli.conduct import Conducting
    from jaxprof.cli.progress import Progress

    progress = Progress(sys.stderr)
    for note in notes:
        progress.note(f"note: {note}")
    conducting = Conducting(writer, interpreter, progress)
    conducting.work(planned)
    kept = tell_where(writer, progress.note)
    return _finish(conducting, kept=kept, form=form)


_SAID_BY_THE_SESSION = ("names", "everything", "variants", "preset", "settings", "sweep", "arguments")
_CHANGES = {
    "budget": "budget_seconds",
    "max_seconds": "max_seconds",
    "keep_constants": "keep_constants",
    "cache": "compilation_cache",
    "no_check": "check",
    "no_capture": "capture",
    "keep_trace": "keep_trace",
    "seed": "seed",
}
"""Options that change how the runs of a session are measured again, and what they set of a plan."""


def _is_given(option: str) -> bool:
    return click.get_current_context().get_parameter_source(option) is not ParameterSource.DEFAULT


def _refuse_beside_from(devices: Sequence[str]) -> None:
    """Raises UsageError for what the session says itself."""
    from jaxprof.errors import UsageError

    if len(devices) > 1:
        raise UsageError("--from takes one --device", "The session says what is run; name one place for it.")
    if any(_is_given(option) for option in _SAID_BY_THE_SESSION):
        raise UsageError(
            "--from runs what the session has; names, --all, --variant, --preset, --set, --sweep, --arg go without it",
            "jaxprof show SESSION lists its runs; --from SESSION:r2 is one of them.",
        )


def _given_changes(choice: Choice) -> dict[str, Any]:
    """What was asked for in so many words, to be laid over what the session says."""
    return {field: getattr(choice, field) for option, field in _CHANGES.items() if _is_given(option)}


def _list_names() -> int:
    from jaxprof import workloads

    click.echo("\n".join(workloads.names()))
    click.echo("jaxprof run NAME... measures them, --all all of them; jaxprof workloads NAME tells more.", err=True)
    return ExitCode.OK


def _finish(conducting: Conducting, *, kept: bool, form: str) -> int:
    """Prints the session and gives the exit code. After SIGTERM or SIGHUP nobody waits for a report."""
    import signal

    stopped = conducting.stopped_by
    if stopped is not None and stopped != signal.SIGINT:
        return SIGNAL_BASE + stopped
    session = conducting.conductor.session
    _print(session, form)
    if stopped is not None:
        return ExitCode.INTERRUPTED
    ended_well = kept and all(run.status == "ok" for run in session.runs.values())
    return ExitCode.OK if ended_well else ExitCode.FAILED


def _print(session: Session, form: str) -> None:
    if form == "json":
        from jaxprof.report.json import to_dict

        print_json(to_dict(session))
    else:
        from jaxprof.report.text import to_text

        click.echo(to_text(session))
