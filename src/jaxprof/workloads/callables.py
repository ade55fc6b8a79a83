"""What can be said of a callable without calling it: a function, a compiled one, a partial, an object.

Public attributes only: `__wrapped__` for what a jit or a decorator is around, `func` for a partial.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jaxprof.workloads.model import Parameters


def layers(function: object) -> Iterator[object]:
    """`function`, then what it wraps, down to the function that somebody wrote."""
    seen: set[int] = set()
    layer: object = function
    while layer is not None and id(layer) not in seen:
        seen.add(id(layer))
        yield layer
        layer = layer.func if isinstance(layer, functools.partial) else getattr(layer, "__wrapped__", None)


def written_function(function: Callable[..., Any]) -> Callable[..., Any]:
    """The Python function that somebody wrote, under jits, partials and decorators; for an object its `__call__`."""
    *_, innermost = layers(function)
    written: Callable[..., Any] = innermost if inspect.isroutine(innermost) else type(innermost).__call__
    return written


def op_by_op(function: Callable[..., Any]) -> Callable[..., Any]:
    """`function` without a jit around it; jits further inside stay."""
    if isinstance(function, functools.partial):
        return functools.partial(op_by_op(function.func), *function.args, **function.keywords)
    if hasattr(function, "lower") and hasattr(function, "__wrapped__"):
        wrapped: Callable[..., Any] = function.__wrapped__
        return wrapped
    return function


def bound(function: Callable[..., Any], parameters: Parameters) -> Callable[..., Any]:
    """`function` with those of its keyword-only arguments that are parameters given their values."""
    given = {key: parameters[key] for key in keyword_only(function) if key in parameters}
    return functools.partial(function, **given) if given else function


def signature_of(function: Callable[..., Any]) -> inspect.Signature | None:
    try:
        return inspect.signature(function)
    except (TypeError, ValueError):
        return None


def arguments_by_name(function: Callable[..., Any]) -> dict[str, Any]:
    """Names and defaults (or `inspect.Parameter.empty`) of the arguments that can be given by name."""
    signature = signature_of(function)
    by_name = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    parameters = signature.parameters.values() if signature is not None else ()
    return {parameter.name: parameter.default for parameter in parameters if parameter.kind in by_name}


def keyword_only(function: Callable[..., Any]) -> list[str]:
    signature = signature_of(function)
    parameters = signature.parameters.values() if signature is not None else ()
    return [parameter.name for parameter in parameters if parameter.kind is inspect.Parameter.KEYWORD_ONLY]


def in_order(
    function: Callable[..., Any], positional: tuple[Any, ...], by_name: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments of a call with those that have a place in it at their place, so that few are left by name.

    They stay as they are where the function does not tell its arguments, or cannot be called with these.
    """
    signature = signature_of(function)
    if not by_name or signature is None:
        return positional, by_name
    try:
        found = signature.bind(*positional, **by_name)
    except TypeError:
        return positional, by_name
    return found.args, found.kwargs


def last_by_name(function: Callable[..., Any], names: tuple[str, ...]) -> Callable[..., Any]:
    """`function`, its last positional arguments given on by these names; itself where there are none."""
    if not names:
        return function

    @functools.wraps(written_function(function))
    def named(*arguments: Any) -> Any:
        at = len(arguments) - len(names)
        return function(*arguments[:at], **dict(zip(names, arguments[at:], strict=True)))

    return named
