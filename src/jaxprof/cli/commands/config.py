"""`jaxprof config`: show and change the user's settings, and where each is from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from jaxprof.cli.options import refuse
from jaxprof.cli.output import ExitCode, format_option, note, print_json, print_lines, print_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jaxprof.config import Config, Value

_TEMPLATE = """\
# Settings of jaxprof; see `jaxprof config show` and docs/configuration.md.
# theme = "jaxprof-light"
# preset = "quick"
# devices = ["cuda:0"]
# budget = 2
# comparison_budget = 60            # of compare, and of the times of gate
# upload_wait = 60                  # seconds, of script --out URL, at its end
# margin = "2%"                     # of compare
# fail_on = ["kernels", "run:5%"]   # of gate

# [keys]                          # the ids are in docs/keys.md
# "results.compare" = "ctrl+k"
"""


@click.group("config", invoke_without_command=True)
@format_option("text", "json")
@click.pass_context
def command(context: click.Context, form: str) -> None:
    """Show and change your settings: theme, preset, devices, budgets, limits of the gate, keys.

    An option on the command line goes before a variable (JAXPROF_PRESET...), that before your file, and that before
    the `[tool.jaxprof]` of a project's pyproject.toml, which has no theme and no keys.
    """
    if context.invoked_subcommand is None:
        _show(form)
    else:
        refuse(("form",), "goes after the subcommand", "jaxprof config show --format json")


@command.command()
@format_option("text", "json")
def show(form: str) -> None:
    """Print each setting in force, and where it is from."""
    _show(form)


def _show(form: str) -> None:
    from jaxprof.config import read_config

    config = read_config()
    if form == "json":
        print_json("config", _as_json(config))
    else:
        print_lines(_lines(config))


def _as_json(config: Config) -> dict[str, Any]:
    from jaxprof.config import KEYS, SETTINGS, config_path
    from jaxprof.tui.keys import checked, clashes

    path = config_path()
    return {
        "file": str(path),
        "exists": path.exists(),
        "entries": [
            {
                "name": setting.name,
                "value": config.values.get(setting.name),
                "source": config.sources.get(setting.name),
                "variable": setting.variable,
                "means": setting.means,
            }
            for setting in SETTINGS
        ],
        "keys": [
            {"action": action, "key": key, "source": config.sources[f"{KEYS}.{action}"]}
            for action, key in config.keys.items()
        ],
        "clashes": [{"key": clash.key, "actions": list(clash.actions)} for clash in clashes(checked(config.keys))],
    }


def _lines(config: Config) -> Iterator[str]:
    from jaxprof.config import KEYS, SETTINGS, config_path
    from jaxprof.text import safe
    from jaxprof.tui.keys import checked, clashes

    rows = [
        (
            setting.name,
            _words(config.values[setting.name]) if setting.name in config.values else "-",
            setting.name,
            setting.means,
        )
        for setting in SETTINGS
    ]
    rows += [(f"{KEYS}.{action}", key, f"{KEYS}.{action}", "") for action, key in config.keys.items()]
    for name, value, source, means in rows:
        at = config.sources.get(source, "not set")
        yield safe(f"{name:<17} {value:<20} {at}{f'  ({means})' if means else ''}")
    for clash in clashes(checked(config.keys)):
        yield safe(f"! {clash}")
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
    """Set NAME to VALUE in your file. Examples: `set devices cuda:0,cpu:0`, `set keys.results.compare ctrl+k`."""
    from jaxprof.config import KEYS, config_path, keep, parsed, read_config
    from jaxprof.tui.keys import checked, clashes

    if name.startswith(f"{KEYS}."):
        checked({name.removeprefix(f"{KEYS}."): value})
        keep(name, value)
        for clash in clashes(checked(read_config().keys)):
            note(f"! {clash}")
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
    from jaxprof.tui.keys import checked, clashes

    file = config_path()
    if not file.exists():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(_TEMPLATE, "utf-8")
    click.edit(filename=str(file))
    for clash in clashes(checked(read_config().keys)):
        note(f"! {clash}")
    return ExitCode.OK
