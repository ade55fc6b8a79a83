"""What was compiled: where a function is defined, and whether it is the same function object as before.

No function is kept alive: objects are told apart by serial numbers behind weak references.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Iterator
from types import CodeType, FunctionType, MethodType
from typing import Any

from jaxprof.program.places import JAX, file_kind

_WRAPPERS_FOLLOWED = 16


def _inside(function: Any) -> Any:
    """What `function` wraps, or None. Only types whose attributes run no code of the user are asked."""
    if isinstance(function, FunctionType):
        return function.__dict__.get("__wrapped__")
    if isinstance(function, MethodType):
        return function.__func__
    if isinstance(function, functools.partial):
        return function.func
    if isinstance(function, type):
        return None
    if type(function).__module__.startswith("jax"):
        return getattr(function, "__wrapped__", None)
    return getattr(type(function), "__call__", None)  # noqa: B004 its code is wanted


def unwrapped(function: Any) -> list[Any]:
    """`function`, what it wraps, and so on to the innermost."""
    chain = [function]
    while len(chain) < _WRAPPERS_FOLLOWED:
        inside = _inside(chain[-1])
        if inside is None or inside is chain[-1]:
            break
        chain.append(inside)
    return chain


def code_of(function: Any) -> CodeType | None:
    """The code of the innermost wrapped function; None for what is not written in Python."""
    for candidate in reversed(unwrapped(function)):
        if isinstance(candidate, FunctionType):
            return candidate.__code__
    return None


def outer_code(function: Any) -> CodeType | None:
    """The code of the outermost wrapper that has one: `grad` of a function is not the function."""
    for candidate in unwrapped(function):
        if isinstance(candidate, FunctionType):
            return candidate.__code__
    return None


def name_matches(function: Any, name: str) -> bool:
    """Whether JAX would call it `name`. A callable object has no name of its own."""
    chain = unwrapped(function)
    if not callable(chain[0]):
        return False
    for candidate in chain:
        if isinstance(candidate, functools.partial):
            continue
        own = candidate.__name__ if isinstance(candidate, (FunctionType, MethodType, type)) else None
        if own is None and type(candidate).__module__.startswith("jax"):
            own = getattr(candidate, "__name__", None)
        return own == name or (own is None and name.startswith("<unnamed"))
    return False


def held_function(function: Any) -> Any:
    """The function of somebody else that one of JAX's own holds in its closure, or None: what `pmap` compiles does."""
    looked_at = [item for item in unwrapped(function) if isinstance(item, FunctionType)]
    for candidate in looked_at[:_WRAPPERS_FOLLOWED]:
        for content in _held(candidate):
            if isinstance(content, FunctionType) and content not in looked_at:
                if file_kind(content.__code__.co_filename) != JAX:
                    return content
                looked_at.append(content)
    return None


def _held(function: Any) -> Iterator[Any]:
    """What is in the closure of a function, and in the slots of JAX's own objects there."""
    for cell in function.__closure__ or ():
        if _filled(cell):
            content = cell.cell_contents
            yield content
            if type(content).__module__.startswith("jax."):
                for slot in getattr(type(content), "__slots__", ()):
                    yield getattr(content, slot, None)


def _filled(cell: Any) -> bool:
    try:
        cell.cell_contents  # noqa: B018 reading is the only way to know
    except ValueError:
        return False
    return True


def primitive_parameters(function: Any) -> dict[str, Any] | None:
    """The parameters of a primitive that is called outside any jit; None for every other function.

    JAX compiles such a call as a function of its own, made for these parameters, which it keeps in the closure.
    """
    if not isinstance(function, FunctionType) or file_kind(function.__code__.co_filename) != JAX:
        return None
    for cell in function.__closure__ or ():
        content = cell.cell_contents if _filled(cell) else None
        if type(content) is dict and all(type(key) is str for key in content):
            return content
    return None


class Identities:
    """Serial numbers of objects, valid for as long as each lives."""

    def __init__(self) -> None:
        self._last = 0
        self._live: dict[int, tuple[weakref.ref[Any], int]] = {}

    def of(self, thing: Any) -> object:
        """The same value for the same object, another one for every other object, also at the same address later."""
        if isinstance(thing, MethodType):
            return self.of(thing.__self__), self.of(thing.__func__)
        address = id(thing)
        known = self._live.get(address)
        if known is not None and known[0]() is thing:
            return known[1]
        try:
            reference = weakref.ref(thing, lambda gone: self._forget(address, gone))
        except TypeError:
            return "address", address
        self._last += 1
        self._live[address] = (reference, self._last)
        return self._last

    def _forget(self, address: int, gone: weakref.ref[Any]) -> None:
        known = self._live.get(address)
        if known is not None and known[0] is gone:
            del self._live[address]
