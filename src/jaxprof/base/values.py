"""`@frozen` makes a value: a dataclass that cannot be changed, with slots. What crosses a border is one of these.

The standard library writes and compiles the methods of each class as source, which takes a millisecond a class, and a
command, or a program that is recorded, would wait for hundreds of them. Here all classes share theirs, except
`__init__`: the first object of a class has it compiled, in 0.1 ms. The classes are those of the standard library in all
else (`fields`, `replace`, `asdict`). Code that makes a million small values does so in `not_collecting`.
"""

from __future__ import annotations

import dataclasses
import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import MISSING, FrozenInstanceError
from dataclasses import field as field
from operator import attrgetter
from typing import Any, NoReturn, TypeVar, dataclass_transform, overload

Class = TypeVar("Class", bound=type[Any])
_keys: dict[type, Callable[[Any], tuple[Any, ...]]] = {}
"""Class → function that returns the values by which its objects are compared."""


@dataclass_transform(field_specifiers=(field,))
def dataclass(*, slots: bool, frozen: bool = False, kw_only: bool = False, eq: bool = True) -> Callable[[Class], Class]:
    """Make a class like `dataclasses.dataclass`, but with methods that all the classes share."""
    assert slots

    def make(cls: Class) -> Class:
        made: Any = dataclasses.dataclass(init=False, repr=False, eq=False, slots=True, kw_only=kw_only)(cls)
        methods: dict[str, Any] = {
            "__init__": _init,
            "__repr__": _repr,
            "__getstate__": _state,
            "__setstate__": _set_state,
        }
        if eq:
            methods |= {"__eq__": _equals, "__hash__": _hash if frozen else None}
        if frozen:
            methods |= {"__setattr__": _refuse, "__delattr__": _refuse}
        for name, method in methods.items():
            if name not in cls.__dict__:
                setattr(made, name, method)
        finished: Class = made
        return finished

    return make


@overload
@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def frozen(cls: Class, /) -> Class: ...
@overload
@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def frozen(*, kw_only: bool = False, eq: bool = True) -> Callable[[Class], Class]: ...
def frozen(cls: Any = None, /, *, kw_only: bool = False, eq: bool = True) -> Any:
    """Make a class a value; `kw_only`: its fields are given by name; without `eq`, each object equals itself alone."""
    make: Any = dataclass(frozen=True, slots=True, kw_only=kw_only, eq=eq)
    return make if cls is None else make(cls)


def _init(self: Any, /, *args: Any, **values: Any) -> None:
    """Give the class its own `__init__`, and call it."""
    for kind in type(self).__mro__:
        if kind.__dict__.get("__init__") is _init:
            # Set the slots by their descriptors: `__setattr__` may refuse, and is slower.
            items = sorted(dataclasses.fields(kind), key=lambda item: item.kw_only is True)
            parameters, lines, known = [], [], dict[str, Any](_missing=MISSING)
            for item in items:
                name = value = item.name
                known[f"_set_{name}"] = getattr(kind, name).__set__
                if item.kw_only and "*" not in parameters:
                    parameters.append("*")
                if item.default_factory is not MISSING:
                    known[f"_make_{name}"], default = item.default_factory, "=_missing"
                    value = f"_make_{name}() if {name} is _missing else {name}"
                elif item.default is not MISSING:
                    known[f"_default_{name}"], default = item.default, f"=_default_{name}"
                else:
                    default = ""
                parameters.append(f"{name}{default}")
                lines.append(f"_set_{name}(_self, {value})")
            if hasattr(kind, "__post_init__"):
                lines.append("_self.__post_init__()")
            source = f"def __init__({', '.join(['_self', *parameters])}):\n  " + "\n  ".join(lines or ["pass"])
            exec(compile(source, __file__, "exec"), known)  # of this file: a sampled stack shows whose function it is
            init: Callable[..., None] = known["__init__"]
            init.__qualname__ = f"{kind.__qualname__}.__init__"  # which errors name
            setattr(kind, "__init__", init)  # noqa: B010
    self.__init__(*args, **values)


def _key(kind: type) -> Callable[[Any], tuple[Any, ...]]:
    names = [item.name for item in dataclasses.fields(kind) if item.compare]
    key: Callable[[Any], tuple[Any, ...]]
    key = attrgetter(*names) if len(names) > 1 else lambda value: tuple(getattr(value, name) for name in names)
    _keys[kind] = key
    return key


def _equals(self: Any, other: object, /) -> bool:
    kind = type(self)
    if type(other) is not kind:
        return NotImplemented  # type: ignore[no-any-return]
    key = _keys.get(kind) or _key(kind)
    same: bool = key(self) == key(other)
    return same


def _hash(self: Any, /) -> int:
    kind = type(self)
    return hash((_keys.get(kind) or _key(kind))(self))


def _repr(self: Any, /) -> str:
    shown = (f"{item.name}={getattr(self, item.name)!r}" for item in dataclasses.fields(self) if item.repr)
    return f"{type(self).__qualname__}({', '.join(shown)})"


def _state(self: Any, /) -> list[Any]:
    return [getattr(self, item.name) for item in dataclasses.fields(self)]


def _set_state(self: Any, state: list[Any], /) -> None:
    for item, value in zip(dataclasses.fields(self), state, strict=True):
        object.__setattr__(self, item.name, value)


def _refuse(self: Any, name: str, /, *_: object) -> NoReturn:
    raise FrozenInstanceError(f"cannot assign to or delete field {name!r}")


@contextmanager
def not_collecting() -> Iterator[None]:
    """Disable the cyclic garbage collector, which would take a third of the time and find nothing. If several threads
    do so at once, the first that ends may enable it for all, which only makes the others slower."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
