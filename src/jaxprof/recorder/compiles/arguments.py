"""The parts of one argument of a call: its tree, and each value as a leaf of the signature.

JAX's own hash of a tree leaves out what its nodes hold besides children (the keys of a dict, the static fields of a
module), although a program is compiled for exactly those. So the nodes are walked, at 1 µs each. The names cost more,
so they are cached as text by the digest; no tree is kept.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Iterator
from types import FunctionType, MethodType
from typing import Any

from jaxprof.base.text import REDACTED
from jaxprof.base.values import frozen
from jaxprof.recorder.compiles.functions import Identities
from jaxprof.recorder.compiles.signature import Leaf
from jaxprof.recorder.compiles.values import dtype_name, is_narrowed, sharding_text, static_text
from jaxprof.recorder.guest import raised_by_program

_SCALARS = {bool: "bool", int: "int64", float: "float64", complex: "complex128"}
"""Dtypes that JAX gives to Python's numbers; bool first, because it is an int."""
_XLA_ALIGNMENT_BYTES = 64
ARRAY, TRACER, NUMPY, OTHER = "array", "tracer", "numpy", "other"
STRUCTURES_REMEMBERED = 1_000
_STATICS_KEPT = 256
_NODES_WALKED = 20_000
"""Limit for walked nodes; a larger tree is identified by JAX's own hash."""
_PLAIN = (dict, list, tuple, type(None))


class LeafReader:
    """Reads values into leaves. Equal leaves are the same object, so that comparing many of them costs little."""

    _LEAVES_REMEMBERED = 50_000

    def __init__(self, identities: Identities) -> None:
        self._identities = identities
        self._interned: dict[tuple[Any, ...], Leaf] = {}
        self._kinds: dict[type, str] = {}

    def dynamic(self, value: Any, wide: bool, jax: Any) -> Leaf:
        """Return the leaf of an array, a tracer, a number or anything with a shape and a dtype."""
        kind = type(value)
        if kind in _SCALARS:
            return self._leaf((), dtype_name(_SCALARS[kind], wide=wide), kind is not bool)
        if not hasattr(value, "dtype"):
            scalar = next((plain for plain in _SCALARS if isinstance(value, plain)), None)
            if scalar is None:
                return self.static(value)
            return self._leaf((), dtype_name(_SCALARS[scalar], wide=wide), scalar is not bool)
        sharding, placed = "", 0
        weak = False
        whose = self.kind(kind, jax)
        if whose == ARRAY:
            if value.committed:
                sharding, placed = sharding_text(value.sharding), hash_of(value.sharding)
        elif whose == OTHER:
            abstract = getattr(value, "sharding", None)  # of a ShapeDtypeStruct, as `lower` takes them
            if abstract is not None:
                sharding, placed = sharding_text(abstract), hash_of(abstract)
        if whose != NUMPY:
            weak = bool(getattr(value, "weak_type", False))
        shape = getattr(value, "shape", ())
        return self._leaf(tuple(shape), dtype_name(value.dtype, wide=wide), weak, sharding, placed)

    def static(self, value: Any, name: str = "") -> Leaf:
        """Return the leaf of the static argument `name`: its value as text, and its hash."""
        if isinstance(value, (FunctionType, MethodType)):
            return self._leaf((), "", False, "", 0, value.__name__, hash_of(self._identities.of(value)))
        identity = self._identities.of(value) if callable(value) and not isinstance(value, type) else value
        return self._leaf((), "", False, "", 0, static_text(value, name), hash_of(identity))

    def device_bytes(self, value: Any, wide: bool) -> int | None:
        """Return the bytes of a NumPy array on the device, with 64-bit numbers halved unless they are enabled (`wide`);
        None for a NumPy scalar."""
        if not isinstance(value, sys.modules["numpy"].ndarray):
            return None
        return int(value.nbytes) // 2 if is_narrowed(value.dtype) and not wide else int(value.nbytes)

    def is_aligned(self, value: Any, wide: bool) -> bool:
        """Whether a CPU device can use a NumPy array's own memory: it has XLA's alignment, and nothing must be
        converted."""
        flags = value.flags
        if not flags.c_contiguous or (is_narrowed(value.dtype) and not wide):
            return False
        return int(value.__array_interface__["data"][0]) % _XLA_ALIGNMENT_BYTES == 0

    def _leaf(self, *parts: Any) -> Leaf:
        leaf = self._interned.get(parts)
        if leaf is None:
            if len(self._interned) >= self._LEAVES_REMEMBERED:
                self._interned.clear()
            leaf = self._interned[parts] = Leaf(*parts)
        return leaf

    def kind(self, kind: type, jax: Any) -> str:
        """Return the kind of a type: `ARRAY`, `TRACER`, `NUMPY`, `OTHER`; cached for the types of libraries."""
        whose = self._kinds.get(kind)
        if whose is None:
            whose = NUMPY if kind.__module__ == "numpy" else OTHER
            if issubclass(kind, jax.core.Tracer):
                whose = TRACER
            elif issubclass(kind, jax.Array):
                whose = ARRAY
            if kind.__module__.startswith(("jax", "numpy", "builtins")):
                self._kinds[kind] = whose
        return whose


