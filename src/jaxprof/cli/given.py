"""Which options the user gave explicitly, and the times among them. An option that would have no effect is refused,
never ignored."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click
from click.core import ParameterSource

from jaxprof.errors import UsageError

Command = TypeVar("Command", bound=Callable[..., Any])

_VIEWS = "jaxprof.views"
_VIEW = "view_"
"""In front of the name of a view, as the name of its parameter."""


_SCALES = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "": 1.0}


def seconds_of(ctx: click.Context, parameter: click.Parameter, value: str | None) -> float | None:
    """The callback of an option that takes a time as people write it, `1.5ms`, `20 us`, `3s`, `0.25`: its seconds."""
    if value is None:
        return None
    found = re.fullmatch(r"\s*(\d+\.?\d*|\.\d+)\s*([nuµm]?s)?\s*", value)
    if found is None:
        raise click.BadParameter(f"{value!r} is not a time, such as 1.5ms or 2s", ctx, parameter)
    return float(found[1]) * _SCALES[found[2] or ""]


def local_source(ctx: click.Context, parameter: click.Parameter, value: Any) -> Any:
    """The callback of an argument that names something to read: its words, each URL replaced by the path of its copy,
    which is fetched here. Raises UsageError or FileRefusedError for a URL that cannot be fetched."""
    words = (value,) if isinstance(value, str) else value or ()
    if ctx.resilient_parsing or not any("://" in word for word in words):  # for completion, or paths and names alone
        return value
    from jaxprof.cli.source import local_words

    local = tuple(map(local_words, words))
    return local[0] if isinstance(value, str) else local


def local_path(ctx: click.Context, parameter: click.Parameter, value: str) -> Path:
    """As `local_source`, as a path."""
    return Path(local_source(ctx, parameter, value))


def is_given(name: str) -> bool:
    """Whether the user gave the parameter of that name, on the command line or in the environment. Outside a command,
    nothing is given."""
    context = click.get_current_context(silent=True)
    source = context.get_parameter_source(name) if context is not None else None
    return source not in (None, ParameterSource.DEFAULT, ParameterSource.DEFAULT_MAP)


def refuse(names: Sequence[str], why: str, hint: str) -> None:
    """Raises UsageError if the user gave one of these parameters. Its message is the option, then `why` it has no
    effect here."""
    given = [name for name in names if is_given(name)]
    if given:
        options = ", ".join(dict.fromkeys(_option(name) for name in given))
        raise UsageError(f"{options} {why}", hint)


def refuse_without(needed: str, names: Sequence[str], hint: str = "") -> None:
    """Raises UsageError if the user gave one of `names` without `needed`."""
    if not is_given(needed):
        refuse(names, f"has no effect without {_option(needed)}", hint)


def view_options(helps: Mapping[str, str]) -> Callable[[Command], Command]:
    """Flags that exclude each other (`--kernels` for `kernels`), with their help; see `chosen_view`."""

    def decorate(command: Command) -> Command:
        for name, text in reversed(list(helps.items())):
            parameter = f"{_VIEW}{name}"  # `--hosts` is a view beside `--host`, whose values are `hosts`
            option = click.option(
                f"--{name}", parameter, is_flag=True, expose_value=False, callback=_collect, help=text
            )
            command = option(command)
        return command

    return decorate


def chosen_view(*others: str) -> str | None:
    """The requested view, or None. Raises UsageError for two views, or for a view beside one of `others`: parameters
    that also choose what is printed."""
    views: list[str] = click.get_current_context().meta.get(_VIEWS, [])
    given = [f"--{name}" for name in views] + [_option(name) for name in others if is_given(name)]
    if len(given) > 1:
        raise UsageError(f"{' and '.join(given)} cannot be printed together", "Give only one of them.")
    return views[0] if views else None


def _collect(ctx: click.Context, parameter: click.Parameter, value: bool) -> None:
    if value:
        ctx.meta.setdefault(_VIEWS, []).append(str(parameter.name).removeprefix(_VIEW))


def _option(name: str) -> str:
    """The parameter as the user writes it on the command line."""
    for parameter in click.get_current_context().command.params:
        if parameter.name == name:
            return (
                parameter.opts[-1]
                if isinstance(parameter, click.Option)
                else parameter.make_metavar(click.get_current_context())
            )
    return f"--{name}"
