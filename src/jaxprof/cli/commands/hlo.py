"""`jaxprof hlo FILE`: what XLA made of a program, from a session or from a dump. Imports no jax."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from jaxprof.cli.complete import complete_session
from jaxprof.cli.output import format_option, print_json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jaxprof.hlo.model import Module
    from jaxprof.session import Run, Session

STAGES = ("jaxpr", "stablehlo", "hlo")


@click.command("hlo")
@click.argument("file", metavar="FILE", shell_complete=complete_session)
@click.option("--run", "run_id", metavar="ID", help="The run of a session: r2. Needed where several have the text.")
@click.option("--stage", type=click.Choice(STAGES), default="hlo", show_default=True, help="Which text of the run.")
@click.option("--kernels", is_flag=True, help="The kernels instead of the text, of every run that has some.")
@click.option(
    "--module", "number", type=click.IntRange(1), metavar="N", help="Of a dump with several modules, the Nth."
)
@format_option("text", "json")
def command(file: str, run_id: str | None, stage: str, kernels: bool, number: int | None, form: str) -> None:
    """Print the HLO of a session's run, or of an HLO dump, or its kernels.

    FILE is a session (a path, the name of a kept one, part of it, or `last`), HLO text, or an HLO proto.
    """
    from jaxprof.store import Library

    path = Library().find(file)
    if _is_session(path):
        from jaxprof.session import Session
        from jaxprof.store import load

        _of_session(load(path, Session), file, run_id, stage, kernels, form)
    else:
        from jaxprof.errors import UsageError
        from jaxprof.hlo import files

        if run_id is not None or stage != "hlo":
            raise UsageError(f"{file} is no session", "--run and --stage choose among the texts of a session.")
        _of_dump(files.load(path), file, number, kernels, form)


def _is_session(path: Path) -> bool:
    """By its first byte: a session begins with a JSON object, HLO never does; `load` refuses what cannot be read."""
    from jaxprof.store.codec import EXTENSION

    if path.suffix == EXTENSION or not path.is_file():
        return True
    with path.open("rb") as opened:
        return opened.read(1) == b"{"


def _of_session(session: Session, file: str, run_id: str | None, stage: str, kernels: bool, form: str) -> None:
    name = "hlo" if kernels else stage
    having = [run for run in session.runs.values() if name in run.texts]
    chosen = _chosen(session, having, file, run_id, name, several=kernels)
    if kernels:
        _kernels_of_runs(session, chosen, form)
        return
    text = session.text(chosen[0].id, stage) or ""
    if form == "json":
        print_json({"run": chosen[0].id, "label": chosen[0].label, "stage": stage, "text": text})
    else:
        _print_text(text)


def _chosen(
    session: Session, having: Sequence[Run], file: str, run_id: str | None, name: str, *, several: bool
) -> Sequence[Run]:
    """The runs to print. Raises UsageError that names those to choose from."""
    from jaxprof.errors import UsageError, unknown_name

    if run_id is not None:
        if run_id not in session.runs:
            raise unknown_name("run", run_id, session.runs)
        chosen = [run for run in having if run.id == run_id]
        if not chosen:
            raise UsageError(f"run {run_id} ({session.runs[run_id].label}) has no {name}", _those(having, name))
        return chosen
    if not having:
        raise UsageError(f"no run of {file} has {name}", "Compiled variants have it: jaxprof run NAME --variant jit.")
    if len(having) > 1 and not several:
        raise UsageError(f"{len(having)} runs of {file} have {name}", _those(having, name))
    return having


def _those(having: Sequence[Run], name: str) -> str:
    if not having:
        return f"No run of this session has {name}."
    return f"Choose one with --run: {', '.join(f'{run.id} ({run.label})' for run in having)}."


def _kernels_of_runs(session: Session, runs: Sequence[Run], form: str) -> None:
    from jaxprof.report.kernels import kernels_json, kernels_table
    from jaxprof.results.kernels import kernels_of
    from jaxprof.safe_text import safe

    if form == "json":
        found = [{"run": run.id, "label": run.label, "kernels": kernels_json(session, run)} for run in runs]
        print_json({"runs": found})
        return
    for at, run in enumerate(runs):
        kernels = kernels_of(session, run.id)
        click.echo(("\n" if at else "") + safe(f"{run.id} {run.label}"))
        click.echo("\n".join(kernels_table(kernels)) if kernels is not None else "its HLO cannot be read")


def _of_dump(modules: Sequence[Module], file: str, number: int | None, kernels: bool, form: str) -> None:
    from jaxprof.errors import UsageError
    from jaxprof.hlo.analysis import kernels as kernels_in
    from jaxprof.report.kernels import kernels_table
    from jaxprof.safe_text import safe

    if number is not None and number > len(modules):
        raise UsageError(f"{file} has {len(modules)} modules", f"--module takes 1 to {len(modules)}.")
    chosen = [modules[number - 1]] if number is not None else list(modules)
    if form == "json":
        from jaxprof.report.hlo import module_json

        found: list[dict[str, Any]] = [module_json(module) for module in chosen]
        print_json(found[0] if len(found) == 1 else found)
        return
    for at, module in enumerate(chosen):
        if kernels:
            click.echo(("\n" if at else "") + safe(f"{module.name or 'module without a name'}"))
            click.echo("\n".join(kernels_table(kernels_in(module))))
        else:
            _print_text(module.text)
        for problem in module.problems:
            click.echo(safe(f"line {problem.line}: {problem.message}"), err=True)


def _print_text(text: str) -> None:
    from jaxprof.safe_text import safe_lines

    click.echo("\n".join(safe_lines(text.rstrip("\n"))))
