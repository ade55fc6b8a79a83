"""What a run tries on a program, in our own process only: settings of JAX that the program cannot change back, and
public functions of JAX that do something else where the program calls them for one line.

Functions are replaced before the user's file is imported, because `from jax import vmap` keeps what it finds. A
replaced function looks at the frames of its caller, and leaves every call alone that has nothing to do with the line.
Only public names are replaced: what JAX calls inside stays as it is. A change that reached nothing is refused, because
its figures would be those of the unchanged program.
"""

from __future__ import annotations

import inspect
import os
import sys
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import ContextDecorator, ExitStack, nullcontext
from functools import cache, wraps
from types import FrameType
from typing import Any

import jax
import jax.numpy as jnp

from jaxprof.base.errors import JaxprofError
from jaxprof.base.files import is_own
from jaxprof.engine.measure.jax_settings import override
from jaxprof.engine.measure.static_leaves import as_jitted
from jaxprof.events import SourceLocation, TrialReached

_SETTINGS: Mapping[str, Mapping[str, Any]] = {
    "rbg": {"jax_default_prng_impl": "rbg"},
    "unpartitioned": {"jax_threefry_partitionable": False},
    "float32": {"jax_enable_x64": False},
    "default_precision": {"jax_default_matmul_precision": None},
}
"""Settings of JAX that a trial holds, whatever the program sets."""
_FLAGS = ("no_folding", "less_llvm", "no_autotuning")
"""Trials whose change is in `XLA_FLAGS`, which the client has set."""
_CONTEXTS = {
    "float32": ((jax, "enable_x64"), (jax.experimental, "enable_x64")),
    "default_precision": ((jax, "default_matmul_precision"),),
}
"""Functions whose contexts would change such a setting."""
_PRODUCTS = (
    *((jnp, name) for name in ("dot", "matmul", "einsum", "tensordot", "inner", "vdot")),
    *((jax.lax, name) for name in ("dot", "dot_general", "conv", "conv_general_dilated")),
)
"""Functions that take a `precision`."""
_real_path: Callable[[str], str] = cache(os.path.realpath)
_FIXED = object()
"""Axis of an argument that `vmap` does not map."""


class _Unchanged(nullcontext[None], ContextDecorator):
    """A context, also as a decorator, that changes nothing."""


