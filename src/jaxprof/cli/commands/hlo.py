"""`jaxprof hlo TARGET`: what XLA made of a program, from a session, a dump, or compiled now. No jax in this process."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from jaxprof.analysis.target import Target, resolve
from jaxprof.base.errors import UsageError
from jaxprof.base.text import safe_lines
from jaxprof.cli import options
from jaxprof.cli.options import choose_view, is_given, refuse
from jaxprof.cli.output import ExitCode, format_option, note, print_csv, print_json, print_lines

if TYPE_CHECKING:
    from collections.abc import Iterable

    from jaxprof.analysis.kernels.hlo_program import CompileOptions, HloProgram
    from jaxprof.analysis.kernels.ranking import KernelOptions

STAGES = ("jaxpr", "stablehlo", "hlo-before", "hlo")
SORTS = (
    "order", "share", "least", "bytes", "flops", "times", "inside", "intensity", "name", "kind", "bound", "source",
)  # fmt: skip
"""Names of `jaxprof.report.kernels.COLUMNS`, repeated here to be known before HLO is read."""


@click.command("hlo")
@click.argument("target", metavar="TARGET", shell_complete=options.complete_with("target"))
@options.views(
    {
        "kernels": "The kernels, with costs and least times.",
        "findings": "What to improve, with advice.",
        "barriers": "Why kernels were not fused further.",
        "memory": "The peak of memory, and what is alive there.",
    }
)
@click.option("--top", type=click.IntRange(1), metavar="N", help="The first N kernels by --sort, or the N largest.")
@click.option(
    "--sort",
    type=click.Choice(SORTS),
    metavar="BY",
    help=f"Sort the kernels, largest first, names from A to Z: {', '.join(SORTS)}.",
)
@click.option("--diff", "other", metavar="B", help="What differs from the module B, ignoring names.")
@click.option("--stage", type=click.Choice(STAGES), help="The program's text at this stage.")
@click.option("--short", is_flag=True, help="The text without metadata and the backend's configuration.")
@options.run(help="The run of a session: r2.")
@click.option("--module", "number", type=click.IntRange(1), metavar="N", help="The Nth module of a dump.")
@options.target("Compile for h100, a100:8, tpu-v5e...")
@click.option(
    "--autotune-results",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="With --for a GPU: what XLA chose by trying it out on one, as a dump has it.",
)
@options.variant(help="The variant of a workload (default: the first compiled one).")
@options.preset(metavar="NAME", help="The sizes of a workload.")
@options.settings()
@options.arguments(help="For your own function: f32[1024,1024].")
@options.device(help="The device to compile for, in place of the one that JAX uses.")
@options.python()
@options.keep_constants(help="Keep literals of more than 16 elements.")
@options.out(help="Keep the compiled program as a session.")
@options.force(help="Replace FILE.")
@format_option("text", "json", "csv")
def command(
    target: str,
    top: int | None,
    sort: str | None,
    other: str | None,
    stage: str | None,
    short: bool,
    run_id: str | None,
    number: int | None,
    form: str,
    **words: Any,
) -> ExitCode:
    """Print what XLA made of TARGET.

    TARGET is a path (a session, HLO text or proto, the folder of an XLA dump, a profile), your own function
    (path/to/file.py:function, package.module:function), a workload (selu, selu:jit), or a kept session (its name, a
    part of it, or `last`). Functions and workloads are lowered and compiled, but not run. With --for, they are
    compiled for devices that you do not have: an estimate of their kernels.
    """
    from jaxprof.analysis.kernels.hlo_program import CompileOptions
    from jaxprof.cli.modules import find_modules, with_local_device

    view = choose_view("other", "stage")
    compiling = CompileOptions(**words)
    if view != "kernels" and not compiling.for_devices:
        refuse(("top", "sort"), "applies to the list of kernels", "Give --kernels, too.")
    if form == "csv" and view != "kernels":
        raise UsageError("only --kernels has a CSV form", "Give --kernels, or --format text or json.")
    sides = [resolve(word, note, code=True, runs=True) for word in (target, other) if word is not None]
    compiling = with_local_device(compiling, *sides)
    if other is not None:
        return _difference((sides[0], sides[1]), run_id, number, compiling, form)
    modules = find_modules(sides[0], run_id, number, compiling)
    for module in modules:
        for module_note in module.notes:
            note(module_note)
    as_text = form == "text" and (stage is not None or (view is None and not compiling.for_devices))
    if as_text:
        _print_text(modules, stage or "hlo", target, short=short)
    else:
        from jaxprof.analysis.kernels.ranking import KernelOptions  # imports all that reads kernels

        choice = KernelOptions(sort or "", top)
        if form == "json":
            _print_json(modules, stage, view, choice)
        elif form == "csv":
            from jaxprof.facts.hlo import kernels_of_program
            from jaxprof.report.kernels import kernels_table

            with_hlo = [module for module in modules if module.has_hlo]
            for module in with_hlo:
                _note_problems(module)
            print_csv(kernels_table((module.label, kernels_of_program(module, choice)) for module in with_hlo))
        elif "," in compiling.for_devices and view is None:
            from jaxprof.report.modules import devices_table

            print_lines(devices_table([module for module in modules if module.machine is not None]))
        else:
            _print_view(modules, view or "kernels", choice)
    return ExitCode.NOT_WHOLE if _is_doubtful(modules, stage, as_text=as_text) else ExitCode.OK


def _difference(
    targets: tuple[Target, Target], run_id: str | None, number: int | None, compiling: CompileOptions, form: str
) -> ExitCode:
    from jaxprof.cli.answers import print_facts, same_command
    from jaxprof.cli.modules import find_pair
    from jaxprof.facts.comparisons import difference_row
    from jaxprof.report import report_lines
    from jaxprof.report.comparison import difference_pieces

    refuse(("out",), "keeps one program, and --diff compares two", "Leave it out.")
    if "," in compiling.for_devices:
        raise UsageError("--diff compares programs of one device", "Name one device with --for.")
    sides = find_pair(targets, run_id, number, compiling)
    for side in sides:
        _note_problems(side)
    before, after = (side.hlo for side in sides)
    if form == "json":
        print_facts("hlo-diff", difference_row(before, after), [same_command("--full")])
    else:
        print_lines(report_lines(difference_pieces(before, after), width=0))
    return ExitCode.NOT_WHOLE if _is_doubtful(sides, None, as_text=True) else ExitCode.OK


def _is_doubtful(modules: list[HloProgram], stage: str | None, *, as_text: bool) -> bool:
    """Return whether the printed answer is unreliable; as a text, HLO before XLA's passes is reliable, too."""
    if stage not in (None, "hlo"):
        return False
    from jaxprof.hlo.kernels.notices import NOT_OPTIMISED, notices

    of_modules = (notice for module in modules if module.has_hlo for notice in notices(module.hlo))
    return any(notice.serious and not (as_text and notice.code == NOT_OPTIMISED) for notice in of_modules)


