"""The modules that a target names: a session's runs, the modules of a dump or a profile, or programs compiled now."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING

from jaxprof.analysis.hlo_program import HloProgram, programs_in, readable_programs
from jaxprof.analysis.opener import HOW_TO_COMPILE, Kind, kind_of, open_hlo
from jaxprof.cli.options import refuse, refuse_without
from jaxprof.cli.output import note
from jaxprof.cli.target import existing, is_compiled_now, is_ready, recorded, split_variant
from jaxprof.errors import UsageError, WorkerError
from jaxprof.runner.new_session import report_location
from jaxprof.units import counted

if TYPE_CHECKING:
    from jaxprof.runner.interpreter import Interpreter
    from jaxprof.runner.planning import PlannedRun
    from jaxprof.session import Run, Session


_NOTED_WARNINGS = ("sharding", "library_gemms", "debug_calls_left_out")
"""Codes of the warnings that say what was compiled."""
_LOAD_AUTOTUNED = "--xla_gpu_load_autotune_results_from"


@dataclass(frozen=True, slots=True, kw_only=True)
class CompileOptions:
    """The options that apply when jaxprof compiles, as given on the command line, by the names of their parameters."""

    variant: str = ""
    preset: str = "quick"
    settings: Sequence[str] = ()
    """Settings such as `n=4000`, as `--set` takes them."""
    arguments: Sequence[str] = ()
    targets: str = ""
    """The value of `--for`."""
    axes: str = ""
    """The value of `--mesh`."""
    shard: Sequence[str] = ()
    autotune_results: Path | None = None
    """A file of what XLA's autotuner chose on a GPU (`--xla_gpu_dump_autotune_results_to`, or in a dump's folder)."""
    device: str | None = None
    """The value of `--device`; once `placed`, an id."""
    python: Path | None = None
    keep_constants: bool = False
    out: Path | None = None
    force: bool = False

    def environment(self) -> dict[str, str]:
        """Variables of the process that compiles."""
        if self.autotune_results is None:
            return {}
        flags = f'{os.environ.get("XLA_FLAGS", "")} {_LOAD_AUTOTUNED}="{self.autotune_results.resolve()}"'
        return {"XLA_FLAGS": flags.strip()}


def placed(options: CompileOptions, *targets: str) -> CompileOptions:
    """Return the options with the device of this machine that those of `targets` are compiled for (or measured on)
    which are no programs yet. Raises UsageError for a device that JAX does not use."""
    if options.targets:
        refuse(("device",), "is a device of this machine, and --for compiles for others", "Give one of them.")
    elif any(map(is_compiled_now, targets)):
        from jaxprof.cli.selection import choose
        from jaxprof.runner.interpreter import find_interpreter

        device, *_ = choose([options.device] if options.device else [], find_interpreter(options.python))
        return replace(options, device=device)
    return options


def find_modules(
    target: str,
    run: str | None,
    number: int | None,
    options: CompileOptions,
    *,
    alone: bool = True,
    variables: Mapping[str, str] | None = None,
) -> list[HloProgram]:
    """Return the modules that `target` names: of the run `run` of a session, or the one with this number (from 1) in a
    dump.

    Unless the target is `alone`, an option may apply to another target only. `variables` are laid over the environment
    of a function's processes. Raises JaxprofError: for an unknown target with similar names, for options that have no
    effect on it, for HLO that cannot be read, for a program that cannot be compiled.
    """
    if is_compiled_now(target):
        refuse_without("targets", ("axes", "shard", "autotune_results"))
        if alone:
            refuse(
                ("run_id", "number"),
                f"chooses among existing programs, and {target} is compiled now",
                "--variant chooses what is compiled; --out FILE keeps it as a session.",
            )
        return _compile(target, options, variables)
    path = existing(target)
    if alone:
        refuse(
            [option.name for option in fields(CompileOptions) if option.name != "force"],
            f"applies when jaxprof compiles, and {target} holds programs that are already compiled",
            "It needs a workload or a function of yours.",
        )
    return _modules_at_path(path, run, number)


def find_pair(
    targets: tuple[str, str], run: str | None, number: int | None, options: CompileOptions
) -> list[HloProgram]:
    """Return the one module with HLO that each of two targets names. If one is compiled now and the other is not, an
    option applies to the target that takes it. Raises JaxprofError as `find_modules`, and for a target with several
    modules."""
    alone = is_ready(targets[0]) == is_ready(targets[1])
    found: list[HloProgram] = []
    for target in targets:
        modules = [each for each in find_modules(target, run, number, options, alone=alone) if each.has_hlo]
        if not modules:
            raise UsageError(f"{target} has no HLO", HOW_TO_COMPILE)
        if len(modules) > 1:
            chosen = "--run" if modules[0].run is not None else "--module"
            named = ", ".join(f"{at} {module.label}" for at, module in enumerate(modules[:10], 1))
            raise UsageError(f"{target} has {len(modules)} modules", f"{chosen} chooses one, of both sides: {named}.")
        found += modules
    return found


def compiled_programs(
    name: str, options: CompileOptions, variables: Mapping[str, str] | None = None
) -> list[tuple[Session, Run]]:
    """Return the compiled programs that an argument names, each with its session; notes about them are printed. Raises
    JaxprofError, also if the argument names no program."""
    modules = find_modules(name, None, None, options, alone=False, variables=variables)
    for each in dict.fromkeys(each for module in modules for each in module.notes):
        note(each)
    programs = [(module.session, module.run) for module in modules]
    known = [(session, run) for session, run in programs if session is not None and run is not None]
    if not known:
        raise UsageError(f"{name} is not a program that jaxprof compiles", "Name a function, a workload or a session.")
    return known


def _modules_at_path(path: Path, run: str | None, number: int | None) -> list[HloProgram]:
    kind = kind_of(path)
    if kind in (Kind.SESSION, Kind.JOB):
        refuse(("number",), f"chooses a module of a dump, and {path} is a session", "Choose a run of it with --run.")
    elif kind is not Kind.PROFILE and run is not None:
        raise UsageError(f"{path} is not a session", "--run chooses a run of a session, --module N a module of a dump.")

    def session_of_profile(profile: Path) -> Session:
        with recorded(str(profile)) as found:
            return found.session

    found, session = open_hlo(path, session_of_profile)
    if session is not None:
        modules = programs_in(session, run)
    else:
        modules = readable_programs(found) if path.is_dir() else list(map(HloProgram, found))
    if number is None:
        return modules
    if number > len(modules):
        raise UsageError(f"{path} has {counted(len(modules), 'module')}", f"--module takes 1 to {len(modules)}.")
    return [modules[number - 1]]


def _compile(target: str, options: CompileOptions, variables: Mapping[str, str] | None) -> list[HloProgram]:
    """Lower and compile the target now, in child processes, without running anything, and return its modules. Raises
    WorkerError if that fails, JaxprofError for a target or an option that does not fit."""
    from jaxprof.devices.inventory.environment import environment_facts
    from jaxprof.operating_system import refuse_to_run
    from jaxprof.runner.interpreter import find_interpreter
    from jaxprof.runner.scheduler import session_of
    from jaxprof.session.log import LogWriter, new_header

    refuse_to_run("compiling")
    interpreter = find_interpreter(options.python)
    planned = _planned(target, options, interpreter, variables)
    writer = LogWriter(new_header(environment_facts()), options.out, replace_existing=options.force)
    session = session_of(planned, writer, interpreter)
    if writer.failure is not None or writer.changed:
        report_location(writer, note)
    for run in session.runs.values():
        if run.status != "ok":
            raise WorkerError(f"{run.label}: {run.error}", run.advice)
    modules = programs_in(session)
    for module in modules:
        if module.run is not None:
            module.notes += [warning.message for warning in module.run.warnings if warning.code in _NOTED_WARNINGS]
    return modules


def _planned(
    target: str, options: CompileOptions, interpreter: Interpreter, variables: Mapping[str, str] | None
) -> list[PlannedRun]:
    """Return the compilations of one target: for this machine, or for each device that it lacks. Raises
    JaxprofError."""
    from jaxprof.cli.selection import find_workloads, read_settings
    from jaxprof.devices.targets.machine import parse_mesh, parse_targets
    from jaxprof.runner.planning import HOST, PlanOptions, plan_compiles

    name, variant = split_variant(target)
    if variant and options.variant and variant != options.variant:
        raise UsageError(f"{target} says its variant, and so does --variant {options.variant}", "Give one of them.")
    choice = PlanOptions(
        devices=[options.device or HOST],
        preset=options.preset,
        settings=read_settings(options.settings),
        arguments=options.arguments,
        keep_constants=options.keep_constants,
    )
    mesh = parse_mesh(options.axes) if options.axes else {}
    targets = parse_targets(options.targets) if options.targets else []
    devices = targets[0].devices if targets else 1
    try:
        (info,) = find_workloads([name], interpreter, options.arguments, devices, variables)
    except UsageError as error:
        if targets and "ValueError" in error.what:  # usually because the file makes its own mesh
            hint = f"It sees {counted(devices, 'device')}, as --for {targets[0].label} says."
            raise UsageError(error.what, f"{error.hint} {hint}".strip()) from error
        raise
    plans = plan_compiles(info, variant or options.variant, choice, targets, options.shard, mesh)
    environment = {**(variables or {}), **options.environment()}
    return [replace(plan, environment=environment) for plan in plans]
