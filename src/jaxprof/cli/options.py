"""Options that several commands have, and the values that they take."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from jaxprof.cli.complete import complete_target_device

Command = TypeVar("Command", bound=Callable[..., Any])


class LocalFile(click.Path):
    """A file or folder to write, on this machine: `s3://bucket/x` as a path would be a folder `s3:` here."""

    def __init__(self) -> None:
        super().__init__(path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The path. Raises UsageError for a URL."""
        if isinstance(value, str) and "://" in value:
            from jaxprof.remote.place import path_here

            path_here(value, "Name a file, and copy it there; `jaxprof script --out URL` records to a store.")
        return super().convert(value, param, ctx)


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


def silence_option(when: str = "") -> Callable[[Command], Command]:
    """`--max-silence`, for commands that start engines. `when`: put before its help."""
    return click.option(
        "--max-silence",
        "max_silence_seconds",
        type=positive_seconds,
        default=300.0,
        show_default=True,
        metavar="S",
        help=f"{when}End a process that gives no sign of life for so long.",
    )


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


def measuring_options(when: str = "") -> Callable[[Command], Command]:
    """How long the sides of a comparison are measured, and where the session goes. `when`: put before each help."""
    options = (
        click.option(
            "--launches",
            type=click.IntRange(1, 100),
            metavar="N",
            help=f"{when}Fresh processes of each side; by default until the ratio is known to ± 2 %, at most 10.",
        ),
        click.option(
            "--budget",
            "budget_seconds",
            type=positive_seconds,
            default=60.0,
            show_default=True,
            metavar="S",
            help=f"{when}Seconds of measuring in all, without --launches; half as much again for three launches.",
        ),
        click.option(
            "--max-seconds",
            type=positive_seconds,
            metavar="S",
            help=f"{when}Hard cap of each process; by default --budget.",
        ),
        silence_option(when),
        click.option(
            "--no-check",
            "no_check",
            is_flag=True,
            help=f"{when}Do not check the results against the NumPy twin.",
        ),
        click.option(
            "--seed",
            type=click.IntRange(0, 2**32 - 1),
            default=0,
            show_default=True,
            help=f"{when}Seed of the random inputs.",
        ),
        click.option("--out", type=LocalFile(), metavar="FILE", help=f"{when}Where to write the session."),
        click.option("--force", is_flag=True, help="Replace the file of --out."),
    )

    def add(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return add
