"""`jaxprof config`: shows and changes the user's settings, and says where each is from."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from jaxprof.cli.exit_codes import ExitCode
from jaxprof.cli.output import note, print_lines, print_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jaxprof.config import Value

_TEMPLATE = """\
# Settings of jaxprof; see `jaxprof config show` and docs/configuration.md.
# theme = "jaxprof-light"
# preset = "quick"
# devices = ["cuda:0"]
# budget = 2

# [keys]                          # the ids are in docs/keys.md
# "results.compare" = "ctrl+k"
"""


@click.group("config", invoke_without_command=True)
@click.pass_context
def command(context: click.Context) -> None:
    """Show and change your settings: theme, preset, devices, budget, keys.

    An option on the command line goes before a variable (JAXPROF_PRESET...), that before your file, and that before
    the `[tool.jaxprof]` of a project's pyproject.toml, which has no theme and no keys.
    """
    if context.invoked_subcommand is None:
        context.invoke(show)


@command.command()
def show() -> None:
    """Print each setting in force, and where it is from."""
    print_lines(_lines())


def _lines() -> Iterator[str]:
    from jaxprof.config import KEYS, SETTINGS, config_path, read_config
    from jaxprof.text import safe

    found = read_config()
    rows = [
        (one.name, _words(found.values[one.name]) if one.name in found.values else "-", one.name, one.means)
        for one in SETTINGS
    ]
    rows += [(f"{KEYS}.{action}", key, f"{KEYS}.{action}", "") for action, key in found.keys.items()]
    for name, value, source, means in rows:
        at = found.sources.get(source, "not set")
        yield safe(f"{name:<10} {value:<24} {at}{f'  ({means})' if means else ''}")
    path = config_path()
    yield ""
    yield safe(f"Your file is {path}{'' if path.exists() else ', which does not exist yet'}.")


def _words(value: Value) -> str:
    if isinstance(value, tuple):
        return ", ".join(value)
    return f"{value:g} s" if isinstance(value, float) else value


@command.command()
def path() -> None:
    """Print the path of your file."""
    from jaxprof.config import config_path

    print_text(str(config_path()))


@command.command("set")
@click.argument("name")
@click.argument("value")
def set_(name: str, value: str) -> None:
    """Set NAME to VALUE in your file: `set devices cuda:0,cpu:0`, `set keys.results.compare ctrl+k`."""
    from jaxprof.config import KEYS, config_path, keep, parsed
    from jaxprof.tui.keys import checked

    if name.startswith(f"{KEYS}."):
        checked({name.removeprefix(f"{KEYS}."): value})
        keep(name, value)
    else:
        keep(name, parsed(name, value, "the command line"))
    note(f"set in {config_path()}")


@command.command()
@click.argument("name")
def unset(name: str) -> None:
    """Take NAME out of your file."""
    from jaxprof.config import config_path, keep

    keep(name, None)
    note(f"{name} is not set in {config_path()}")


@command.command()
def edit() -> int:
    """Open your file in $VISUAL or $EDITOR, and check it afterwards."""
    from jaxprof.config import config_path, read_config
    from jaxprof.tui.keys import checked

    file = config_path()
    if not file.exists():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(_TEMPLATE, "utf-8")
    click.edit(filename=str(file))
    checked(read_config().keys)
    return ExitCode.OK
