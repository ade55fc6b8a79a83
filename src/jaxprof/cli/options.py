"""Options that several commands have, the values that they take, and which the user gave.

An option that would have no effect is refused, never ignored.
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from jaxprof.cli.output import Command, combine_options
from jaxprof.errors import UsageError


def completed_by(name: str) -> Callable[[click.Context, click.Parameter, str], Any]:
    """Return the function `complete_NAME` of `cli.complete`, which is imported when a shell asks."""

    def complete(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> Any:
        from jaxprof.cli import complete as completions

        return getattr(completions, f"complete_{name}")(incomplete)

    return complete


FOR_TABLES = ("'duckdb>=2,<3' pyarrow", "duckdb", "pyarrow")
"""The packages of the extra `query`, for `require_packages`."""


class ListingGroup(click.Group):
    """A group whose first command, which lists, is meant where none is named: `jaxprof sessions --format json`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        is_named = bool(args) and (not args[0].startswith("-") or args[0] in ctx.help_option_names)
        if not is_named and not ctx.resilient_parsing:
            args = [next(iter(self.commands)), *args]
        return super().parse_args(ctx, args)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options of the listing, then the commands."""
        next(iter(self.commands.values())).format_options(ctx, formatter)
        self.format_commands(ctx, formatter)


class LocalFile(click.Path):
    """A file or folder to write on this machine. A URL is refused: as a path, `s3://bucket/x` would be in a folder
    `s3:`."""

    def __init__(self) -> None:
        super().__init__(path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the path. Raises UsageError for a URL."""
        if isinstance(value, str) and "://" in value:
            from jaxprof.remote.place import path_here

            path_here(value, "Name a file, and copy it there; `jaxprof script --out URL` records to a store.")
        return super().convert(value, param, ctx)


arguments_option = partial(click.option, "--arg", "arguments", multiple=True, metavar="SPEC")
device_option = partial(
    click.option, "--device", default="cpu:0", show_default=True, metavar="D", shell_complete=completed_by("device")
)
force_option = partial(click.option, "--force", is_flag=True, help="Replace the file of --out.")
keep_constants_option = partial(
    click.option,
    "--keep-constants",
    is_flag=True,
    help="Keep long literals in the recorded HLO (weights, secrets).",
)
out_option = partial(click.option, "--out", "-o", type=LocalFile(), metavar="FILE", help="Where to write the session.")
preset_option = partial(
    click.option,
    "--preset",
    default="quick",
    show_default=True,
    metavar="P",
    help="Sizes: quick, or published.",
)
python_option = partial(
    click.option,
    "--python",
    type=click.Path(path_type=Path),
    metavar="PATH",
    help="The interpreter whose jax compiles.",
)
run_option = partial(click.option, "--run", "run_id", metavar="ID")
settings_option = partial(
    click.option,
    "--set",
    "settings",
    multiple=True,
    metavar="NAME=VALUE",
    help="A parameter of a workload.",
)
seed_option = partial(
    click.option,
    "--seed",
    type=click.IntRange(0, 2**32 - 1),
    default=0,
    show_default=True,
    metavar="N",
    help="Seed of the random inputs.",
)
variant_option = partial(
    click.option,
    "--variant",
    default="",
    metavar="NAME",
    help="The variant of a workload.",
)
yes_option = partial(click.option, "--yes", is_flag=True, help="Do not ask.")


def target_options(what: str) -> Callable[[Command], Command]:
    """Return `--for`, whose help is `what`, with `--mesh` and `--shard`: compiling for devices that need not be
    here."""
    return combine_options(
        click.option(
            "--for",
            "targets",
            metavar="DEVICE[,DEVICE...]",
            default="",
            shell_complete=completed_by("target_device"),
            help=what,
        ),
        click.option(
            "--mesh", "axes", default="", metavar="AXIS=N,...", help="With --for: the mesh, as data=4,model=2."
        ),
        click.option(
            "--shard", multiple=True, metavar="ARG=SPEC", help="With --for: how this input is split: x=data,-."
        ),
    )


