"""`jaxprof compare` of what can be run: measure the sides in turns, and say which is faster, or that it is unknown."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from jaxprof.cli.answers import command_line, new_writer, print_conclusion
from jaxprof.cli.complete import complete_parameter
from jaxprof.cli.options import (
    device_option,
    measuring_options,
    preset_option,
    refuse_without,
    share,
    variant_option,
)
from jaxprof.cli.output import combine_options, print_json, print_lines, print_text
from jaxprof.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from jaxprof.cli.sides import AllWords, MeasuredSides, ReadSides
    from jaxprof.runner.sides import SideOptions


_PRECISIONS = click.Choice(("default", "high", "highest", "bfloat16", "tensorfloat32", "float32"))


def _side_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that all sides take, or A or B alone: `--env`, `--env-a`, `--env-b`..."""
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


measured_options = combine_options(
    click.option("--git", "revision", metavar="REV", help="A is the target at this revision, B the one on disk."),
    _side_options,
    variant_option(
        default="jit",
        show_default=True,
        metavar="V",
        help="Variant of all sides; for one side, write it after its name (selu:numpy selu:jit).",
    ),
    device_option(help="The device to run on."),
    preset_option(),
    click.option(
        "--margin",
        type=share,
        default="2%",
        show_default=True,
        metavar="M",
        help="Smaller differences count as the same.",
    ),
    measuring_options(),
    click.option("--capture", is_flag=True, help="Capture kernel times, in a pass of their own."),
)
"""The options of a comparison whose sides are measured, besides `--arg`."""


def compare_measured(targets: tuple[str, ...], form: str, words: dict[str, Any]) -> int:
    """Measure the sides, print the comparison, and return the exit code. `words`: parameter name → value."""
    if form not in ("text", "json"):
        raise UsageError(f"a comparison that is measured has no {form} form", "It has --format text and json.")
    refuse_without("out", ("force",))
    from jaxprof.cli.sides import measure, read_sides
    from jaxprof.operating_system import refuse_to_run, unwound_by_signals
    from jaxprof.reaper import TemporaryFolder

    refuse_to_run("jaxprof compare")
    with (
        unwound_by_signals(),
        TemporaryFolder("ab") as folder,
        read_sides(_all_words({**words, "targets": targets})) as read,
    ):
        options = _options(words, read, folder)
        measured = measure(read, options, lambda: new_writer(words["out"], replace_existing=words["force"]))
    return _print_comparison(measured, form)


def _all_words(words: dict[str, Any]) -> AllWords:
    from jaxprof.cli.sides import AllWords, SideWords

    def side(suffix: str) -> SideWords:
        return SideWords(
            environment=words[f"environment{suffix}"],
            python=None if words[f"python{suffix}"] is None else str(words[f"python{suffix}"]),
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


def _print_comparison(measured: MeasuredSides, form: str) -> int:
    """Print the comparison and return the exit code."""
    from jaxprof.report.comparison_report import ab_json, ab_lines

    result = measured.result
    if result is not None and form == "json":
        next_commands = [command_line("open", measured.path, "--full")] if measured.path is not None else []
        print_json("ab", {"session": measured.path, **ab_json(result)}, next_commands)
    elif result is not None:
        print_lines(ab_lines(result))
        path = Path(measured.path) if measured.path is not None else None
        print_conclusion(result.session, path, print_text)
    return measured.exit_code
