"""Light dataclasses behave as those of the standard library do."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from typing import ClassVar

import pytest

from jaxprof.base.values import dataclass, field, frozen


@frozen
class Point:
    kind: ClassVar[str] = "point"
    x: int
    y: int = 2
    tags: list[str] = field(default_factory=list, compare=False)
    digest: int = field(default=0, compare=False, repr=False)

    def __post_init__(self):
        object.__setattr__(self, "digest", self.x * 10)


@frozen(kw_only=True)
class Named:
    name: str


@frozen(kw_only=True)
class Placed(Named):
    at: Point = Point(0)


@dataclass(slots=True)
class Counter:
    count: int = 0


@frozen(kw_only=True, eq=False)
class Own:
    name: str


class Moved(Point):
    __slots__ = ()


def test_values_compare_hash_and_print_by_their_fields():
    assert Point(1) == Point(1, 2)
    assert hash(Point(1)) == hash(Point(x=1))
    assert Point(1, tags=["a"]) == Point(1)
    assert Point(1) != Point(2)
    assert Point(1) != (1, 2)
    assert (repr(Point(1)), Point(1).digest) == ("Point(x=1, y=2, tags=[])", 10)
    assert repr(Placed(name="a")) == "Placed(name='a', at=Point(x=0, y=2, tags=[]))"
    assert Point(1).tags is not Point(1).tags
    assert Own(name="a") != Own(name="a")
    assert Moved(1).digest == 10
    assert type(Moved(1)) is Moved
    assert Moved(1) != Point(1)


def test_the_standard_library_takes_them_for_its_own():
    placed = Placed(name="a")
    assert dataclasses.replace(placed, name="b") == Placed(name="b")
    assert dataclasses.asdict(Point(1)) == {"x": 1, "y": 2, "tags": [], "digest": 10}
    assert copy.deepcopy(placed) == pickle.loads(pickle.dumps(placed)) == placed


def test_what_is_frozen_stays_and_what_is_not_changes():
    with pytest.raises(dataclasses.FrozenInstanceError):
        Point(1).x = 2
    assert not hasattr(Point(1), "__dict__")
    with pytest.raises(TypeError):
        hash(Counter())
    counter = Counter()
    counter.count += 1
    assert counter == Counter(1)
    with pytest.raises(AttributeError):
        counter.other = 1


@pytest.mark.parametrize(
    ("words", "named", "said"),
    [
        ((), {}, r"^Point.__init__\(\) missing 1 .* 'x'"),
        ((1, 2, 3, 4, 5), {}, "takes from 2 to 5 .* 6 were given"),
        ((1,), {"x": 1}, "multiple values for argument 'x'"),
        ((1,), {"z": 1}, "unexpected keyword argument 'z'"),
    ],
)
def test_wrong_arguments_are_refused(words, named, said):
    with pytest.raises(TypeError, match=said):
        Point(*words, **named)


def test_the_first_object_gives_a_class_its_own_init():
    Counter(1), Own(name="a")
    assert Counter.__init__ is not Own.__init__
    assert Counter.__init__.__qualname__ == "Counter.__init__"
