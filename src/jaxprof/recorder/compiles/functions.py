"""What was compiled: where a function is defined, and whether it is the same function object as before.

Functions are not kept alive: objects are distinguished by serial numbers, through weak references.
"""

from __future__ import annotations

import functools
import sys
import weakref
from collections import deque
from collections.abc import Iterable, Iterator
from types import CodeType, FunctionType, MethodType
from typing import Any

from jaxprof.recorder.frame_owner import JAX, LIBRARY, file_kind
from jaxprof.recorder.guest import raised_by_program

_WRAPPERS_FOLLOWED = 16


def _inner_function(function: Any) -> Any:
    """Return the function inside `function`, or None. Reads only attributes that run no user code."""
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
    wrapped = _wrapper_attribute(function, "__wrapped__")
    return wrapped if wrapped is not None else _class_attribute(type(function), "__call__")


def _wrapper_attribute(thing: Any, name: str) -> Any:
    """Return an attribute that `functools.update_wrapper` set, or that a library's class defines; else None."""
    try:
        own = object.__getattribute__(thing, "__dict__")
    except AttributeError:  # slots
        own = {}
    value = own.get(name) if type(own) is dict else None
    kind = type(thing)
    if value is None and _is_library(kind.__module__) and isinstance(_class_attribute(kind, name), property):
        try:
            value = getattr(thing, name)
        except Exception as error:  # a failing attribute of a library is the library's own business
            if raised_by_program(error):
                raise
            value = None
    return value


def _class_attribute(kind: type, name: str) -> Any:
    """Return an attribute as the class itself defines it. The metaclass, which may be the user's, is not asked."""
    return next((base.__dict__[name] for base in type.__dict__["__mro__"].__get__(kind) if name in base.__dict__), None)


@functools.lru_cache(maxsize=4096)
def _is_library(module: str) -> bool:
    """Whether a module is a library's, so that reading attributes of its objects runs none of the user's code."""
    file = getattr(sys.modules.get(module), "__file__", None)
    return isinstance(file, str) and file_kind(file) == LIBRARY


def is_called_through_its_type(function: Any) -> bool:
    """Whether the object is called through its class's method `__call__`, and wraps nothing."""
    inside = _inner_function(function)
    return inside is not None and inside is _class_attribute(type(function), "__call__")


def wrapper_chain(function: Any) -> list[Any]:
    """Return `function`, what it wraps, and so on to the innermost function."""
    chain = [function]
    while len(chain) < _WRAPPERS_FOLLOWED:
        inside = _inner_function(chain[-1])
        if inside is None or inside is chain[-1]:
            break
        chain.append(inside)
    return chain


def code_of(function: Any) -> CodeType | None:
    """Return the code of the innermost wrapped function; None if that is not written in Python."""
    return next(_codes(reversed(wrapper_chain(function))), None)


def outer_code(function: Any) -> CodeType | None:
    """Return the code of the outermost wrapper that has one: `grad` of a function is not the function."""
    return next(_codes(wrapper_chain(function)), None)


def _codes(chain: Iterable[Any]) -> Iterator[CodeType]:
    return (candidate.__code__ for candidate in chain if isinstance(candidate, FunctionType))


def name_matches(function: Any, name: str) -> bool:
    """Whether JAX would call the function `name`. A callable object has no name of its own."""
    chain = wrapper_chain(function)
    if not callable(chain[0]):
        return False
    for candidate in chain:
        if isinstance(candidate, functools.partial):
            continue
        own = _name_of(candidate)
        return own == name or (own is None and name.startswith("<unnamed"))
    return False


def _name_of(function: Any) -> str | None:
    if isinstance(function, (FunctionType, MethodType, type)):
        return function.__name__
    if type(function).__module__.startswith("jax"):
        return getattr(function, "__name__", None)
    name = _wrapper_attribute(function, "__name__")
    return name if isinstance(name, str) else None


def wraps(function: Any, name: str) -> bool:
    """Whether `function` is or contains a function called `name`, or an object of a class of that name."""
    if not callable(function) or isinstance(function, type):
        return False
    return any(name == (_name_of(candidate) or type(candidate).__name__) for candidate in wrapper_chain(function))


def function_in_closure(function: Any) -> Any:
    """Return the function outside JAX in the closure of one of JAX's own, such as `pmap` compiles; None without one."""
    looked_at = [item for item in wrapper_chain(function) if isinstance(item, FunctionType)]
    for candidate in looked_at[:_WRAPPERS_FOLLOWED]:
        contents: list[Any] = []
        for _, content in closure_of(candidate):
            contents.append(content)
            if type(content).__module__.startswith("jax."):  # JAX keeps the function in slots of its own objects there
                contents += [getattr(content, slot, None) for slot in getattr(type(content), "__slots__", ())]
        for content in contents:
            if isinstance(content, FunctionType) and content not in looked_at:
                if file_kind(content.__code__.co_filename) != JAX:
                    return content
                looked_at.append(content)
    return None


def closure_of(function: FunctionType) -> Iterator[tuple[str, Any]]:
    """Yield name and value of each variable in a function's closure that has a value."""
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=False):
        try:
            yield name, cell.cell_contents
        except ValueError:  # an empty cell
            continue


def primitive_parameters(function: Any) -> dict[str, Any] | None:
    """Return the parameters of a primitive that is called outside any jit; None for every other function.

    JAX compiles such a call as a function made for these parameters, which it keeps in the closure.
    """
    if not isinstance(function, FunctionType) or file_kind(function.__code__.co_filename) != JAX:
        return None
    for _, content in closure_of(function):
        if type(content) is dict and all(type(key) is str for key in content):
            return content
    return None


class _Reference(weakref.ref[Any]):
    """A weak reference that knows the address of its object."""

    __slots__ = ("address",)
    address: int


class Identities:
    """Serial numbers of objects, valid while each object lives."""

    def __init__(self) -> None:
        self._last = 0
        self._live: dict[int, tuple[_Reference, int]] = {}
        self._gone: deque[_Reference] = deque()
        """References to objects that have died. `append` adds them without running Python code of ours, in which an
        exception from a signal handler of the program would be lost."""

    def of(self, thing: Any) -> object:
        """Return the same number for the same object, and a new one for any other, even at a used address."""
        if isinstance(thing, MethodType):
            return self.of(thing.__self__), self.of(thing.__func__)
        while self._gone:
            gone = self._gone.popleft()
            dead = self._live.get(gone.address)
            if dead is not None and dead[0] is gone:
                del self._live[gone.address]
        address = id(thing)
        entry = self._live.get(address)
        if entry is not None and entry[0]() is thing:
            return entry[1]
        try:
            reference = _Reference(thing, self._gone.append)
        except TypeError:
            return "address", address
        reference.address = address
        self._last += 1
        self._live[address] = (reference, self._last)
        return self._last
