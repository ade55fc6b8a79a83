"""Options that several commands have, and the values that they take."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeVar

import click

from jaxprof.cli.complete import complete_target_device

Command = TypeVar("Command", bound=Callable[..., Any])


def target_options(what: str) -> Callable[[Command], Command]:
    """`--for`, whose help is `what`, with `--mesh` and `--shard`: compiling for devices that need not be here."""
    options = (
        click.option(
            "--for",
            "targets",
            metavar="DEVICE[,DEVICE...]",
            default="",
            shell_complete=complete_target_device,
            help=what,
        ),
        click.option(
            "--mesh", "axes", default="", metavar="AXIS=N,...", help="With --for: the mesh, as data=4,model=2."
        ),
        click.option(
            "--shard", multiple=True, metavar="ARG=SPEC", help="With --for: how this input is split: x=data,-."
        ),
    )

    def add(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return add


def positive_seconds(value: str | float) -> float:
    """A time budget: above 0 and finite. Raises BadParameter."""
    try:
        number = float(value)
    except ValueError:
        raise click.BadParameter(f"{value!r} is not a number of seconds") from None
    if not (math.isfinite(number) and number > 0):
        raise click.BadParameter(f"{value!r} is not above 0 seconds")
    return number


def share(value: str | float) -> float:
    """A margin: `2%` or `0.02`, above 0 and below 1. Raises BadParameter."""
    text = str(value).strip()
    try:
        number = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        raise click.BadParameter(f"{value!r} is not a share, such as 2%") from None
    if not 0 < number < 1:
        raise click.BadParameter(f"{value!r} is not between 0 and 100 %")
    return number
