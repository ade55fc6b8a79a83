"""Compile what a target names, and run nothing: for this machine, or for devices that it lacks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from jaxprof.analysis.kernels.hlo_program import CompileOptions, HloProgram, programs_in
from jaxprof.analysis.target import Target
from jaxprof.base.errors import UsageError, WorkerError
from jaxprof.base.units import counted
from jaxprof.devices.absent import parse_mesh, parse_targets
from jaxprof.runner.interpreter import find_interpreter
from jaxprof.runner.new_session import report_location
from jaxprof.runner.planning import HOST, PlanOptions, find_workloads, plan_compiles, read_settings


def compile_now(
    target: Target, options: CompileOptions, variables: Mapping[str, str] | None, note: Callable[[str], None]
) -> list[HloProgram]:
    """Lower and compile the target now, in child processes, without running anything, and return its modules. `note` is
    called with where they are kept, if not where they should be. Raises WorkerError if that fails, JaxprofError for a
    target or an option that does not fit."""
    from jaxprof.base.operating_system import refuse_to_run
    from jaxprof.devices.inventory.machine import environment_facts
    from jaxprof.runner.scheduler import session_of
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
