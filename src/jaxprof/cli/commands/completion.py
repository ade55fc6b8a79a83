"""`jaxprof config completion SHELL`: the script that makes a shell complete jaxprof's commands, names and sessions."""

from __future__ import annotations

import click

from jaxprof.cli.output import print_text

SHELLS = ("bash", "zsh", "fish")


@click.command("completion")
@click.argument("shell", type=click.Choice(SHELLS))
def command(shell: str) -> None:
    """Print the completion script of SHELL.

    \b
    bash:  jaxprof config completion bash > ~/.local/share/bash-completion/completions/jaxprof
    zsh:   jaxprof config completion zsh > "${fpath[1]}/_jaxprof"
    fish:  jaxprof config completion fish > ~/.config/fish/completions/jaxprof.fish
    """
    from click.shell_completion import get_completion_class

    from jaxprof.cli.main import cli

    completer = get_completion_class(shell)
    assert completer is not None, shell
    print_text(completer(cli, {}, "jaxprof", "_JAXPROF_COMPLETE").source())
