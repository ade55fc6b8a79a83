"""Which numbers a line from outside may hold, and how deep it may be.

JSON can hold a number of four hundred digits, and lists a thousand levels deep. Both pass every check of types, and
break what is derived from them later: a sum becomes infinite, a report recurses too deep. Numbers that have a type are
checked by msgspec while it reads them, at no cost; `are_bounded` looks at the few values that have none.
"""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from types import UnionType
from typing import Annotated, Any, Final, Union, get_args, get_origin, get_type_hints

import msgspec

from jaxprof.limits import DEPTH

LARGEST_INTEGER: Final = (1 << 63) - 1
LARGEST_FLOAT: Final = 1e100
"""Beyond every duration, size and count, and small enough for a product of three to be finite."""
_BOUNDED: Final[dict[Any, Any]] = {
    int: Annotated[int, msgspec.Meta(ge=-LARGEST_INTEGER, le=LARGEST_INTEGER)],
    float: Annotated[float, msgspec.Meta(ge=-LARGEST_FLOAT, le=LARGEST_FLOAT)],
}


def bound_numbers(kind: type, around: tuple[type, ...] = ()) -> bool:
    """Writes the bounds into the annotations of the dataclass `kind`, and of those that its fields hold. msgspec reads
    annotations once, when it first makes a decoder of the type.

    Returns whether values can be deeper than their types, by `Any` or by a type within itself: then `are_bounded` has
    to look at each. `around`: the types that hold `kind`.
    """
    unlimited = False

    def bounded(hint: Any) -> Any:
        nonlocal unlimited
        if hint is Any:
            unlimited = True
        elif is_dataclass(hint):
            assert isinstance(hint, type)
            unlimited |= hint in (*around, kind) or bound_numbers(hint, (*around, kind))
        elif get_origin(hint) in (Union, UnionType):
            return Union[tuple(map(bounded, get_args(hint)))]  # noqa: UP007
        elif arguments := get_args(hint):
            return get_origin(hint)[tuple(map(bounded, arguments))]
        return _BOUNDED.get(hint, hint)

    hints = get_type_hints(kind)
    kind.__annotations__ = kind.__annotations__ | {item.name: bounded(hints[item.name]) for item in fields(kind)}
    return unlimited


def are_bounded(values: Any, depth: int = 0) -> bool:
    """Whether the numbers in a dataclass, a list, a tuple or a dict, `depth` levels down, and the levels in it are
    within the bounds."""
    if depth > DEPTH.most:
        return False
    if isinstance(values, dict):
        values = values.values()
    elif is_dataclass(values):
        values = [getattr(values, item.name) for item in fields(values)]
    for value in values:
        if isinstance(value, float):
            if not -LARGEST_FLOAT <= value <= LARGEST_FLOAT:
                return False
        elif isinstance(value, int):
            if not -LARGEST_INTEGER <= value <= LARGEST_INTEGER:
                return False
        elif value is not None and not isinstance(value, str) and not are_bounded(value, depth + 1):
            return False
    return True