def _keep_value(ctx: click.Context, parameter: click.Parameter, value: Any) -> None:
    ctx.meta[f"jaxprof.{parameter.name}"] = value


profile_options = combine_options(
    click.option(
        "--profile-run",
        default="",
        metavar="NAME",
        expose_value=False,
        callback=_keep_value,
        help="The recording in a log folder to open. Default: the newest.",
    ),
    click.option(
        "--host",
        "hosts",
        multiple=True,
        metavar="NAME",
        expose_value=False,
        callback=_keep_value,
        help="Only this host of a profile. May be repeated.",
    ),
)
"""Options that choose the recording and the hosts to open, in a folder that has several; see `profile_part`."""


def profile_part() -> tuple[str, tuple[str, ...]]:
    """Return the recording and the hosts that the current command chooses of a profile; both empty by default."""
    context = click.get_current_context(silent=True)
    meta = context.meta if context is not None else {}
    return meta.get("jaxprof.profile_run", ""), meta.get("jaxprof.hosts", ())


_SCALES = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0}
_TIME = re.compile(r"\s*((?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?)\s*([nuµm]?s|m)?\s*")


def seconds_of(value: str | float) -> float:
    """Return the seconds of a time as people write it: `0.25`, `1.5ms`, `20 us`, `10s`, `2m`. Raises BadParameter."""
    found = _TIME.fullmatch(str(value))
    if found is None:
        raise click.BadParameter(f"{value!r} is not a time such as 10s, 500ms or 2m")
    return float(found[1]) * _SCALES[found[2] or "s"]


def positive_seconds(value: str | float) -> float:
    """Return a time as `seconds_of` does, above 0 and finite. Raises BadParameter."""
    found = seconds_of(value)
    if not 0 < found < math.inf:
        raise click.BadParameter(f"{value!r} is not above 0 seconds")
    return found


def capture_seconds(value: str | float) -> float:
    """Return the length of a capture as `seconds_of` does, from 1 ms to 10 minutes. Raises BadParameter."""
    found = seconds_of(value)
    if not 0.001 <= found <= 600:
        raise click.BadParameter(f"{value!r} is not between 1ms and 10m")
    return found


def _sentence(when: str, text: str) -> str:
    """Return the help of an option: `text` behind `when`, or as a sentence of its own."""
    return f"{when}{text}" if when else text[0].upper() + text[1:]


def silence_option(when: str = "") -> Callable[[Command], Command]:
    """Return `--max-silence`, for commands that start engines. `when`: put before its help."""
    return click.option(
        "--max-silence",
        "max_silence_seconds",
        type=positive_seconds,
        default=300.0,
        show_default=True,
        metavar="S",
        help=_sentence(when, "end a process that sends no heartbeat for S seconds."),
    )


def share(value: str | float) -> float:
    """Return a margin, `2%` or `0.02`, above 0 and below 1. Raises BadParameter."""
    from jaxprof.config import share_of

    found = share_of(value)
    if found is None:
        raise click.BadParameter(f"{value!r} is not a share between 0 and 100 %, such as 2%")
    return found


def measuring_options(when: str = "") -> Callable[[Command], Command]:
    """Return the options for how long the sides of a comparison are measured, and where the session goes. `when`: put
    before each help."""
    return combine_options(
        click.option(
            "--launches",
            type=click.IntRange(1, 100),
            metavar="N",
            help=_sentence(
                when, "fresh processes of each side; by default until the ratio is known to ± 2 %, at most 10."
            ),
        ),
        click.option(
            "--budget",
            "budget_seconds",
            type=positive_seconds,
            default=60.0,
            show_default=True,
            metavar="S",
            help=_sentence(
                when, "seconds of measuring in all, without --launches; half as much again for three launches."
            ),
        ),
        click.option(
            "--max-seconds",
            type=positive_seconds,
            metavar="S",
            help=_sentence(when, "hard cap of each process; by default --budget."),
        ),
        silence_option(when),
        seed_option(help=_sentence(when, "seed of the random inputs.")),
        out_option(help=_sentence(when, "where to write the session.")),
        force_option(),
    )


