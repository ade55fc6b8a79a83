"""`jaxprof run`: measure, keep the session, and print it; without a name, print what can be run, without jax."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from jaxprof import workloads
from jaxprof.analysis.target import Target, resolve
from jaxprof.base.errors import UsageError
from jaxprof.base.grouping import grouped
from jaxprof.base.text import safe, safe_lines
from jaxprof.base.units import counted, value_text
from jaxprof.cli import options
from jaxprof.cli.answers import carry_out, command_line, print_answer, print_conclusion, print_session
from jaxprof.cli.options import is_given, refuse, refuse_others
from jaxprof.cli.output import ExitCode, format_option, note, print_text, start_question
from jaxprof.facts import Fact, column, pick
from jaxprof.facts.answers import WORKLOAD
from jaxprof.report import Table, text_lines, wrap
from jaxprof.workloads.model import Parameter, workload_info

if TYPE_CHECKING:
    from jaxprof.runner.planning import PlannedRun, PlanOptions
    from jaxprof.runner.rerun import Ask


@click.command("run")
@click.argument("names", nargs=-1, metavar="[NAME]...", shell_complete=options.complete_with("workload"))
@click.option("--describe", is_flag=True, help="Describe NAME: parameters, variants, code; run nothing.")
@click.option("--all", "everything", is_flag=True, help="Every built-in workload.")
@click.option(
    "--from",
    "source",
    metavar="SESSION[:RUN]",
    shell_complete=options.complete_with("session"),
    help="Repeat the runs of a session: all, or those of a run id, workload or function.",
)
@options.variant(
    "variants", multiple=True, default=(), metavar="V", help="Only this variant, besides the baseline. May be repeated."
)
@options.device(
    "devices",
    multiple=True,
    default=(),
    help="Where to run: cpu:0, cuda:1, gpu:0, tpu:0, in place of the one that JAX uses. May be repeated.",
)
@options.preset()
@options.settings(metavar="n=4000", help="A parameter. May be repeated.")
@click.option("--sweep", default="", metavar="n=1e3..1e7[:POINTS]", help="Sweep one parameter over a range of sizes.")
@options.budget(default=2.0, help="Seconds of sampling per run.")
@options.launches(default=3, show_default=True, help="Fresh processes for each run, which share its budget.")
@options.max_seconds(help="Hard cap of each run, after its start-up.")
@options.max_silence()
@options.python(help="The interpreter or environment whose jax is measured.")
@options.arguments(help="An argument of your function: f32[1024,1024].")
@options.keep_constants()
@click.option("--cache", "compilation_cache", is_flag=True, help="Leave JAX's persistent compilation cache on.")
@click.option("--no-capture", is_flag=True, help="Do not run the profiler: no kernel times, no compile passes.")
@options.seed()
@options.out()
@options.yes(help="With --from: run what the session names without a question.")
@options.force()
@format_option("text", "json")
def command(
    names: tuple[str, ...],
    describe: bool,
    everything: bool,
    source: str | None,
    devices: tuple[str, ...],
    settings: tuple[str, ...],
    sweep: str,
    max_silence_seconds: float,
    python: Path | None,
    no_capture: bool,
    out: Path | None,
    yes: bool,
    force: bool,
    form: str,
    **planning: Any,
) -> int:
    """Measure workloads phase by phase, each variant in a fresh process; print the session and keep it.

    NAME is a built-in workload, or a function of your own: path/to/file.py:function or package.module:function.
    Without a NAME, lists what can be run. With --from, the runs of a session are repeated with their original options.
    """
    if describe or not (names or everything or source is not None):
        if len(names) > 1:
            raise UsageError("--describe takes one name", f"jaxprof run --describe {names[0]}")
        why = "is an option of a run, and " + ("--describe runs nothing" if describe else "no workload was named")
        refuse_others(why, "names", "describe", "python", "arguments", "form", hint="jaxprof run NAME..., or --all.")
        _print_catalogue(names[0] if names else None, python, planning["arguments"], form)
        return ExitCode.OK
    from jaxprof.base.operating_system import refuse_to_run
    from jaxprof.runner.device_choice import choose
    from jaxprof.runner.interpreter import find_interpreter
    from jaxprof.runner.planning import PlanOptions, estimate_time, find_workloads, plan_all, read_settings

    refuse_to_run("jaxprof run")
    if source is not None:
        which = "jaxprof open SESSION lists its runs; --from SESSION:r2 is one of them."
        fixed = ("names", "everything", "variants", "preset", "settings", "sweep", "arguments")
        refuse(fixed, "is fixed by the session that --from repeats", which)
        if len(devices) > 1:
            raise UsageError("--from takes one --device", "The session fixes what is run; name one device for it.")
    interpreter = find_interpreter(python)
    sizes = read_settings(settings)
    swept = sweep.partition("=")[0].strip()
    if swept in sizes:
        raise UsageError(f"--set {swept} and --sweep {swept} cannot both set the size", "Give one of them.")
    targets = [_code(name) for name in (*names, *(workloads.names() if everything else ()))]
    infos = find_workloads(targets, interpreter, planning["arguments"])
    plan_options = PlanOptions(
        devices=[] if source is not None and not devices else choose(devices, interpreter, note),
        settings=sizes,
        sweep=sweep,
        capture=not no_capture,
        **planning,
    )
    notes: list[str] = []
    if source is not None:
        planned = _plan_again(source, plan_options, start_question(source, yes=yes))
    else:
        planned, notes = plan_all(infos, plan_options)
    from jaxprof.runner.session_recorder import new_writer

    writer = new_writer(out, replace_existing=force)
    lines = [*(f"note: {each}" for each in notes), f"{counted(len(planned), 'run')}: {estimate_time(planned)}"]
    outcome = carry_out(planned, interpreter, writer, lines, max_silence_seconds)
    if form == "json":
        print_session(outcome.session, outcome.path)
    else:
        from jaxprof.report.session_text import to_text

        print_text(f"{to_text(outcome.session)}\n")
        print_conclusion(outcome.session, outcome.path, print_text)
    return outcome.exit_code


_CHANGES = ("budget_seconds", "launches", "max_seconds", "keep_constants", "compilation_cache", "seed")
"""Plan options that change how the runs of a session are repeated."""


def _plan_again(source: str, chosen: PlanOptions, ask: Ask) -> list[PlannedRun]:
    """Return the runs of the session that `source` names by its path or name: all, or those that are named after a
    colon (an id, workload or function).

    What the user has `chosen` on the command line replaces the recorded options of each run; with a device, all runs
    except NumPy's are planned for it. `ask` is called with what would start. Raises FileRefusedError, and UsageError,
    also if the session came from a URL: nothing of it may be started.
    """
    from jaxprof.runner.rerun import NOT_AGAIN, choose_runs, list_starts, plan_again, refuse_fetched
    from jaxprof.session import Library, Session, load

    target = resolve(source, runs=True)
    path = target.path or Library().find(source)
    refuse_fetched(path)
    session, wanted = load(path, Session), target.run
    changes = {name: getattr(chosen, name) for name in _CHANGES if is_given(name)}
    changes |= {} if chosen.capture else {"capture": False}
    made: dict[PlannedRun, PlannedRun] = {}
    planned_again = plan_again(session, wanted)
    repeated = [run for run in choose_runs(session, wanted) if run.plan.how not in NOT_AGAIN]
    ask([line for run in repeated for line in list_starts(session, run)])
    for planned in planned_again:
        own = chosen.devices[0] if chosen.devices and planned.spec.how != "numpy" else planned.spec.device
        baseline = made[planned.baseline] if planned.baseline is not None else None
        spec = replace(planned.spec, **changes, device=own)
        made[planned] = replace(planned, spec=spec, baseline=baseline)
    return list(made.values())


def _print_catalogue(name: str | None, python: Path | None, arguments: tuple[str, ...], form: str) -> None:
    target = _code(name) if name is not None else None
    if target is not None and target.is_own:
        from jaxprof.runner.engine_questions import describe
        from jaxprof.runner.interpreter import find_interpreter

        infos = describe(find_interpreter(python), [target.word], arguments)
    else:
        infos = workloads.infos() if target is None else [workload_info(workloads.load_built_in(target.word))]
    several = name is None or len(infos) > 1
    next_commands = [command_line("run", *(["--describe"] if several else []), info.target) for info in infos[:1]]
    if several:
        names_of = column("variants", lambda info: ", ".join(variant.name for variant in info.variants), widest=60)
        listed = text_lines(Table((*pick(WORKLOAD, "name", "title"), names_of), infos), indent="")
        print_answer(form, "workloads", {"workloads": infos}, listed, next_commands)
        if name is not None and form == "text":
            note(f"jaxprof run --describe {infos[0].origin} describes one.")
        return
    (info,) = infos
    lines = [safe(f"{info.name}: {info.title}"), "", *wrap(info.description, first="")]
    if info.parameters:

        def preset_column(preset: str) -> Fact[Parameter]:
            return column(preset, lambda parameter: info.presets[preset].get(parameter.name), value_text, right=False)

        bounds = column("bounds", lambda each: each.bounds or "-")
        columns = (column("parameter", "name"), *map(preset_column, info.presets), bounds, column("", "description"))
        lines += ["", *text_lines(Table(columns, info.parameters), indent="")]
    variants = (
        column("variant", lambda variant: variant.name + (" (baseline)" if variant.name == info.baseline else "")),
        column("how", "how"),
        column("", "description"),
    )
    lines += ["", *text_lines(Table(variants, info.variants), indent="")]
    for source, names in grouped((each.source, each.name) for each in info.variants if each.source).items():
        lines += ["", safe(f"{', '.join(names)}:")]
        lines += (f"    {line}".rstrip() for line in safe_lines(source.rstrip()))
    print_answer(form, "workload", {"workloads": infos}, lines, next_commands)


def _code(name: str) -> Target:
    """Return what NAME is: a workload, a function, a file or a module, never a kept session."""
    return resolve(name, note, code=True, kept=False)
