"""Options that several commands have, the values that they take, and which the user gave.

An option that would change what is compiled, started or written, and cannot, is refused. One whose help says when it
applies is ignored elsewhere.
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

from jaxprof.base.errors import UsageError
from jaxprof.cli.output import Command, combine_options


def complete_with(name: str) -> Callable[[click.Context, click.Parameter, str], Any]:
    def complete(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> Any:
        from jaxprof.cli import complete as completions

        return getattr(completions, f"complete_{name}")(incomplete)

    return complete


QUERY_PACKAGES = ("'duckdb>=2,<3' pyarrow", "duckdb", "pyarrow")
"""How pip names the packages of the extra `query`, then their modules: arguments of `require_packages`."""


class ListingGroup(click.Group):
    """A group whose first command, which lists, is meant where none is named: `jaxprof sessions --format json`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        is_named = bool(args) and (not args[0].startswith("-") or args[0] in ctx.help_option_names)
        if not is_named and not ctx.resilient_parsing:
            args = [next(iter(self.commands)), *args]
        return super().parse_args(ctx, args)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        next(iter(self.commands.values())).format_options(ctx, formatter)
        self.format_commands(ctx, formatter)


def _here(ctx: click.Context, parameter: click.Parameter, value: str | None) -> Path | None:
    """Return the path of a file or folder to write. Raises UsageError for a URL: as a path, `s3://bucket/x` would be in
    a folder `s3:`."""
    if value is not None and "://" in value:
        from jaxprof.remote import path_here

        path_here(value, "Name a file, and copy it there.")
    return Path(value) if value is not None else None


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


def share(value: str | float) -> float:
    """Return a margin, `2%` or `0.02`, above 0 and below 1. Raises BadParameter."""
    from jaxprof.base.config import share_of

    found = share_of(value)
    if found is None:
        raise click.BadParameter(f"{value!r} is not a share between 0 and 100 %, such as 2%")
    return found


arguments = partial(click.option, "--arg", "arguments", multiple=True, metavar="SPEC")
budget = partial(click.option, "--budget", "budget_seconds", type=positive_seconds, show_default=True, metavar="S")
device = partial(
    click.option,
    "--device",
    show_default=True,
    metavar="D",
    shell_complete=complete_with("device"),
    help="The device to run on, in place of the one that JAX uses.",
)
force = partial(click.option, "--force", is_flag=True, help="Replace the file of --out.")
keep_constants = partial(
    click.option, "--keep-constants", is_flag=True, help="Keep long literals in the recorded HLO (weights, secrets)."
)
launches = partial(click.option, "--launches", type=click.IntRange(1, 100), metavar="N")
max_seconds = partial(click.option, "--max-seconds", type=positive_seconds, metavar="S")
max_silence = partial(
    click.option,
    "--max-silence",
    "max_silence_seconds",
    type=positive_seconds,
    default=300.0,
    show_default=True,
    metavar="S",
    help="End a process that gives no sign of its run for S seconds.",
)
out = partial(
    click.option, "--out", "-o", type=click.Path(), callback=_here, metavar="FILE", help="Where to write the session."
)
preset = partial(
    click.option, "--preset", default="quick", show_default=True, metavar="P", help="Sizes: quick, or published."
)
python = partial(
    click.option,
    "--python",
    type=click.Path(path_type=Path),
    metavar="PATH",
    help="The interpreter whose jax compiles.",
)
run = partial(click.option, "--run", "run_id", metavar="ID")
settings = partial(
    click.option, "--set", "settings", multiple=True, metavar="NAME=VALUE", help="A parameter of a workload."
)
seed = partial(
    click.option,
    "--seed",
    type=click.IntRange(0, 2**32 - 1),
    default=0,
    show_default=True,
    metavar="N",
    help="Seed of the random inputs.",
)
variant = partial(click.option, "--variant", default="", metavar="NAME", help="The variant of a workload.")
yes = partial(click.option, "--yes", is_flag=True, help="Do not ask.")


