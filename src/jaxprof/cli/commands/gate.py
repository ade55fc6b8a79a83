"""`jaxprof gate TARGET --base BASE --fail-on FACT[:N%]`: whether the exact facts of a program are within limits."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from jaxprof.cli.complete import complete_session, complete_target
from jaxprof.cli.exit_codes import ExitCode
from jaxprof.cli.options import target_options
from jaxprof.cli.output import format_option, note, print_json, print_pieces, print_text
from jaxprof.errors import JaxprofError, UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from jaxprof.analysis.gate import GateResult, GateRow
    from jaxprof.cli.hlo_target import CompileOptions
    from jaxprof.session import Run, Session


@click.command("gate")
@click.argument("target", metavar="TARGET", shell_complete=complete_target)
@click.option(
    "--base",
    metavar="BASE",
    shell_complete=complete_session,
    help="What TARGET is held against; by default HEAD, where it has changes that are not committed.",
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
def command(
    target: str, base: str | None, limits: tuple[str, ...], strict: bool, form: str, **compiling: Any
) -> ExitCode:
    """Compile TARGET, and fail if an exact fact of it has grown since BASE.

    TARGET is a function of yours (path/to/file.py:function), a workload, or a session (of `run`, or of `hlo --out`).
    BASE is one of these, or a git revision of the repository that holds TARGET. Nothing is run and no time is compared,
    so the machine need not be quiet. FACT is one of kernels, launches, flops, bytes, transcendentals, peak, argument,
    output, temporary, constant, donated (must not shrink), code, collectives, collective_bytes, compiles. Exit codes: 0
    within, 1 a side failed, 3 a limit was passed, 4 undecided (--strict).
    """
    from jaxprof.analysis.gate import GateResult, judged, read_limits
    from jaxprof.analysis.run_difference import run_difference
    from jaxprof.cli.gate_base import found_base
    from jaxprof.cli.hlo_target import CompileOptions
    from jaxprof.operating_system import unwound_by_signals

    wanted = read_limits(limits)
    options = CompileOptions(**compiling)
    with unwound_by_signals(), found_base(target, base) as found:
        try:
            ours = _programs(found.target, options, found.variables)
        except JaxprofError as error:
            raise found.named(error) from error
        theirs = _programs(target, options)
        rows: list[GateRow] = []
        for session, run in theirs:
            before_session, before = _counterpart(run, ours, found.about.name)
            rows += judged(run.label, run_difference(before_session, before, session, run), wanted)
    result = GateResult(found.about, tuple(rows))
    _print(result, form, strict=strict)
    if result.outcome == "passed":
        return ExitCode.LIMIT_PASSED
    return ExitCode.UNDECIDED if strict and result.outcome == "undecided" else ExitCode.OK


def _programs(
    name: str, options: CompileOptions, variables: Mapping[str, str] | None = None
) -> list[tuple[Session, Run]]:
    """The compiled programs that an argument names. Raises JaxprofError."""
    from jaxprof.cli.hlo_target import find_modules

    modules = find_modules(name, None, None, options, alone=False, variables=variables)
    for each in dict.fromkeys(each for module in modules for each in module.notes):
        note(each)
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
            program.device,
            program.workload,
            program.variant,
            tuple(sorted(program.parameters.items())),
            program.arguments,
        ),
        lambda program: (program.device, program.workload, program.variant),
        lambda program: (program.workload, program.variant),
        lambda program: program.workload,
        lambda program: program.device,
        lambda program: None,
    ):
        alike = [program for program in on_device if names(program[1].plan) == names(plan)]
        if len(alike) == 1:
            return alike[0]
    listed = ", ".join(f"{program.id} {program.label}" for _, program in on_device[:10])
    raise UsageError(f"{base} has {len(on_device)} programs on {run.device_kind}", f"Keep one of them: {listed}.")


def _print(result: GateResult, form: str, *, strict: bool) -> None:
    from jaxprof.report import gate as report

    if form == "json":
        print_json(report.gate_json(result))
    elif form == "junit":
        print_pieces([report.gate_junit(result, strict=strict)])
    else:
        print_text(report.gate_markdown(result) if form == "markdown" else report.gate_text(result))
