"""`jaxprof config`: show and change the user's settings, and where each is from; `completion` prints the script that
makes a shell complete jaxprof's commands, names and sessions."""

from __future__ import annotations

import click

from jaxprof.base.config import KEYS, SETTINGS, config_path, keep, read_config, setting_value
from jaxprof.base.text import safe
from jaxprof.cli import options
from jaxprof.cli.answers import print_answer
from jaxprof.cli.output import format_option, note, print_text
from jaxprof.facts.answers import SettingsInForce
from jaxprof.tui.keys import check_keys, clashes

SHELLS = ("bash", "zsh", "fish")


@click.group("config", cls=options.ListingGroup)
def command() -> None:
    """Show and change your settings: theme, preset, devices, budgets, limits of the gate, keys.

    An option on the command line goes before a variable (JAXPROF_PRESET...), that before your file, and that before
    the `[tool.jaxprof]` of a project's pyproject.toml, which has no theme and no keys.
    """


@command.command()
@format_option("text", "json")
def show(form: str) -> None:
    """Print each setting in force, and where it is from."""
    config = read_config()
    keys = [(action, key, config.sources[f"{KEYS}.{action}"]) for action, key in config.keys.items()]
    path = config_path()
    row = SettingsInForce(config, SETTINGS, path, keys, clashes(check_keys(config.keys)))
    values = {}
    for name, value in config.values.items():
        words = f"{value:g} s" if isinstance(value, float) else value
        values[name] = ", ".join(words) if isinstance(words, tuple) else words
    shown = [(setting.name, values.get(setting.name, "-"), f"  ({setting.means})") for setting in SETTINGS]
    shown += [(f"{KEYS}.{action}", key, "") for action, key in config.keys.items()]
    lines = [f"{name:<17} {value:<20} {config.sources.get(name, 'not set')}{means}" for name, value, means in shown]
    lines += [f"! {clash}" for clash in row.clashes]
    lines += ["", f"Your file is {path}{'' if path.exists() else ', which does not exist yet'}."]
    print_answer(form, "config", row, map(safe, lines))


@command.command("set")
@click.argument("name")
@click.argument("value")
def set_(name: str, value: str) -> None:
    """Set NAME to VALUE in your file. Examples: `set devices cuda:0,cpu:0`, `set keys.results.compare ctrl+k`."""
    if name.startswith(f"{KEYS}."):
        check_keys({name.removeprefix(f"{KEYS}."): value})
        keep(name, value)
        for clash in clashes(check_keys(read_config().keys)):
            note(f"! {clash}")
    else:
        keep(name, setting_value(name, value, "the command line"))
    note(f"set in {config_path()}")


@command.command()
@click.argument("name")
def unset(name: str) -> None:
    """Take NAME out of your file."""
    keep(name, None)
    note(f"{name} is not set in {config_path()}")


@command.command()
@click.argument("shell", type=click.Choice(SHELLS))
def completion(shell: str) -> None:
    """Print the completion script of SHELL.

    \b
    bash:  jaxprof config completion bash \\
               > ~/.local/share/bash-completion/completions/jaxprof
    zsh:   jaxprof config completion zsh > "${fpath[1]}/_jaxprof"
    fish:  jaxprof config completion fish \\
               > ~/.config/fish/completions/jaxprof.fish
    """
    from click.shell_completion import get_completion_class

    from jaxprof.cli.main import cli

    completer = get_completion_class(shell)
    assert completer is not None, shell
    print_text(completer(cli, {}, "jaxprof", "_JAXPROF_COMPLETE").source())