def target(what: str) -> Callable[[Command], Command]:
    """Return `--for`, whose help is `what`, with `--mesh` and `--shard`: compiling for absent devices."""
    return combine_options(
        click.option(
            "--for",
            "for_devices",
            metavar="DEVICE[,DEVICE...]",
            default="",
            shell_complete=complete_with("target_device"),
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


_kept = partial(click.option, metavar="NAME", expose_value=False, callback=_keep_value)
profile = combine_options(
    _kept("--profile-run", default="", help="The recording in a log folder to open. Default: the newest."),
    _kept("--host", default="", help="The host to open, of a recording of several. Default: the first."),
)
"""Options that choose the recording and the host to open, in a folder that has several; see `profile_part`."""


def profile_part() -> tuple[str, str]:
    """Return the recording and the host that the current command chooses of a profile; both empty by default."""
    context = click.get_current_context(silent=True)
    meta = context.meta if context is not None else {}
    return meta.get("jaxprof.profile_run", ""), meta.get("jaxprof.host", "")


def measuring(when: str = "") -> Callable[[Command], Command]:
    """Return the options for how long the sides of a comparison are measured, and where the session goes. `when`: put
    before each help."""

    def say(text: str) -> str:
        return f"{when}{text}" if when else text[0].upper() + text[1:]

    return combine_options(
        launches(help=say("fresh processes of each side; by default until the ratio is known to ± 2 %, at most 10.")),
        budget(
            default=60.0,
            help=say("seconds of measuring in all, without --launches; half as much again for three launches."),
        ),
        max_seconds(help=say("hard cap of each process; by default --budget.")),
        max_silence(help=say("end a process that gives no sign of its run for S seconds.")),
        seed(help=say("seed of the random inputs.")),
        out(help=say("where to write the session.")),
        force(),
    )


def require_packages(command: str, install: str, *packages: str) -> None:
    """Raises UsageError if a package that the command needs is missing; `install`: what pip gets for all."""
    from importlib.util import find_spec

    missing = [name for name in packages if find_spec(name) is None]
    if missing:
        verb = "is" if len(missing) == 1 else "are"
        raise UsageError(
            f"`{command}` needs {' and '.join(missing)}, which {verb} not installed",
            f"{sys.executable} -m pip install {install}",
        )


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
    """Raises UsageError if the user gave one of these parameters: the option, then `why` it has no effect."""
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
        refuse(names, f"has no effect without {_option(needed)}", f"Add {_option(needed)}, or leave it out.")


VIEWS = {
    "kernels": "The measured kernels alone.",
    "compile": "Where the compile time went: XLA's phases and passes.",
    "steps": "Where the time of each step went.",
    "memory": "What the peak memory is made of, and the largest buffers.",
    "trust": "Whether the captures can be trusted.",
    "compiles": "For a program: each compilation, and why.",
    "findings": "For a program: what to change, and at which line.",
    "transfers": "For a program: implicit copies between host and device.",
    "timeline": "For a program: where its wall time went.",
}


class ViewFlag(click.Option):
    """A flag that chooses what is printed."""


def views(helps: Mapping[str, str]) -> Callable[[Command], Command]:
    """Return flags that exclude each other (`--kernels` for `kernels`), with their help; see `choose_view`."""
    flags = partial(click.option, cls=ViewFlag, is_flag=True, expose_value=False)
    return combine_options(*(flags(f"--{name}", help=text) for name, text in helps.items()))


def choose_view(*others: str) -> str | None:
    """Return the requested view, or None. Raises UsageError for two views, or for a view beside one of `others`:
    parameters that also choose what is printed."""
    flags = [each for each in click.get_current_context().command.params if isinstance(each, ViewFlag)]
    views = [str(flag.name) for flag in flags if is_given(str(flag.name))]
    given = [_option(name) for name in (*views, *others) if is_given(name)]
    if len(given) > 1:
        raise UsageError(f"{' and '.join(given)} cannot be printed together", "Give only one of them.")
    return views[0] if views else None


def _option(name: str) -> str:
    context = click.get_current_context()
    parameter = next((each for each in context.command.params if each.name == name), None)
    if parameter is None:
        return f"--{name}"
    return max(parameter.opts, key=len) if isinstance(parameter, click.Option) else parameter.make_metavar(context)
