"""`jaxprof gate TARGET --base BASE --fail-on FACT[:N%]`: whether the exact facts of a program are within limits."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from jaxprof.cli.complete import complete_session, complete_target
from jaxprof.cli.exit_codes import ExitCode
from jaxprof.cli.options import target_options
from jaxprof.cli.output import format_option, print_json
from jaxprof.errors import UsageError

if TYPE_CHECKING:
    from jaxprof.analysis.gate import GateRow
    from jaxprof.cli.hlo_target import CompileOptions
    from jaxprof.session import Run, Session


@click.command("gate")
@click.argument("target", metavar="TARGET", shell_complete=complete_target)
@click.option(
    "--base", required=True, metavar="BASE", shell_complete=complete_session, help="What TARGET is held against."
)
@click.option(
    "--fail-on",
    "limits",
    multiple=True,
    required=True,
    metavar="FACT[:N%]",
    help="Fail if it grows (by more than N %): kernels, flops, bytes, peak, collectives, compiles... May be repeated.",
)
@click.option("--strict", is_flag=True, help="Exit with 4 where a fact is not known of a side.")
@target_options("Compile for h100, tpu-v5e... that need not be here.")
@click.option("--variant", default="", metavar="NAME", help="The variant of a workload.")
@click.option("--arg", "arguments", multiple=True, metavar="SPEC", help="For your own function: f32[1024,1024].")
@click.option("--set", "settings", multiple=True, metavar="NAME=VALUE", help="A parameter of a workload.")
@click.option("--python", type=click.Path(path_type=Path), metavar="PATH", help="The interpreter whose jax compiles.")
@format_option("text", "markdown", "json", "junit")
def command(target: str, base: str, limits: tuple[str, ...], strict: bool, form: str, **compiling: Any) -> ExitCode:
    """Compile TARGET, and fail if an exact fact of it has grown since BASE.

    TARGET and BASE are each a function of yours (path/to/file.py:function), a workload, or a session (of `run`, or of
    `hlo --out`). Nothing is run and no time is compared, so the machine need not be quiet. FACT is one of kernels,
    launches, flops, bytes, transcendentals, peak, argument, output, temporary, constant, donated (must not shrink),
    code, collectives, collective_bytes, compiles. Exit codes: 0 within, 3 a limit was passed, 4 undecided (--strict).
    """
    from jaxprof.analysis.gate import judged, read_limit, worst
    from jaxprof.analysis.run_difference import run_difference
    from jaxprof.cli.hlo_target import CompileOptions

    wanted = list(dict.fromkeys(map(read_limit, limits)))
    options = CompileOptions(**compiling)
    ours, theirs = _programs(base, options), _programs(target, options)
    rows: list[GateRow] = []
    for session, run in theirs:
        before_session, before = _counterpart(run, ours, base)
        rows += judged(run.label, run_difference(before_session, before, session, run), wanted)
    _print(rows, form, strict=strict)
    outcome = worst(rows)
    if outcome == "passed":
        return ExitCode.LIMIT_PASSED
    return ExitCode.UNDECIDED if strict and outcome == "undecided" else ExitCode.OK


def _programs(name: str, options: CompileOptions) -> list[tuple[Session, Run]]:
    """The compiled programs that an argument names. Raises JaxprofError."""
    from jaxprof.cli.hlo_target import find_modules

    modules = find_modules(name, None, None, options, alone=False)
    for note in dict.fromkeys(note for module in modules for note in module.notes):
        click.echo(note, err=True)
    programs = [
        (module.session, module.run) for module in modules if module.session is not None and module.run is not None
    ]
    if not programs:
        raise UsageError(f"{name} is no program that jaxprof compiles", "Name a function, a workload or a session.")
    return [(session, run) for session, run in programs if "hlo" in run.texts] or programs


def _counterpart(run: Run, programs: list[tuple[Session, Run]], base: str) -> tuple[Session, Run]:
    """The baseline of `run`: on the same kind of device, and where there are several, of the same name and variant."""
    on_device = [program for program in programs if program[1].device_kind == run.device_kind]
    if not on_device:
        kinds = ", ".join(dict.fromkeys(program.device_kind for _, program in programs))
        raise UsageError(f"{base} has no program on {run.device_kind}", f"It has programs on {kinds}.")
    plan = run.plan
    for names in (
        lambda program: (
            program.workload,
            program.variant,
            tuple(sorted(program.parameters.items())),
            program.arguments,
        ),
        lambda program: (program.workload, program.variant),
        lambda program: program.workload,
        lambda program: None,
    ):
        alike = [program for program in on_device if names(program[1].plan) == names(plan)]
        if len(alike) == 1:
            return alike[0]
    listed = ", ".join(f"{program.id} {program.label}" for _, program in on_device[:10])
    raise UsageError(f"{base} has {len(on_device)} programs on {run.device_kind}", f"Keep one of them: {listed}.")


def _print(rows: list[GateRow], form: str, *, strict: bool) -> None:
    from jaxprof.report import gate as report

    if form == "json":
        print_json(report.gate_json(rows))
    elif form == "junit":
        click.echo(report.gate_junit(rows, strict=strict), nl=False)
    else:
        click.echo(report.gate_markdown(rows) if form == "markdown" else report.gate_text(rows))