class ProgramChange:
    """One change, in effect until `undo`."""

    def __init__(self, name: str, line: SourceLocation) -> None:
        """`line`: the one that the change is about; without a file, every call is changed. Raises JaxprofError for a
        name that is no trial."""
        self.name, self._line = name, line
        self._reached: dict[SourceLocation, None] = {}
        self._is_inside = False
        """Whether a function is traced that already runs in `lax.map`: what is mapped inside it stays mapped."""
        self._changes = ExitStack()
        held = _SETTINGS.get(name, {})
        for setting, value in held.items():
            self._changes.enter_context(override(setting, value))
        if held:
            update: Callable[[str, Any], Any] = jax.config.update
            self._replace(jax.config, "update", lambda name, new: None if name in held else update(name, new))
            for owner, function in _CONTEXTS.get(name, ()):
                self._replace(owner, function, lambda *_, **__: _Unchanged())
        if name == "default_precision":
            for owner, function in _PRODUCTS:
                self._replace(owner, function, self._with_argument(getattr(owner, function), "precision", None))
        elif name == "unroll":
            for function in ("scan", "fori_loop"):
                self._replace(jax.lax, function, self._with_argument(getattr(jax.lax, function), "unroll", 4))
        elif name == "map":
            self._replace(jax, "vmap", self._mapping(jax.vmap))
        elif name == "checkpoint":
            self._replace(jax.lax, "scan", self._checkpointing(jax.lax.scan))
        elif name not in ("donate", *_FLAGS, *_SETTINGS):
            raise JaxprofError(f"there is no trial {self.name!r}", "The client and the engine have different versions.")

    def undo(self) -> None:
        """Put back what was replaced."""
        self._changes.close()

    def _replace(self, owner: Any, name: str, function: Callable[..., Any]) -> None:
        if hasattr(owner, name):  # not every version of JAX has each of them
            self._changes.callback(setattr, owner, name, getattr(owner, name))
            setattr(owner, name, function)

    def _is_line(self, frame: FrameType | None) -> bool:
        if frame is None or frame.f_lineno != self._line.line:
            return False
        return _real_path(frame.f_code.co_filename) == _real_path(self._line.file)

    def _is_for_line(self, frame: FrameType | None) -> bool:
        """Return whether the line is among the callers of a call from `frame`, which all calls are without a line."""
        while self._line and frame is not None and not self._is_line(frame):
            frame = frame.f_back
        return not self._line or frame is not None

    def _with_argument(self, original: Callable[..., Any], name: str, value: Any) -> Callable[..., Any]:
        """Return `original` with another value of one argument, unless a call for the line has set that itself to
        something like it."""
        signature = inspect.signature(original)

        @wraps(original)
        def with_value(*args: Any, **kwargs: Any) -> Any:
            given = signature.bind(*args, **kwargs)
            former = given.arguments.get(name)
            is_plain = former is None or former is False or (former == 1 and former is not True)
            frame = inspect.currentframe()
            if (is_plain if value is not None else former is not None) and self._is_for_line(frame):
                self._reached[self._own_location(frame)] = None
                given.arguments[name] = value
            return original(*given.args, **given.kwargs)

        return with_value

    def _checkpointing(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """Return `jax.lax.scan` with `jax.checkpoint` around its body."""

        @wraps(original)
        def scan(f: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
            self._reached[self._own_location(inspect.currentframe())] = None
            return original(jax.checkpoint(f, prevent_cse=False), *args, **kwargs)

        return scan

    def _mapping(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """Return `jax.vmap` that makes a `lax.map` where it is called for the line, or where what it maps calls the
        line. The outermost of several is changed, and none that names its axis, which collectives may use."""
        signature = inspect.signature(original)

        @wraps(original)
        def vmap(*args: Any, **kwargs: Any) -> Any:
            batched = original(*args, **kwargs)
            given = signature.bind(*args, **kwargs)
            given.apply_defaults()
            if any(given.arguments.get(name) is not None for name in ("axis_name", "spmd_axis_name", "axis_size")):
                return batched
            frame = inspect.currentframe()
            here, is_reached = self._own_location(frame), self._is_for_line(frame)

            @wraps(batched)
            def one_after_other(*args: Any, **kwargs: Any) -> Any:
                nonlocal is_reached
                if self._is_inside or not (is_reached or self._calls_line(lambda: batched(*args, **kwargs))):
                    return batched(*args, **kwargs)
                is_reached = True  # JAX keeps what it has traced: the line may not be called again
                self._reached[here] = None
                self._is_inside = True
                try:
                    found = given.arguments
                    return one_by_one(found["fun"], found["in_axes"], found["out_axes"], args, kwargs)
                finally:
                    self._is_inside = False

            return one_after_other

        return vmap

    def _calls_line(self, call: Callable[[], Any]) -> bool:
        """Trace `call`, and return whether the line calls something meanwhile."""
        calls = False

        def watch(frame: FrameType, event: str, _: Any) -> None:
            nonlocal calls
            calls = calls or self._is_line(frame if event.startswith("c_") else frame.f_back)

        former = sys.getprofile()
        sys.setprofile(watch)
        try:
            jax.eval_shape(call)
        finally:
            sys.setprofile(former)
        return calls

    def _own_location(self, frame: FrameType | None) -> SourceLocation:
        """Return the innermost line of the user's among the callers; without one, the innermost."""
        first = frame = frame.f_back if frame is not None else None
        while frame is not None and not is_own(frame.f_code.co_filename):
            frame = frame.f_back
        found = frame or first
        assert found is not None
        return SourceLocation(found.f_code.co_filename, found.f_lineno, found.f_code.co_name)

    def donating(self, function: Any, arguments: tuple[Any, ...]) -> Any:
        """Return the function; if donation is tried, under `jit`, with each argument donated whose arrays all find a
        result of their shape and dtype. Raises JaxprofError if there is no such argument."""
        if self.name != "donate":
            return function
        donated = donatable(function, arguments)
        if not donated:
            raise JaxprofError(
                "no argument has the shapes and dtypes of results", "Only such an argument can be donated."
            )
        return jax.jit(function, donate_argnums=donated)

    def report_reach(self) -> TrialReached:
        """Return where the change has reached the program. Raises JaxprofError if it has reached nothing."""
        called = {"map": "jax.vmap", "unroll": "jax.lax.scan or fori_loop"}.get(self.name)
        if called and not self._reached:
            about = f" that leads to {self._line.text}" if self._line else ""
            raise JaxprofError(f"no call of {called}{about} can be changed", "")
        return TrialReached(lines=list(self._reached))


def donatable(function: Any, arguments: tuple[Any, ...]) -> list[int]:
    """Return the numbers of the arguments whose arrays all find a result of their shape and dtype."""
    free = Counter(_alike(as_jitted(function, arguments).eval_shape(*arguments)))
    donated: list[int] = []
    for number, argument in enumerate(arguments):
        needed = Counter(_alike(argument))
        if needed and needed <= free:
            donated.append(number)
            free -= needed
    return donated


def _alike(tree: Any) -> list[tuple[Any, ...]]:
    return [(leaf.shape, str(leaf.dtype)) for leaf in jax.tree.leaves(tree) if hasattr(leaf, "dtype")]


def one_by_one(
    function: Callable[..., Any], in_axes: Any, out_axes: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> Any:
    """Return what `vmap(function, in_axes, out_axes)` returns, computed one element after the other by `lax.map`."""

    def axis_of_each(axes: Any, tree: Any) -> Any:
        whole = tuple(axes) if isinstance(axes, list) else axes

        def spread(axis: Any, part: Any) -> Any:
            return jax.tree.map(lambda _: _FIXED if axis is None else axis, part)

        return jax.tree.map(spread, whole, tree, is_leaf=lambda axis: axis is None)

    axes = axis_of_each(in_axes, args), axis_of_each(0, dict(kwargs))
    leaves, structure = jax.tree.flatten((args, dict(kwargs)))
    each = list(zip(leaves, jax.tree.leaves(axes), strict=True))
    moved = [leaf if axis == 0 else jnp.moveaxis(leaf, axis, 0) for leaf, axis in each if axis is not _FIXED]

    def of_one(slices: list[Any]) -> Any:
        rest = iter(slices)
        whole = [leaf if axis is _FIXED else next(rest) for leaf, axis in each]
        own_args, own_kwargs = jax.tree.unflatten(structure, whole)
        return function(*own_args, **own_kwargs)

    def result(leaf: Any, axis: Any) -> Any:
        if axis is _FIXED:  # all slices have the same
            return leaf[0]
        return leaf if axis == 0 else jnp.moveaxis(leaf, 0, axis)

    results = jax.lax.map(of_one, moved)
    return jax.tree.map(result, results, axis_of_each(out_axes, results))


_active: list[ProgramChange] = []
"""The trial of this process, which measures one run."""


def begin(name: str, line: SourceLocation) -> None:
    """Try a change in this process from now on. Raises JaxprofError for an unknown one."""
    _active.append(ProgramChange(name, line))


def active() -> ProgramChange | None:
    """Return the trial of this process; None if it tries nothing."""
    return _active[-1] if _active else None