def _print_text(modules: list[HloProgram], stage: str, target: str, *, short: bool) -> None:
    from jaxprof.hlo.text import short_text

    name = stage.replace("-", "_")
    with_stage = [module for module in modules if name in module.stages.stages]
    if not with_stage:
        kept = {stage for module in modules for stage in module.stages.stages}
        listed = ", ".join(stage for stage in STAGES if stage.replace("-", "_") in kept)
        raise UsageError(f"no program of {target} has its {stage}", f"It has {listed}.")
    if len(with_stage) > 1 and with_stage[0].run is not None:
        named = ", ".join(module.label for module in with_stage)
        if is_given("for_devices"):
            raise UsageError(f"--stage {stage} prints one program", "Name one device with --for.")
        raise UsageError(f"{len(with_stage)} runs of {target} have {stage}", f"Choose one with --run: {named}.")
    for module in with_stage:
        # without what says where its lines came from, which JSON keeps
        whole = module.stages.text(name)
        if name in ("hlo", "hlo_before"):
            text = whole
        else:
            from jaxprof.hlo.source_lines import without_comments, without_locations

            text = (without_comments if name == "jaxpr" else without_locations)(whole)[0]
        print_lines(safe_lines((short_text(text) if short else text).rstrip("\n")))
        if name == "hlo":
            _note_problems(module)


def _note_problems(module: HloProgram) -> None:
    """Print notices and unreadable lines on stderr, for answers whose format has no room for them."""
    from jaxprof.hlo.kernels.notices import notices, problems

    for notice in notices(module.hlo):
        note(str(notice))
    # A text that is no HLO at all would have a problem on each of its lines.
    for problem in problems(module.hlo)[:20]:
        note(f"line {problem.line}: {problem.message}")


def _print_view(modules: list[HloProgram], view: str, choice: KernelOptions) -> None:
    with_hlo = [module for module in modules if module.has_hlo]
    if not with_hlo:
        raise UsageError("there is no optimised HLO", "--stage shows the stages that exist.")
    for at, module in enumerate(with_hlo):
        if len(with_hlo) > 1:
            print_lines([*([""] if at else []), module.label])
        if view == "kernels":
            from jaxprof.base.values import not_collecting
            from jaxprof.report.kernels import kernel_lines

            with not_collecting():
                print_lines(kernel_lines(module.hlo, module.machine, choice, module.measured))
            if module.elsewhere and module.machine is not None:
                from jaxprof.report.modules import collectives_text, devices_table

                print_lines(["", *collectives_text(module)])
                print_lines(["", *devices_table([module])])
        else:
            from jaxprof.report.modules import view_lines

            print_lines(view_lines(module, view))


def _print_json(modules: list[HloProgram], stage: str | None, view: str | None, choice: KernelOptions) -> None:
    from jaxprof.base.values import not_collecting
    from jaxprof.cli.answers import same_command
    from jaxprof.facts import recorder
    from jaxprof.facts.hlo import facts_of_program

    printed: Iterable[dict[str, Any]]
    if stage is not None:
        kind, name = "hlo-stage", stage.replace("-", "_")
        printed = [
            {"label": module.label, "stage": stage, "lines": module.stages.text(name).split("\n")}
            for module in modules
            if name in module.stages.stages
        ]
    else:
        kind = f"hlo-{view}" if view is not None else "hlo"
        printed = map(recorder(facts_of_program(view, choice)), (module for module in modules if module.has_hlo))
    with not_collecting():
        kept = {name for module in modules for name in module.stages.stages}
        others = [[f"--{other}"] for other in ("kernels", "findings", "barriers", "memory") if other != view]
        others += [["--stage", other] for other in STAGES if other.replace("-", "_") in kept and other != stage]
        print_json(
            kind,
            {"programs": iter(printed)},
            [same_command(*option, without=("top", "sort", "stage", "out", "force")) for option in others],
        )