def require_packages(command: str, install: str, *packages: str) -> None:
    """Raises UsageError if one of the packages that the command needs is missing; `install`: what pip gets for all of
    them."""
    from importlib.util import find_spec

    missing = [name for name in packages if find_spec(name) is None]
    if missing:
        verb = "is" if len(missing) == 1 else "are"
        raise UsageError(
            f"`{command}` needs {' and '.join(missing)}, which {verb} not installed",
            f"{sys.executable} -m pip install {install}",
        )


_VIEWS = "jaxprof.views"


def is_given(name: str) -> bool:
    """Return whether the user gave the parameter of that name, on the command line or in the environment. Outside a
    command, nothing is given."""
    context = click.get_current_context(silent=True)
    source = context.get_parameter_source(name) if context is not None else None
    return source not in (None, ParameterSource.DEFAULT, ParameterSource.DEFAULT_MAP)


def words_given(without: Collection[str]) -> list[object]:
    """Return the parameters of the current command that the user gave, as words of a command line."""
    context = click.get_current_context()
    words: list[object] = []
    for parameter in context.command.params:
        name, value = parameter.name or "", context.params.get(parameter.name or "")
        if name in without or not is_given(name) or value is None or value is False:
            continue
        option = [max(parameter.opts, key=len)] if isinstance(parameter, click.Option) else []
        values = value if isinstance(value, tuple) else (value,)
        words += option if value is True else [word for each in values for word in (*option, each)]
    return words


def refuse(names: Sequence[str], why: str, hint: str) -> None:
    """Raises UsageError if the user gave one of these parameters. The message is the option, then `why` it has no
    effect here."""
    given = [name for name in names if is_given(name)]
    if given:
        options = ", ".join(dict.fromkeys(_option(name) for name in given))
        raise UsageError(f"{options} {why}", hint)


def refuse_others(why: str, *known: str, hint: str = "Leave it out.") -> None:
    """Raises UsageError if the user gave a parameter that is not `known`. The message is the option, then `why`."""
    names = [parameter.name for parameter in click.get_current_context().command.params if parameter.name]
    refuse([name for name in names if name not in (*known, "limit", "full")], why, hint)


def refuse_without(needed: str, names: Sequence[str]) -> None:
    """Raises UsageError if the user gave one of `names` without `needed`."""
    if not is_given(needed):
        refuse(names, f"has no effect without {_option(needed)}", "")


def view_options(helps: Mapping[str, str]) -> Callable[[Command], Command]:
    """Return flags that exclude each other (`--kernels` for `kernels`), with their help; see `chosen_view`."""

    def decorate(command: Command) -> Command:
        for name, text in reversed(list(helps.items())):
            command = click.option(f"--{name}", is_flag=True, expose_value=False, callback=_collect, help=text)(command)
        return command

    return decorate


def chosen_view(*others: str) -> str | None:
    """Return the requested view, or None. Raises UsageError for two views, or for a view beside one of `others`:
    parameters that also choose what is printed."""
    views: list[str] = click.get_current_context().meta.get(_VIEWS, [])
    given = [f"--{name}" for name in views] + [_option(name) for name in others if is_given(name)]
    if len(given) > 1:
        raise UsageError(f"{' and '.join(given)} cannot be printed together", "Give only one of them.")
    return views[0] if views else None


def _collect(ctx: click.Context, parameter: click.Parameter, value: bool) -> None:
    if value:
        ctx.meta.setdefault(_VIEWS, []).append(str(parameter.name))


def _option(name: str) -> str:
    """Return the parameter as the user writes it on the command line."""
    context = click.get_current_context()
    parameter = next((each for each in context.command.params if each.name == name), None)
    if parameter is None:
        return f"--{name}"
    return max(parameter.opts, key=len) if isinstance(parameter, click.Option) else parameter.make_metavar(context)
