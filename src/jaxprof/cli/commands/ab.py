"""`jaxprof ab`: measures two or more sides in turns, and says which is faster, or that it is not known."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from jaxprof.cli.answers import command_line, new_writer
from jaxprof.cli.complete import (
    complete_parameter,
    complete_workload,
)
from jaxprof.cli.options import (
    arguments_option,
    device_option,
    measuring_options,
    preset_option,
    refuse_without,
    share,
    variant_option,
)
from jaxprof.cli.output import format_option, print_json, print_lines

if TYPE_CHECKING:
    from collections.abc import Callable

    from jaxprof.cli.sides import AllWords, MeasuredSides, ReadSides
    from jaxprof.runner.sides import SideOptions


_PRECISIONS = click.Choice(("default", "high", "highest", "bfloat16", "tensorfloat32", "float32"))


def _of_each_side(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options that all sides take, or A or B alone: `--env`, `--env-a`, `--env-b`..."""
    for suffix, whose in (("-b", "B"), ("-a", "A"), ("", "all sides")):
        name = suffix.replace("-", "_")
        whom = f" of {whose}."
        for option in (
            click.option(
                f"--precision{suffix}",
                f"precision{name}",
                type=_PRECISIONS,
                metavar="P",
                help=f"Matrix precision{whom}",
            ),
            click.option(
                f"--set{suffix}",
                f"settings{name}",
                multiple=True,
                metavar="n=4000",
                shell_complete=complete_parameter,
                help=f"A parameter{whom} May be repeated.",
            ),
            click.option(
                f"--python{suffix}", f"python{name}", metavar="PATH", help=f"Interpreter or environment{whom}"
            ),
            click.option(
                f"--env{suffix}",
                f"environment{name}",
                multiple=True,
                metavar="K=V",
                help=f"A variable in the environment{whom} May be repeated.",
            ),
        ):
            command = option(command)
    return command


@click.command("ab")
@click.argument("targets", nargs=-1, metavar="TARGET_A [TARGET_B]...", shell_complete=complete_workload)
@click.option("--git", "revision", metavar="REV", help="A is the target at this revision, B the one on disk.")
@_of_each_side
@variant_option(
    default="jit",
    show_default=True,
    metavar="V",
    help="Which variant; one side's stands behind its name (selu:numpy selu:jit).",
)
@device_option(help="Where.")
@preset_option()
@arguments_option(help="An argument of your functions: f32[1024,1024].")
@click.option(
    "--margin", type=share, default="2%", show_default=True, metavar="M", help="Closer than this is the same."
)
@measuring_options()
@click.option("--capture", is_flag=True, help="Capture kernel times, in a pass of their own.")
@format_option("text", "json")
def command(out: Path | None, force: bool, form: str, **words: Any) -> int:
    """Compare two or more targets, or two settings of one: which is faster, and do they compute the same?

    A, A once more as a control, and B are measured in turns, in fresh processes, on the same inputs. Exits with 0
    whatever the verdict is, and with 1 if a side failed.
    """
    refuse_without("out", ("force",))
    from jaxprof.cli.sides import measure, read_sides
    from jaxprof.operating_system import refuse_to_run, unwound_by_signals
    from jaxprof.reaper import TemporaryFolder

    refuse_to_run("jaxprof ab")
    with (
        unwound_by_signals(),
        TemporaryFolder("ab") as folder,
        read_sides(_all_words(words)) as read,
    ):
        options = _options(words, read, folder)
        measured = measure(read, options, lambda: new_writer(out, replace_existing=force))
    return _printed(measured, form)


def _all_words(words: dict[str, Any]) -> AllWords:
    from jaxprof.cli.sides import AllWords, SideWords

    def side(suffix: str) -> SideWords:
        return SideWords(
            environment=words[f"environment{suffix}"],
            python=words[f"python{suffix}"],
            settings=words[f"settings{suffix}"],
            precision=words[f"precision{suffix}"],
        )

    return AllWords(
        targets=words["targets"],
        revision=words["revision"],
        arguments=words["arguments"],
        all=side(""),
        a=side("_a"),
        b=side("_b"),
    )


def _options(words: dict[str, Any], read: ReadSides, folder: Path) -> SideOptions:
    from jaxprof.cli.device_selection import choose
    from jaxprof.runner.sides import SideOptions

    (device,) = choose([words["device"]], read.sides[0].interpreter)
    names = (
        "variant",
        "preset",
        "launches",
        "budget_seconds",
        "max_seconds",
        "max_silence_seconds",
        "arguments",
        "capture",
        "seed",
        "margin",
    )
    taken = {name: words[name] for name in names}
    return SideOptions(**taken, device=device, check=not words["no_check"], folder=folder)


def _printed(measured: MeasuredSides, form: str) -> int:
    """Print the comparison and return the exit code."""
    from jaxprof.report.ab import ab_json, ab_lines

    result = measured.result
    if result is not None and form == "json":
        named = [command_line("show", measured.path, "--full")] if measured.path is not None else []
        print_json("ab", {"session": measured.path, **ab_json(result)}, named)
    elif result is not None:
        print_lines(ab_lines(result))
    return measured.exit_code
