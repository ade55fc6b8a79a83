"""The modules that a target names: a session's runs, the modules of a dump or a profile, or programs compiled now."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING

from jaxprof.analysis.kernels.hlo_program import CompileOptions, HloProgram, programs_in, readable_programs
from jaxprof.analysis.opener import HOW_TO_COMPILE, Kind, kind_of, open_hlo
from jaxprof.base.errors import UsageError
from jaxprof.base.operating_system import refuse_own_code
from jaxprof.base.units import counted
from jaxprof.cli.options import refuse, refuse_without
from jaxprof.cli.output import note
from jaxprof.cli.target import choose, existing, is_compiled_now, is_ready, recorded
from jaxprof.workloads import is_workload

if TYPE_CHECKING:
    from jaxprof.session import Run, Session


def placed(options: CompileOptions, *targets: str) -> CompileOptions:
    """Return the options with the device of this machine that those of `targets` are compiled for (or measured on)
    which are no programs yet. Raises UsageError for a device that JAX does not use, and for a function of the user's
    that may not run here."""
    for target in targets:
        if is_compiled_now(target) and not is_workload(target):
            refuse_own_code(target)  # the engine refuses it, too; this is before an interpreter starts
    if options.targets:
        refuse(("device",), "is a device of this machine, and --for compiles for others", "Give one of them.")
    elif any(map(is_compiled_now, targets)):
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
        from jaxprof.runner.compiling import compiled_now

        return compiled_now(target, options, variables, note)
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