def hash_of(value: Any) -> int:
    """Return the value's hash, as JAX's own cache uses it; an unhashable value is identified by its address."""
    try:
        return hash(value)
    except Exception as error:  # __hash__ is the user's; JAX called it too and will report its error
        if raised_by_program(error):
            raise
        return id(value)


@frozen
class Tree:
    """The leaves, paths and static contents of an argument."""

    leaves: list[Any]
    paths: tuple[str, ...]
    """Path of each leaf: `['w']`, `.layers[0].weight`; empty for an argument that is a leaf itself."""
    digest: int
    statics: tuple[tuple[str, str], ...] = ()
    """What the nodes hold besides children: the node's path, and the values as text."""


class TreeReader:
    """Reads arguments into trees."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, int], tuple[tuple[str, ...], tuple[tuple[str, str], ...]]] = {}

    def read(self, value: Any) -> Tree:
        """Return the tree of one argument."""
        if isinstance(value, (bool, int, float, complex)) or type(value).__module__ == "numpy":
            return Tree([value], ("",), 0)
        jax = sys.modules["jax"]
        leaves, structure = jax.tree_util.tree_flatten(value)
        if len(leaves) == 1 and jax.tree_util.treedef_is_leaf(structure):  # None has one node as well
            return Tree(leaves, ("",), 0)
        digest = hash(structure) if structure.num_nodes > _NODES_WALKED else _digest(structure)
        entry = self._known.get((digest, len(leaves)))
        if entry is None:
            if len(self._known) >= STRUCTURES_REMEMBERED:
                self._known.clear()
            with_paths, _ = jax.tree_util.tree_flatten_with_path(value)
            keys = [path for path, _ in with_paths]
            statics = tuple(_statics(structure, keys, jax)) if structure.num_nodes <= _NODES_WALKED else ()
            entry = self._known[digest, len(leaves)] = tuple(map(jax.tree_util.keystr, keys)), statics
        return Tree(leaves, entry[0], digest, entry[1])


def _digest(structure: Any) -> int:
    data = structure.node_data()
    if data is None:
        return 1
    held = _content_hash(data[1])
    if structure.num_nodes == structure.num_leaves + 1:  # nothing but leaves below here
        return hash((data[0], held, structure.num_leaves))
    return hash((data[0], held, tuple([_digest(child) for child in structure.children()])))


def _content_hash(value: Any) -> int:
    """Return a hash of what a node holds. A value without a hash of its own is searched for parts that have one, or
    left out."""
    try:
        return hash(value)
    except Exception as error:  # __hash__ is the user's, and containers of unhashable values raise as well
        if raised_by_program(error):
            raise
    if isinstance(value, dict):
        return hash(tuple((_content_hash(key), _content_hash(held)) for key, held in value.items()))
    return hash(tuple(map(_content_hash, value))) if isinstance(value, (tuple, list)) else 0


def _statics(structure: Any, keys: list[Any], jax: Any) -> Iterator[tuple[str, str]]:
    """Return the nodes that hold more than children, each with its path: the common part of its leaves' paths."""
    count = 0
    stack = [(structure, 0, 0)]
    while stack and count < _STATICS_KEPT:
        node, depth, first = stack.pop()
        data = node.node_data()
        if data is None:
            continue
        kind, held = data
        if kind not in _PLAIN and held:
            count += 1
            path = jax.tree_util.keystr(keys[first][:depth]) if node.num_leaves else ""
            yield path, _node_text(kind, held)
        at = first
        for child in node.children():
            stack.append((child, depth + 1, at))
            at += child.num_leaves


def _node_text(kind: Any, held: Any) -> str:
    """Return `Linear(in_features=3, use_bias=True)` if the fields can be read, otherwise the values."""
    from jaxprof.base.redaction import is_secret_name  # a recorded program waits for each import

    name = getattr(kind, "__name__", "node")
    if dataclasses.is_dataclass(kind) and isinstance(held, tuple):
        fields = dataclasses.fields(kind)
        names = [
            item.name
            for item in fields
            if item.metadata.get("static") or item.metadata.get("pytree_node") is False  # the word of flax
        ]
        if names and len(held) >= len(names):  # equinox puts a field of its own first
            pairs = zip(names, held[-len(names) :], strict=True)
            return f"{name}({', '.join(f'{field}={static_text(value, field)}' for field, value in pairs)})"
        if any(is_secret_name(item.name) for item in fields):  # which of the values it is cannot be known
            return f"{name}({REDACTED})"
    return f"{name}{static_text(held)}"
