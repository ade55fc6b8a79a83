"""Compiles a function whose arguments or results hold more than arrays: the activation function of a model, a name.

`jax.jit` takes arrays and numbers only. A model of equinox is a tree with functions among its leaves, and so are the
functions that take one or return one. As in `equinox.filter_jit`, such leaves are static.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax

_Static = tuple[Any, tuple[tuple[int, Any], ...]]
"""The structure of a tree, and the numbers of its static leaves with these leaves."""


NUMBERS = (bool, int, float, complex)


def is_array(leaf: Any) -> bool:
    """Return whether a leaf has a shape and a dtype: a NumPy or JAX array, or only its shape."""
    return hasattr(leaf, "shape") and hasattr(leaf, "dtype")


def is_static(leaf: Any) -> bool:
    """Return whether `jax.jit` refuses a leaf of an argument."""
    return not isinstance(leaf, NUMBERS) and not is_array(leaf)


class ArraysJitted:
    """A function under `jax.jit`, called, traced and lowered with arguments that hold static leaves as well."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.__wrapped__ = function
        self.__name__ = str(getattr(function, "__name__", type(function).__name__))
        self._results: dict[_Static, _Static] = {}
        """What is static of the results, by what is static of the arguments: known once these were traced."""

        def call(static: _Static, arrays: list[Any]) -> list[Any]:
            self._results[static], arrays = _split(function(*_merge(static, arrays)))
            return arrays

        call.__name__ = self.__name__  # which the program has
        self._jitted = jax.jit(call, static_argnums=0)

    def __call__(self, *arguments: Any) -> Any:
        static, arrays = _split(arguments)
        results = self._jitted(static, arrays)
        return _merge(self._results[static], results)

    def trace(self, *arguments: Any) -> Any:
        return self._jitted.trace(*_split(arguments))

    def lower(self, *arguments: Any) -> Any:
        return self.trace(*arguments).lower()

    def eval_shape(self, *arguments: Any) -> Any:
        static, arrays = _split(arguments)
        results = jax.eval_shape(partial(self._jitted, static), arrays)
        return _merge(self._results[static], results)


def _split(tree: Any) -> tuple[_Static, list[Any]]:
    leaves, structure = jax.tree.flatten(tree)
    static = tuple((number, leaf) for number, leaf in enumerate(leaves) if is_static(leaf))
    return (structure, static), [leaf for leaf in leaves if not is_static(leaf)]


def _merge(static: _Static, arrays: list[Any]) -> Any:
    structure, leaves = static
    merged = list(arrays)
    for number, leaf in leaves:  # in order, so that each finds those before it
        merged.insert(number, leaf)
    return jax.tree.unflatten(structure, merged)


def as_jitted(function: Callable[..., Any], arguments: tuple[Any, ...] = ()) -> Any:
    """Return `function` itself if it is compiled already, with its static and donated arguments: by `jax.jit`, flax's
    `nnx.jit` or equinox's `filter_jit`. Else return its `jit`, in which leaves of `arguments` that are no arrays are
    static."""
    if hasattr(function, "lower"):
        return function
    return ArraysJitted(function) if any(map(is_static, jax.tree.leaves(arguments))) else jax.jit(function)
