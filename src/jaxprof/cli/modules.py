"""The modules that a `Target` has: a session's runs, the modules of a dump or a profile, or programs compiled now."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING

from jaxprof.analysis.kernels import HOW_TO_COMPILE, open_hlo
from jaxprof.analysis.kernels.hlo_program import CompileOptions, HloProgram, programs_in, readable_programs
from jaxprof.analysis.target import Kind, Target
from jaxprof.base.errors import UsageError, WorkerError
from jaxprof.base.units import counted
from jaxprof.cli.options import refuse, refuse_without
from jaxprof.cli.output import note

if TYPE_CHECKING:
    from jaxprof.session import Run, Session


def with_local_device(options: CompileOptions, *targets: Target) -> CompileOptions:
    """Fill in the local device for those of `targets` that still have to be compiled or measured. Raises UsageError for
    a device that JAX does not use, and for a function of the user's that may not run here."""
    for target in targets:
        if target.is_own:
            from jaxprof.base.operating_system import refuse_own_code

            refuse_own_code(target.word)  # the engine refuses it, too; this is before an interpreter starts
    if options.for_devices:
        refuse(("device",), "is a device of this machine, and --for compiles for others", "Give one of them.")
    elif any(target.is_code for target in targets):
        from jaxprof.runner.device_choice import choose
        from jaxprof.runner.interpreter import find_interpreter

        device, *_ = choose([options.device] if options.device else [], find_interpreter(options.python), note)
        return replace(options, device=device)
    return options


def find_modules(
    target: Target,
    run: str | None,
    number: int | None,
    options: CompileOptions,
    *,
    alone: bool = True,
    variables: Mapping[str, str] | None = None,
) -> list[HloProgram]:
    """Return the modules of `target`: of the run `run` of a session, or the one with this number (from 1) in a dump.

    With two targets (not `alone`), an option may apply to the other one only. `variables` are laid over the environment
    of a function's processes. Raises JaxprofError: for an unknown target with similar names, for options that have no
    effect on it, for HLO that cannot be read, for a program that cannot be compiled.
    """
    if target.is_code:
        refuse_without("for_devices", ("axes", "shard", "autotune_results"))

        return _compile_now(target, options, variables)
    path = target.file
    if alone:
        refuse(
            [option.name for option in fields(CompileOptions) if option.name != "force"],
            f"applies when jaxprof compiles, and {target.word} holds programs that are already compiled",
            "It needs a workload or a function of yours.",
        )
    wanted = run or target.run or None
    if wanted is not None and target.kind not in (Kind.SESSION, Kind.JOB, Kind.PROFILE):
        raise UsageError(f"{path} is not a session", "--run chooses a run of a session, --module N a module of a dump.")

    def session_of_profile(profile: Path) -> Session:
        from jaxprof.cli.recorded import open_recorded  # only a profile has to be read as a session

        with open_recorded(target) as found:
            return found.session

    found, session = open_hlo(path, session_of_profile)
    if session is not None:
        modules = programs_in(session, wanted)
    else:
        modules = readable_programs(found) if path.is_dir() else list(map(HloProgram, found))
    if number is None:
        return modules
    if number > len(modules):
        raise UsageError(f"{path} has {counted(len(modules), 'module')}", f"--module takes 1 to {len(modules)}.")
    return [modules[number - 1]]


def find_pair(
    targets: tuple[Target, Target], run: str | None, number: int | None, options: CompileOptions
) -> list[HloProgram]:
    """Return the one module with HLO that each of two targets names. If one is compiled now and the other is not, an
    option applies to the target that takes it. Raises JaxprofError as `find_modules`, and for a target with several
    modules."""
    alone = targets[0].is_code == targets[1].is_code
    found: list[HloProgram] = []
    for target in targets:
        modules = [each for each in find_modules(target, run, number, options, alone=alone) if each.has_hlo]
        if not modules:
            raise UsageError(f"{target.word} has no HLO", HOW_TO_COMPILE)
        if len(modules) > 1:
            chosen = "--run" if modules[0].run is not None else "--module"
            named = ", ".join(f"{at} {module.label}" for at, module in enumerate(modules[:10], 1))
            raise UsageError(
                f"{target.word} has {len(modules)} modules", f"{chosen} chooses one, of both sides: {named}."
            )
        found += modules
    return found


