"""`@frozen` makes a value: a dataclass that cannot be changed, with slots. What crosses a border is one of these.

The methods are not generated for each class: the standard library writes and compiles them as source, which takes a
millisecond a class, and a command, or a program that is recorded, would wait for a hundred of them. The classes are
those of the standard library in all else (`fields`, `replace`, `asdict`). Making an object takes 1.5 times as long.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import MISSING, FrozenInstanceError
from dataclasses import field as field
from operator import attrgetter
from typing import Any, NoReturn, TypeVar, dataclass_transform, overload

Class = TypeVar("Class", bound=type[Any])
_Setter = Callable[[Any, Any], None]
_layouts: dict[type, tuple[tuple[tuple[str, _Setter, Any, Any], ...], tuple[str, ...], bool]] = {}
"""Class → its fields, each with what sets it, its default and its factory; the names of the positional fields; whether
it has a `__post_init__`."""
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


def _layout(kind: type) -> tuple[tuple[tuple[str, _Setter, Any, Any], ...], tuple[str, ...], bool]:
    items = dataclasses.fields(kind)
    fields = tuple((item.name, getattr(kind, item.name).__set__, item.default, item.default_factory) for item in items)
    positional = tuple(item.name for item in items if not item.kw_only)
    _layouts[kind] = layout = fields, positional, hasattr(kind, "__post_init__")
    return layout


def _init(self: Any, /, *args: Any, **values: Any) -> None:
    kind = type(self)
    fields, positional, more = _layouts.get(kind) or _layout(kind)
    if args:
        given = dict(zip(positional, args, strict=False))
        if len(args) > len(positional):
            raise TypeError(
                f"{kind.__name__}() takes {len(positional)} positional arguments, and {len(args)} were given"
            )
        if not given.keys().isdisjoint(values):
            raise TypeError(f"{kind.__name__}() was given {min(given.keys() & values)!r} twice")
        values |= given
    for name, set_field, default, factory in fields:
        if name in values:
            set_field(self, values.pop(name))
        elif default is not MISSING:
            set_field(self, default)
        elif factory is not MISSING:
            set_field(self, factory())
        else:
            raise TypeError(f"{kind.__name__}() needs the argument {name!r}")
    if values:
        raise TypeError(f"{kind.__name__}() has no argument {next(iter(values))!r}")
    if more:
        self.__post_init__()


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
    for (_, set_field, _, _), value in zip((_layouts.get(type(self)) or _layout(type(self)))[0], state, strict=True):
        set_field(self, value)


def _refuse(self: Any, name: str, /, *_: object) -> NoReturn:
    raise FrozenInstanceError(f"cannot assign to or delete field {name!r}")
