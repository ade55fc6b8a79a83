"""`@frozen` makes a value: a dataclass that cannot be changed, with slots. What crosses a border is one of these.

`light_dataclass` has it for the classes that a recorded program waits for.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar, dataclass_transform, overload

Class = TypeVar("Class", bound=type[Any])


@overload
@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def frozen(cls: Class, /) -> Class: ...
@overload
@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def frozen(*, kw_only: bool = False, eq: bool = True) -> Callable[[Class], Class]: ...
def frozen(cls: Any = None, /, *, kw_only: bool = False, eq: bool = True) -> Any:
    """Make a class a value; `kw_only`: its fields are given by name; without `eq`, each object equals itself alone."""
    make = dataclass(frozen=True, slots=True, kw_only=kw_only, eq=eq)
    return make if cls is None else make(cls)