def compile_programs(
    target: Target, options: CompileOptions, variables: Mapping[str, str] | None = None
) -> list[tuple[Session, Run]]:
    """Return the compiled programs of the target, each with its session; notes about them are printed. Raises
    JaxprofError, also if it has no program."""
    modules = find_modules(target, None, None, options, alone=False, variables=variables)
    for each in dict.fromkeys(each for module in modules for each in module.notes):
        note(each)
    programs = [(module.session, module.run) for module in modules]
    known = [(session, run) for session, run in programs if session is not None and run is not None]
    if not known:
        raise UsageError(
            f"{target.word} is not a program that jaxprof compiles", "Name a function, a workload or a session."
        )
    return known


def _compile_now(target: Target, options: CompileOptions, variables: Mapping[str, str] | None) -> list[HloProgram]:
    """Lower and compile the target now, in child processes, without running anything, and return its modules. Raises
    WorkerError if that fails, JaxprofError for a target or an option that does not fit."""
    from jaxprof.base.operating_system import refuse_to_run
    from jaxprof.devices.absent import parse_mesh, parse_targets
    from jaxprof.devices.inventory.machine import environment_facts
    from jaxprof.runner.interpreter import find_interpreter
    from jaxprof.runner.planning import HOST, PlanOptions, find_workloads, plan_compiles, read_settings
    from jaxprof.runner.scheduler import session_of
    from jaxprof.runner.session_recorder import report_location
    from jaxprof.session import LogWriter, new_header

    refuse_to_run("compiling")
    interpreter = find_interpreter(options.python)

    variant = target.variant
    if variant and options.variant and variant != options.variant:
        raise UsageError(
            f"{target.word} says its variant, and so does --variant {options.variant}", "Give one of them."
        )
    choice = PlanOptions(
        devices=[options.device or HOST],
        preset=options.preset,
        settings=read_settings(options.settings),
        arguments=options.arguments,
        keep_constants=options.keep_constants,
    )
    mesh = parse_mesh(options.axes) if options.axes else {}
    for_devices = parse_targets(options.for_devices) if options.for_devices else []
    devices = for_devices[0].devices if for_devices else 1
    try:
        (info,) = find_workloads([target], interpreter, options.arguments, devices, variables)
    except UsageError as error:
        if for_devices and "ValueError" in error.what:  # usually because the file makes its own mesh
            hint = f"It sees {counted(devices, 'device')}, as --for {for_devices[0].label} says."
            raise UsageError(error.what, f"{error.hint} {hint}".strip()) from error
        raise
    plans = plan_compiles(info, variant or options.variant, choice, for_devices, options.shard, mesh)
    environment = {**(variables or {}), **options.environment()}
    planned = [replace(plan, environment=environment) for plan in plans]
    writer = LogWriter(new_header(environment_facts()), options.out, replace_existing=options.force, own=True)
    session = session_of(planned, writer, interpreter)
    if writer.failure is not None or writer.changed:
        report_location(writer, note)
    for run in session.runs.values():
        if run.status != "ok":
            from jaxprof.findings.runs import run_findings  # only for a failure

            said = next(run_findings(session, run, "", set()), None)
            hint = said.fix if said is not None and said.code == "out_of_memory" else run.hint
            raise WorkerError(f"{run.label}: {run.error}", hint)
    modules = programs_in(session)
    for module in modules:
        if module.run is not None:
            # These warnings say what was compiled.
            module.notes += [
                warning.message
                for warning in module.run.warnings
                if warning.code in ("sharding", "library_gemms", "debug_calls_left_out")
            ]
    return modules
