"""`jaxprof baseline`: sessions kept by name, to be held against with `gate --base NAME`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from jaxprof.cli.answers import command_line
from jaxprof.cli.complete import complete_baseline, complete_target
from jaxprof.cli.exit_codes import ExitCode
from jaxprof.cli.options import target_options
from jaxprof.cli.output import confirm, format_option, note, print_json, print_lines

if TYPE_CHECKING:
    from jaxprof.report.baselines import BaselineEntry


@click.group("baseline")
def command() -> None:
    """Keep programs by name, and hold others against them: jaxprof gate TARGET --base NAME."""


@command.command("save")
@click.argument("name", shell_complete=complete_baseline)
@click.argument("programs", nargs=-1, required=True, metavar="TARGET...", shell_complete=complete_target)
@target_options("Compile for h100, tpu-v5e... that need not be here.")
@click.option("--variant", default="", metavar="NAME", help="The variant of a workload.")
@click.option("--arg", "arguments", multiple=True, metavar="SPEC", help="For your own functions: f32[1024,1024].")
@click.option("--set", "settings", multiple=True, metavar="NAME=VALUE", help="A parameter of a workload.")
@click.option("--python", type=click.Path(path_type=Path), metavar="PATH", help="The interpreter whose jax compiles.")
@click.option("--force", is_flag=True, help="Replace the baseline of that name, and drop the decisions about it.")
@format_option("text", "json")
def save(name: str, programs: tuple[str, ...], force: bool, form: str, **compiling: Any) -> int:
    """Compile the targets as the baseline NAME, or keep a copy of a session (of `run`, or of `hlo --out`)."""
    from jaxprof.cli.baseline_saving import save_baseline
    from jaxprof.cli.hlo_target import CompileOptions
    from jaxprof.operating_system import unwound_by_signals

    with unwound_by_signals():
        saved = save_baseline(name, programs, CompileOptions(**compiling), replace=force)
    if saved.dropped:
        note(f"decisions about the former baseline that were dropped: {saved.dropped}")
    note(f"baseline: {saved.path}")
    if form == "json":
        data = {"name": name, "path": str(saved.path), "decisions_dropped": saved.dropped}
        print_json("baseline-save", data, [command_line("baseline", "show", name)])
    return ExitCode.OK


@command.command("list")
@format_option("text", "json")
def list_(form: str) -> None:
    """List the baselines, with their programs and decisions."""
    from jaxprof.report.baselines import baselines_json, baselines_lines

    entries = [_entry(name) for name in _names()]
    if form == "json":
        named = [command_line("baseline", "show", entry.name) for entry in entries[:5]]
        print_json("baselines", {"folder": str(_folder()), "baselines": baselines_json(entries)}, named)
    else:
        print_lines(baselines_lines(entries, str(_folder())))


@command.command()
@click.argument("name", shell_complete=complete_baseline)
@format_option("text", "json")
def show(name: str, form: str) -> None:
    """Print the exact facts of the programs of NAME, and the decisions about them."""
    from jaxprof.report.baselines import baseline_json, baseline_lines
    from jaxprof.session import Session
    from jaxprof.session.log import load
    from jaxprof.session.log.baselines import Baselines

    session = load(Baselines().find(name), Session)
    entry = _entry(name)
    if form == "json":
        print_json("baseline", baseline_json(entry, session), [command_line("hlo", entry.entry.path, "--kernels")])
    else:
        print_lines(baseline_lines(entry, session))


@command.command()
@click.argument("names", nargs=-1, required=True, metavar="NAME...", shell_complete=complete_baseline)
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@format_option("text", "json")
def delete(names: tuple[str, ...], yes: bool, form: str) -> int:
    """Delete baselines with the decisions about them, after asking."""
    from jaxprof.session.log.baselines import Baselines

    baselines = Baselines()
    doomed = list(dict.fromkeys(names))
    for name in doomed:
        note(str(baselines.find(name)))
    if not yes:
        if not sys.stdin.isatty():
            raise click.UsageError("Deleting asks first, and stdin is not a terminal: add --yes.")
        if not confirm(f"Delete {len(doomed)}?"):
            return ExitCode.OK
    for name in doomed:
        baselines.delete(name)
    note(f"Deleted {len(doomed)}.")
    if form == "json":
        print_json("baseline-delete", {"deleted": doomed})
    return ExitCode.OK


def _names() -> list[str]:
    from jaxprof.session.log.baselines import Baselines

    return Baselines().names()


def _folder() -> Path:
    from jaxprof.session.log.baselines import Baselines

    return Baselines().folder


def _entry(name: str) -> BaselineEntry:
    from jaxprof.report.baselines import BaselineEntry
    from jaxprof.session.log.baselines import Baselines
    from jaxprof.session.log.entry import read_entry

    baselines = Baselines()
    return BaselineEntry(name, read_entry(baselines.find(name)), baselines.decisions(name))
