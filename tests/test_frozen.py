"""`@frozen` is a dataclass of the standard library that cannot be changed, with slots."""

import dataclasses

import pytest

from jaxprof.frozen import frozen


@frozen
class Point:
    x: int
    y: int = 2


@frozen(kw_only=True, eq=False)
class Named:
    name: str


def test_a_value_has_fields_slots_and_a_hash_and_stays_as_it_is():
    assert [field.name for field in dataclasses.fields(Point)] == ["x", "y"]
    assert (Point(1), hash(Point(1))) == (Point(1, 2), hash(Point(x=1)))
    assert not hasattr(Point(1), "__dict__")
    with pytest.raises(dataclasses.FrozenInstanceError):
        Point(1).x = 2


def test_fields_by_name_and_objects_that_equal_themselves_alone():
    with pytest.raises(TypeError, match="positional"):
        Named("a")
    assert Named(name="a") != Named(name="a")
