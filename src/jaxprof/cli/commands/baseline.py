"""`jaxprof gate baseline`: sessions kept by name, with which `gate --base NAME` compares."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from jaxprof.cli.answers import command_line
from jaxprof.cli.complete import complete_baseline, complete_target
from jaxprof.cli.options import (
    arguments_option,
    force_option,
    python_option,
    settings_option,
    target_options,
    variant_option,
    yes_option,
)
from jaxprof.cli.output import ExitCode, delete_after_asking, format_option, note, print_json, print_lines
from jaxprof.cli.target import is_compiled_now
from jaxprof.errors import StorageError, UsageError
from jaxprof.session.log.baselines import Baselines
from jaxprof.units import counted

if TYPE_CHECKING:
    from jaxprof.cli.hlo_target import CompileOptions
    from jaxprof.report.gate import BaselineEntry


@click.group("baseline")
def command() -> None:
    """Keep programs by name, and compare others with them: jaxprof gate TARGET --base NAME."""


@command.command("save")
@click.argument("name", shell_complete=complete_baseline)
@click.argument("programs", nargs=-1, required=True, metavar="TARGET...", shell_complete=complete_target)
@target_options("Compile for h100, tpu-v5e... that need not be here.")
@variant_option()
@arguments_option(help="For your own functions: f32[1024,1024].")
@settings_option()
@python_option()
@force_option(help="Replace the baseline of that name, and drop the decisions about it.")
@format_option("text", "json")
def save(name: str, programs: tuple[str, ...], force: bool, form: str, **compiling: Any) -> int:
    """Keep the compiled targets, or a session, as the baseline NAME. A session is one of `run`, or of `hlo --out`."""
    from jaxprof.cli.hlo_target import CompileOptions
    from jaxprof.operating_system import unwound_by_signals

    with unwound_by_signals():
        path, dropped = _saved(name, programs, CompileOptions(**compiling), replace_existing=force)
    if dropped:
        note(f"decisions about the former baseline that were dropped: {dropped}")
    note(f"baseline: {path}")
    if form == "json":
        data = {"name": name, "path": str(path), "decisions_dropped": dropped}
        print_json("baseline-save", data, [command_line("gate", "baseline", "show", name)])
    return ExitCode.OK


def _saved(name: str, targets: tuple[str, ...], options: CompileOptions, *, replace_existing: bool) -> tuple[Path, int]:
    """Keep the targets as the baseline `name`. Return its path, and how many decisions about a former one are dropped.
    Raises JaxprofError, and leaves the former one unchanged."""
    from jaxprof.analysis.opener import Kind, kind_of
    from jaxprof.cli.hlo_target import compile_session, find_modules
    from jaxprof.session import Session
    from jaxprof.session.log import Library, load

    baselines = Baselines()
    _refuse_reserved(name)
    dropped = len(baselines.decisions(name)) if replace_existing and baselines.search(name) else 0
    compiled = [target for target in targets if is_compiled_now(target)]
    if compiled and len(compiled) < len(targets):
        raise UsageError("a baseline is of programs that are compiled now, or of a session", "Give one or the other.")
    if len(targets) > 1 and not compiled:
        raise UsageError("a baseline is a copy of one session", "Save each under a name of its own.")
    if compiled:
        with baselines.replacing(name, replace=replace_existing) as path:
            compile_session(list(dict.fromkeys(targets)), replace(options, out=path, force=True))
            if not path.stat().st_size or not load(path, Session).complete:
                raise StorageError(f"the baseline {name} could not be written to {baselines.folder}")
        return baselines.path(name), dropped
    find_modules(targets[0], None, None, options)  # the same refusals: no session, options without an effect
    source = Library().find(targets[0])
    if kind_of(source) is not Kind.SESSION:
        raise UsageError(f"{targets[0]} is no session", "jaxprof open --keep makes one of a profile.")
    return baselines.save(name, source, replace=replace_existing), dropped


def _refuse_reserved(name: str) -> None:
    """Raises UsageError for a name that `--base` reads as something else."""
    from jaxprof.workloads import names

    if name in names() or name == "last":
        what = "a workload" if name in names() else "the newest session"
        raise UsageError(f"{name!r} cannot be the name of a baseline: --base {name} is {what}", "Give another name.")


@command.command("list")
@format_option("text", "json")
def list_(form: str) -> None:
    """List the baselines, with their programs and decisions."""
    from jaxprof.facts import recorder
    from jaxprof.report.gate import BASELINES, baselines_lines

    baselines = Baselines()
    folder = str(baselines.folder)
    entries = [_entry(baselines, name) for name in baselines.names()]
    if form == "json":
        next_commands = [command_line("gate", "baseline", "show", entry.name) for entry in entries[:5]]
        print_json("baselines", {"folder": folder, "baselines": list(map(recorder(BASELINES), entries))}, next_commands)
    else:
        print_lines(baselines_lines(entries, folder))


@command.command()
@click.argument("name", shell_complete=complete_baseline)
@format_option("text", "json")
def show(name: str, form: str) -> None:
    """Print the exact facts of NAME, and the decisions about them."""
    from jaxprof.report.gate import baseline_json, baseline_lines
    from jaxprof.session import Session
    from jaxprof.session.log import load

    baselines = Baselines()
    session, entry = load(baselines.find(name), Session), _entry(baselines, name)
    if form == "json":
        print_json("baseline", baseline_json(entry, session), [command_line("hlo", entry.entry.path, "--kernels")])
    else:
        print_lines(baseline_lines(entry, session))


@command.command()
@click.argument("names", nargs=-1, required=True, metavar="NAME...", shell_complete=complete_baseline)
@yes_option("-y")
@format_option("text", "json")
def delete(names: tuple[str, ...], yes: bool, form: str) -> int:
    """Delete baselines with the decisions about them, after asking."""
    baselines = Baselines()
    named = {baselines.find(name): name for name in names}
    what = counted(len(named), "baseline")
    if delete_after_asking(list(named), what, lambda path: baselines.delete(named[path]), yes=yes) and form == "json":
        print_json("baseline-delete", {"deleted": list(named.values())})
    return ExitCode.OK


def _entry(baselines: Baselines, name: str) -> BaselineEntry:
    """Return the baseline of that name. Raises UsageError if there is none."""
    from jaxprof.report.gate import BaselineEntry
    from jaxprof.session.log.entry import read_entry

    return BaselineEntry(name, read_entry(baselines.find(name)), baselines.decisions(name))
