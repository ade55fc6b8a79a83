"""Inspect a callable (a function, a compiled one, a partial, an object), and call it with arguments by name.

Uses public attributes only: `__wrapped__` of a jit or a decorator, `func` of a partial.

The arrays of a result are named by their path, `[0]['w']`: nested tuples, lists and dicts are walked here, all other
trees by JAX.
"""

from __future__ import annotations

import functools
import inspect
import sys
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from jaxprof.base.errors import UsageError
from jaxprof.events import Scalar

_MOST_LAYERS = 100


def layers(function: object) -> Iterator[object]:
    """Yield `function`, then what it wraps, down to the function as written."""
    layer: object = function
    for _ in range(
        _MOST_LAYERS
    ):  # some objects have every attribute, and wrap one more for ever (`unittest.mock.call`)
        if layer is None:
            return
        yield layer
        layer = getattr(layer, "func" if _is_partial(layer) else "__wrapped__", None)


def _is_partial(function: object) -> bool:
    """Return whether this is a partial: Python's, or equinox's, which a method of its modules is under `filter_jit`."""
    return all(hasattr(function, name) for name in ("func", "args", "keywords"))


def function_as_written(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the Python function as written, under jits, partials and decorators; for an object its `__call__`."""
    *_, innermost = layers(function)
    written: Callable[..., Any] = innermost if inspect.isroutine(innermost) else type(innermost).__call__
    return written


@functools.cache
def source_of(function: Callable[..., Any]) -> str:
    """Return a function's source, dedented, without `@workload(...)`; empty if unreadable. Takes a millisecond."""
    try:
        source = textwrap.dedent(inspect.getsource(function))
    except (OSError, TypeError):
        return ""
    if not source.startswith("@"):
        return source
    import ast

    try:
        (statement,) = ast.parse(source).body
    except (SyntaxError, ValueError):
        return source
    lines = source.splitlines(keepends=True)
    for decorator in reversed(getattr(statement, "decorator_list", [])):
        called = decorator.func if isinstance(decorator, ast.Call) else decorator
        if ast.unparse(called).rpartition(".")[2] == "workload":
            del lines[decorator.lineno - 1 : decorator.end_lineno]
    return "".join(lines)


def op_by_op(function: Any) -> Callable[..., Any]:
    """Return `function` without a jit around it, nor around what a partial or a method calls, be they Python's or
    equinox's; jits further inside stay."""
    if hasattr(function, "lower") and hasattr(function, "__wrapped__") and not inspect.ismethod(function):
        wrapped: Callable[..., Any] = function.__wrapped__
        return wrapped
    bound: functools.partial[Any]
    if _is_partial(function):
        bound = functools.partial(function.func, *function.args, **function.keywords)
    elif hasattr(function, "__func__"):
        bound = functools.partial(function.__func__, function.__self__)
    else:
        called: Callable[..., Any] = function
        return called
    return functools.partial(op_by_op(bound.func), *bound.args, **bound.keywords)


def callable_for_jit(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a compiled method, or an object without a hash (a model of equinox), as a partial; others as they are.

    A method lends the attributes of its function, of which `lower` and `__wrapped__` lack the object. `jax.jit` takes
    nothing that has no hash.
    """
    if inspect.ismethod(function) and hasattr(function.__func__, "__wrapped__"):
        return functools.partial(function.__func__, function.__self__)
    try:
        hash(function)
    except TypeError:
        return functools.partial(function)
    return function


def bind(
    function: Callable[..., Any], parameters: Mapping[str, Scalar], settable: Sequence[str] = ()
) -> Callable[..., Any]:
    """Return `function` with the values of those arguments that are parameters: keyword-only or `settable` ones."""
    given = {key: parameters[key] for key in (*keyword_only(function), *settable) if key in parameters}
    return functools.partial(function, **given) if given else function


def signature_of(function: Callable[..., Any]) -> inspect.Signature | None:
    try:
        return inspect.signature(function)
    except (TypeError, ValueError):
        return None


def arguments_by_name(function: Callable[..., Any]) -> dict[str, Any]:
    """Return names and defaults (or `inspect.Parameter.empty`) of the arguments that can be given by name."""
    signature = signature_of(function)
    by_name = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    parameters = signature.parameters.values() if signature is not None else ()
    return {parameter.name: parameter.default for parameter in parameters if parameter.kind in by_name}


def call_by_name(function: Callable[..., Any], known: Mapping[str, Any], what: str) -> Any:
    """Call `function` with those of `known` that it names. Raises UsageError with `what` if it needs others."""
    wanted = arguments_by_name(function)
    missing = [key for key, default in wanted.items() if key not in known and default is inspect.Parameter.empty]
    if missing:
        random = ", and `random` for a seeded NumPy generator" if "random" in known else ""
        raise UsageError(
            f"{what} wants {', '.join(missing)}", f"It may name parameters{random}; give anything else a default."
        )
    return function(**{key: known[key] for key in wanted if key in known})


def keyword_only(function: Callable[..., Any]) -> list[str]:
    signature = signature_of(function)
    parameters = signature.parameters.values() if signature is not None else ()
    return [parameter.name for parameter in parameters if parameter.kind is inspect.Parameter.KEYWORD_ONLY]


def in_order(
    function: Callable[..., Any], positional: tuple[Any, ...], by_name: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the arguments of a call, by position wherever the signature allows it, and the rest by name.

    They stay unchanged if the function has no signature, or cannot be called with them.
    """
    signature = signature_of(function)
    if not by_name or signature is None:
        return positional, by_name
    try:
        bound_call = signature.bind(*positional, **by_name)
    except TypeError:
        return positional, by_name
    return bound_call.args, bound_call.kwargs


def last_by_name(function: Callable[..., Any], names: tuple[str, ...]) -> Callable[..., Any]:
    """Return `function`, called with its last positional arguments under these names; itself if there are none.

    The result is a `jax.stages.Wrapped` if `function` is one: compiled with the same settings and static arguments.
    """
    if not names:
        return function

    def by_name(called: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function_as_written(function))
        def call(*arguments: Any, **parameters: Any) -> Any:
            at = len(arguments) - len(names)
            return called(*arguments[:at], **dict(zip(names, arguments[at:], strict=True)), **parameters)

        return call

    made: Any = by_name(function)
    if hasattr(function, "trace") and hasattr(function, "lower"):
        made.trace, made.lower = by_name(function.trace), by_name(function.lower)
        inside = getattr(function, "__wrapped__", None)
        made.__wrapped__ = last_by_name(inside, names) if inside is not None else function
    result: Callable[..., Any] = made
    return result


def leaves(tree: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield path and value of each leaf of `tree` in a fixed order: dicts by key, as in JAX; None is not a leaf.

    A function or a tree's structure inside a tree is static, and no leaf. Raises TypeError for anything else that is
    not an array, a number or a tree of them.
    """
    if isinstance(tree, Mapping):
        for key in sorted(tree):
            yield from leaves(tree[key], f"{path}[{key!r}]")
    elif isinstance(tree, (tuple, list)):
        for index, branch in enumerate(tree):
            yield from leaves(branch, f"{path}[{index}]")
    elif tree is None:
        return
    elif hasattr(tree, "dtype") or isinstance(tree, (bool, int, float, complex)) or "jax" not in sys.modules:
        yield path, tree
    else:
        util = sys.modules["jax"].tree_util
        branches = util.tree_flatten_with_path(tree)[0]
        if len(branches) == 1 and branches[0][1] is tree:
            if path and (callable(tree) or isinstance(tree, util.PyTreeDef)):
                return
            raise TypeError(f"a result holds {type(tree).__name__}, which is neither an array nor a tree of arrays")
        for keys, branch in branches:
            yield from leaves(branch, path + util.keystr(keys))


def is_key(leaf: Any) -> bool:
    """Return whether `leaf` is an array of typed JAX keys, which NumPy cannot hold."""
    return str(getattr(leaf, "dtype", "")).startswith("key<")
