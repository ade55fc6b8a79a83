"""Arguments taken apart: names of leaves, and what tells two trees apart that JAX's own hash does not."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import pytest

from jaxprof.recorder.compiles.arguments import TreeReader


@jax.tree_util.register_dataclass
@dataclasses.dataclass
class Layer:
    weight: Any
    width: int = dataclasses.field(metadata={"static": True})


class Held:
    """A node whose other part has no hash."""

    def __init__(self, x: Any, rest: Any) -> None:
        self.x, self.rest = x, rest


jax.tree_util.register_pytree_node(Held, lambda held: ((held.x,), held.rest), lambda rest, x: Held(x[0], rest))


def test_static_fields_are_told_with_the_path_of_their_node() -> None:
    tree = TreeReader().read({"body": [Layer(1.0, 3), Layer({"a": 2.0, "b": None}, 4)], "none": None})
    assert tree.paths == ("['body'][0].weight", "['body'][1].weight['a']")
    assert dict(tree.statics) == {"['body'][0]": "Layer(width=3)", "['body'][1]": "Layer(width=4)"}


DIFFERENT = {
    "keys": ({"a": 1.0, "b": 2.0}, {"a": 1.0, "c": 2.0}),
    "keys of a dict inside": ({"a": {"x": 1.0}, "b": 2.0}, {"a": {"y": 1.0}, "b": 2.0}),
    "static fields": (Layer(1.0, 3), Layer(1.0, 4)),
    "a part without a hash": (Held(1.0, {"k": [1]}), Held(1.0, {"k": [2]})),
    "containers": ((1.0, 2.0), [1.0, 2.0]),
    "nothing and a leaf": ((1.0, None), (1.0, 2.0)),
    "depth": (((1.0, 2.0),), (1.0, 2.0)),
}


@pytest.mark.parametrize("kind", DIFFERENT)
def test_trees_are_told_apart(kind: str) -> None:
    reader = TreeReader()
    one, other = map(reader.read, DIFFERENT[kind])
    assert one.digest != other.digest
    assert reader.read(DIFFERENT[kind][0]).digest == one.digest


def test_the_same_tree_with_other_leaves_is_the_same() -> None:
    reader = TreeReader()
    one, other = reader.read({"a": Layer(1.0, 3)}), reader.read({"a": Layer(2.0, 3)})
    assert (one.digest, one.paths, one.statics) == (other.digest, other.paths, other.statics)
    assert other.leaves == [2.0]


@pytest.mark.parametrize("value", [1.0, True, "words"])
def test_a_leaf_has_no_path(value: Any) -> None:
    tree = TreeReader().read(value)
    assert (tree.leaves, tree.paths, tree.digest) == ([value], ("",), 0)
