"""`jaxprof hlo TARGET`: what XLA made of a program, from a session, a dump, or compiled now. No jax in this process."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from jaxprof.cli.complete import complete_session
from jaxprof.cli.output import format_option, print_json
from jaxprof.errors import UsageError, unknown_name

if TYPE_CHECKING:
    from jaxprof.cli.programs import Program
    from jaxprof.hlo.analysis import Kernel

STAGES = ("jaxpr", "stablehlo", "hlo-before", "hlo")


@click.command("hlo")
@click.argument("target", metavar="TARGET", shell_complete=complete_session)
@click.option("--kernels", "view", flag_value="kernels", help="The kernels, with costs and their least time.")
@click.option("--findings", "view", flag_value="findings", help="What is worth looking at, with advice.")
@click.option("--barriers", "view", flag_value="barriers", help="Why kernels were not fused further.")
@click.option("--passes", "view", flag_value="passes", help="Of the folder of an XLA dump: what each pass changed.")
@click.option("--tree", metavar="KERNEL", help="What is inside a kernel, as a tree.")
@click.option("--dot", metavar="KERNEL", help="A kernel and its neighbours as Graphviz DOT.")
@click.option("--stage", type=click.Choice(STAGES), help="The program's text at this stage.")
@click.option("--run", "run_id", metavar="ID", help="Of a session, this run: r2.")
@click.option("--module", "number", type=click.IntRange(1), metavar="N", help="Of a dump, the Nth module.")
@click.option("--for", "targets", metavar="DEVICE[,DEVICE...]", default="", help="Compile for h100, a100:8, tpu-v5e...")
@click.option("--shard", multiple=True, metavar="ARG=AXIS", help="With --for: split this argument over the devices.")
@click.option("--variant", default="", metavar="NAME", help="Of a workload: the variant (else the first compiled one).")
@click.option("--preset", default="quick", show_default=True, metavar="NAME", help="Of a workload: the sizes.")
@click.option("--set", "settings", multiple=True, metavar="NAME=VALUE", help="Of a workload: a parameter.")
@click.option("--arg", "arguments", multiple=True, metavar="SPEC", help="For your own function: f32[1024,1024].")
@click.option("--python", type=click.Path(path_type=Path), metavar="PATH", help="The interpreter whose jax compiles.")
@click.option("--keep-constants", is_flag=True, help="Keep literals of more than 16 elements.")
@click.option("--out", type=click.Path(path_type=Path), metavar="FILE", help="Keep what was compiled as a session.")
@click.option("--force", is_flag=True, help="Replace FILE.")
@format_option("text", "json", "csv")
def command(
    target: str,
    view: str | None,
    tree: str | None,
    dot: str | None,
    stage: str | None,
    run_id: str | None,
    number: int | None,
    targets: str,
    shard: tuple[str, ...],
    variant: str,
    preset: str,
    settings: tuple[str, ...],
    arguments: tuple[str, ...],
    python: Path | None,
    keep_constants: bool,
    out: Path | None,
    force: bool,
    form: str,
) -> None:
    """Print what XLA made of TARGET.

    TARGET is a path (a session, HLO text or proto, the folder of an XLA dump, a profile), your own function
    (path/to/file.py:function, package.module:function), a workload (selu, selu:jit), or a kept session (its name, a
    part of it, or `last`). Functions and workloads are lowered and compiled, and not run; with --for, for devices that
    are not here: an estimate of their kernels.
    """
    from jaxprof.cli.choosing import read_settings
    from jaxprof.cli.programs import Wanted, find_programs

    wanted = Wanted(
        variant=variant,
        preset=preset,
        settings=read_settings(settings),
        arguments=arguments,
        targets=targets,
        shard=shard,
        python=python,
        keep_constants=keep_constants,
        out=out,
        force=force,
    )
    if view == "passes":
        _passes(Path(target), number, form)
        return
    if form == "csv" and view != "kernels":
        raise UsageError("only --kernels has a CSV form", "Give --kernels, or --format text or json.")
    programs = find_programs(target, run_id, number, wanted)
    for program in programs:
        for note in program.notes:
            click.echo(note, err=True)
    if tree or dot:
        _one_kernel(programs, tree or dot or "", as_dot=bool(dot))
    elif form == "json":
        _json(programs, stage)
    elif form == "csv":
        _csv(programs)
    elif targets and "," in targets and view is None and stage is None:
        _devices(programs)
    elif view is not None or (targets and stage is None):
        _view(programs, view or "kernels")
    else:
        _text(programs, stage or "hlo", target)


def _passes(folder: Path, number: int | None, form: str) -> None:
    from jaxprof.hlo.passes import modules_with_passes, passes
    from jaxprof.report.passes import passes_json, passes_text

    if not folder.is_dir():
        raise UsageError(f"--passes reads the folder of an XLA dump, and {folder} is none", "--xla_dump_to names it.")
    if form == "csv":
        raise UsageError("only --kernels has a CSV form", "Give --format text or json.")
    known = modules_with_passes(folder)
    if number is not None and number > len(known):
        listed = ", ".join(f"{at} {name}" for at, (_, name, _) in enumerate(known, 1))
        raise UsageError(f"{folder} has {len(known)} modules with passes", f"--module takes one of: {listed}.")
    found = passes(folder, known[number - 1][0] if number is not None else "")
    if form == "json":
        print_json(passes_json(found))
    else:
        click.echo("\n".join(passes_text(found)))


def _text(programs: list[Program], stage: str, target: str) -> None:
    from jaxprof.safe_text import safe_lines

    name = stage.replace("-", "_")
    having = [program for program in programs if name in program.texts]
    if not having:
        raise UsageError(
            f"no program of {target} has its {stage}", "--stage takes jaxpr, stablehlo, hlo-before or hlo."
        )
    if len(having) > 1 and having[0].run is not None:
        named = ", ".join(program.label for program in having)
        raise UsageError(f"{len(having)} runs of {target} have {stage}", f"Choose one with --run: {named}.")
    for program in having:
        click.echo("\n".join(safe_lines(_plain(name, program.texts[name]).rstrip("\n"))))
        for problem in program.module.problems if name == "hlo" else ():
            click.echo(f"line {problem.line}: {problem.message}", err=True)


def _plain(name: str, text: str) -> str:
    """A stage without the locations that tie it to the other stages: they are in the JSON form."""
    from jaxprof.hlo.places import without_comments, without_locations

    if name == "jaxpr":
        return without_comments(text)[0]
    return without_locations(text)[0] if name == "stablehlo" else text


def _view(programs: list[Program], view: str) -> None:
    from jaxprof.report import programs as report
    from jaxprof.safe_text import safe

    for at, program in enumerate(having := [one for one in programs if "hlo" in one.texts or one.modules]):
        if len(having) > 1:
            click.echo(("\n" if at else "") + safe(program.label))
        if view == "findings":
            lines = report.findings_text(program.module)
        elif view == "barriers":
            lines = report.barriers_text(program.module)
        else:
            lines = report.kernels_text(program.module, program.device)
            if program.elsewhere and program.device is not None:
                lines += [
                    "",
                    *report.collectives_text(program.module, program.device, report.devices_per_host(program.run)),
                ]
                lines += [
                    "",
                    *report.devices_table([(_device_label(program), program.module, program.device, program.run)]),
                ]
        click.echo("\n".join(lines))


def _devices(programs: list[Program]) -> None:
    from jaxprof.report.programs import devices_table

    rows = [(_device_label(one), one.module, one.device, one.run) for one in programs if one.device is not None]
    click.echo("\n".join(devices_table(rows)))


def _device_label(program: Program) -> str:
    return program.run.plan.device if program.run is not None else program.label


def _json(programs: list[Program], stage: str | None) -> None:
    from jaxprof.report.programs import program_json

    if stage is not None:
        name = stage.replace("-", "_")
        found = [
            {"label": program.label, "stage": stage, "text": program.texts[name]}
            for program in programs
            if name in program.texts
        ]
    else:
        found = [
            {
                **({"run": program.run.id, "label": program.label} if program.run is not None else {}),
                **program_json(program.module, program.device, program.run, elsewhere=program.elsewhere),
            }
            for program in programs
            if "hlo" in program.texts or program.modules
        ]
    print_json(found[0] if len(found) == 1 else {"programs": found})


def _csv(programs: list[Program]) -> None:
    import csv
    import sys

    from jaxprof.report.programs import program_json

    writer = csv.writer(sys.stdout, lineterminator="\n")
    columns = (
        "name",
        "kind",
        "opcode",
        "instructions",
        "count",
        "flops",
        "bytes",
        "intensity",
        "bound",
        "least_seconds",
    )
    writer.writerow(("program", *columns, "file", "line", "op_name"))
    for program in programs:
        if "hlo" not in program.texts and not program.modules:
            continue
        data = program_json(program.module, program.device, program.run, elsewhere=program.elsewhere)
        for row in data["kernels"]:
            source = row["source"] or {}
            writer.writerow(
                (
                    program.label,
                    *(row.get(column) for column in columns),
                    source.get("file"),
                    source.get("line"),
                    row["op_name"],
                )
            )


def _one_kernel(programs: list[Program], name: str, *, as_dot: bool) -> None:
    from jaxprof.hlo.analysis import kernels

    for program in programs:
        found = [kernel for kernel in kernels(program.module) if kernel.name == name.lstrip("%")]
        if found:
            click.echo("\n".join(_kernel_lines(program, found[0], as_dot=as_dot)))
            return
    known = [kernel.name for program in programs for kernel in kernels(program.module)]
    raise unknown_name("kernel", name, known)


def _kernel_lines(program: Program, kernel: Kernel, *, as_dot: bool) -> list[str]:
    if as_dot:
        from jaxprof.hlo.dot import to_dot
        from jaxprof.hlo.graph import neighbourhood

        return to_dot(neighbourhood(program.module, kernel)).splitlines()
    from jaxprof.report.programs import tree_text

    return tree_text(program.module, kernel)
