"""The arguments of a call: the tree of each, and its values as leaves and as short text.

Values become text such as `f32[4]`, `P('data') over 4 devices` or `3`. The `repr` of the user's objects is never
called: it could run their code, print an array, or wait for a device. What looks like a secret is left out here: a part
of a long value that is shown alone has lost its name.

JAX's own hash of a tree leaves out what its nodes hold besides children (the keys of a dict, the static fields of a
module), although a program is compiled for exactly those. So the nodes are walked, at 1 µs each. The names cost more,
so they are cached as text by the digest; no tree is kept.
"""

from __future__ import annotations

import dataclasses
import enum
import math
import sys
from collections.abc import Iterator
from functools import lru_cache
from itertools import islice
from types import FunctionType, MethodType
from typing import Any

from jaxprof.base.text import REDACTED
from jaxprof.base.values import field, frozen
from jaxprof.recorder.compiles.functions import Identities
from jaxprof.recorder.guest import raised_by_program

_SHORT = {
    "float64": "f64", "float32": "f32", "float16": "f16", "bfloat16": "bf16", "complex64": "c64", "complex128": "c128",
    "int64": "i64", "int32": "i32", "int16": "i16", "int8": "i8", "int4": "i4", "int2": "i2",
    "uint64": "u64", "uint32": "u32", "uint16": "u16", "uint8": "u8", "uint4": "u4", "uint2": "u2", "bool": "bool",
}  # fmt: skip
_NARROW = {
    "float64": "float32", "int64": "int32", "uint64": "uint32", "complex128": "complex64",
}  # fmt: skip
_SCALARS = {bool: "bool", int: "int64", float: "float64", complex: "complex128"}
"""Dtypes that JAX gives to Python's numbers; bool first, because it is an int."""
ARRAY, TRACER, NUMPY, OTHER = "array", "tracer", "numpy", "other"
_NODES_WALKED = 20_000
"""Limit for walked nodes; a larger tree is identified by JAX's own hash."""
_PLAIN = (dict, list, tuple, type(None))
_TEXT_AT_MOST = 120
_EXAMINED_AT_MOST = 4096
"""Characters of a text searched for secrets: more than are shown, as the end of a URL shows its password."""
_PARTS_AT_MOST = 12
_INHERITED: tuple[object, ...] = (object.__eq__, tuple.__eq__)
_OPAQUE = sys.stdlib_module_names | {"jax", "jaxlib", "numpy"}


@frozen
class Leaf:
    """One leaf of the arguments, or one static argument."""

    shape: tuple[Any, ...] = ()
    dtype: str = ""
    """Short name of the dtype: `f32`; empty for a static argument."""
    weak_type: bool = False
    sharding: str = ""
    """Sharding as text; empty if the value is not committed to a device."""
    placed: int = 0
    """Hash that distinguishes shardings with the same text."""
    static: str = ""
    static_hash: int = 0
    compares: bool = False
    """Whether a static argument's class has an `__eq__` of its own, so that an equal object is no other value."""
    digest: int = field(default=0, compare=False, repr=False)

    def __post_init__(self) -> None:
        content = (self.shape, self.dtype, self.weak_type, self.sharding, self.placed, self.static, self.static_hash)
        object.__setattr__(self, "digest", hash(content))

    def __hash__(self) -> int:
        return self.digest

    @property
    def is_static(self) -> bool:
        """Whether the argument is static: the program was compiled for its value."""
        return not self.dtype

    @property
    def type(self) -> str:
        """`f32[4]`, or the value of a static argument."""
        return self.static if self.is_static else array_type(self.shape, self.dtype)


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
            abstract = getattr(value, "sharding", None)  # a ShapeDtypeStruct, as `lower` takes them, has one
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
        kind = type(value)
        compares = kind.__module__ != "builtins" and getattr(kind, "__eq__", None) not in _INHERITED
        return self._leaf((), "", False, "", 0, static_text(value, name), hash_of(identity), compares)

    def device_bytes(self, value: Any, wide: bool) -> int | None:
        """Return a NumPy array's bytes on the device, with 64-bit numbers halved unless `wide`; None for a scalar."""
        if not isinstance(value, sys.modules["numpy"].ndarray):
            return None
        return int(value.nbytes) // 2 if is_narrowed(value.dtype) and not wide else int(value.nbytes)

    def is_aligned(self, value: Any, wide: bool) -> bool:
        """Whether a CPU device can use a NumPy array's memory: it has XLA's alignment, and nothing is converted."""
        if not value.flags.c_contiguous or (is_narrowed(value.dtype) and not wide):
            return False
        return int(value.__array_interface__["data"][0]) % 64 == 0  # XLA's alignment, in bytes

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


Static = tuple[str, int]
"""A static part of a tree: its value as text, and its hash, by which values with the same text differ."""


@frozen
class Tree:
    """The leaves, paths and static contents of an argument."""

    leaves: list[Any]
    paths: tuple[str, ...]
    """Path of each leaf: `['w']`, `.layers[0].weight`; empty for an argument that is a leaf itself."""
    digest: int
    statics: tuple[tuple[str, Static], ...] = ()
    """What the nodes hold besides children, by the path of a node, or of its field."""


class TreeReader:
    def __init__(self) -> None:
        self._known: dict[tuple[int, int], tuple[tuple[str, ...], tuple[tuple[str, Static], ...]]] = {}

    def read(self, value: Any) -> Tree:
        if isinstance(value, (bool, int, float, complex)) or type(value).__module__ == "numpy":
            return Tree([value], ("",), 0)
        jax = sys.modules["jax"]
        leaves, structure = jax.tree_util.tree_flatten(value)
        if len(leaves) == 1 and jax.tree_util.treedef_is_leaf(structure):  # None has one node as well
            return Tree(leaves, ("",), 0)
        digest = hash(structure) if structure.num_nodes > _NODES_WALKED else _digest(structure)
        entry = self._known.get((digest, len(leaves)))
        if entry is None:
            if len(self._known) >= 1_000:
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
    """Return a hash of what a node holds. A value without one is searched for parts that have one, or left out."""
    try:
        return hash(value)
    except Exception as error:  # __hash__ is the user's, and containers of unhashable values raise as well
        if raised_by_program(error):
            raise
    if isinstance(value, dict):
        return hash(tuple((_content_hash(key), _content_hash(held)) for key, held in value.items()))
    return hash(tuple(map(_content_hash, value))) if isinstance(value, (tuple, list)) else 0


def _statics(structure: Any, keys: list[Any], jax: Any) -> Iterator[tuple[str, Static]]:
    """Return what the nodes hold besides children, each with its path: the common part of its leaves' paths, and its
    field where that can be read."""
    count = 0
    stack = [(structure, 0, 0)]
    while stack and count < 256:
        node, depth, first = stack.pop()
        data = node.node_data()
        if data is None:
            continue
        kind, held = data
        if kind not in _PLAIN and held:
            count += 1
            path = jax.tree_util.keystr(keys[first][:depth]) if node.num_leaves else ""
            yield from ((f"{path}{field}", part) for field, part in _node_parts(kind, held))
        at = first
        for child in node.children():
            stack.append((child, depth + 1, at))
            at += child.num_leaves


def _node_parts(kind: Any, held: Any) -> Iterator[tuple[str, Static]]:
    """Yield `.in_features` with its value, and so each field if they can be read, otherwise all values together."""
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
            for field, value in zip(names, held[-len(names) :], strict=True):
                yield f".{field}", (static_text(value, field), _content_hash(value))
            return
        if any(is_secret_name(item.name) for item in fields):  # which of the values it is cannot be known
            yield "", (f"{name}({REDACTED})", _content_hash(held))
            return
    # names and then values, as flax's nnx has them
    named, values = held[-2:] if isinstance(held, tuple) and len(held) > 1 else ((), ())
    if isinstance(named, tuple) and isinstance(values, tuple) and named and len(named) == len(values):
        yield from (
            (f".{field}", (static_text(value, field), _content_hash(value)))
            for field, value in zip(named, values, strict=True)
            if isinstance(field, str)
        )
        return
    yield "", (f"{name}{static_text(held)}", _content_hash(held))


@lru_cache(maxsize=1024)
def dtype_name(dtype: Any, *, wide: bool) -> str:
    """Return `f32` for `float32`; without 64-bit types (`wide`), `f32` for `float64` too, since JAX narrows it."""
    name = getattr(dtype, "name", None) or str(dtype)
    if not wide:
        name = _NARROW.get(name, name)
    return _SHORT.get(name, name)


@lru_cache(maxsize=1024)
def is_narrowed(dtype: Any) -> bool:
    """Whether JAX halves the type's width unless 64-bit types are on. Remembered: a dtype's name takes NumPy 5 µs."""
    return getattr(dtype, "name", "") in _NARROW


def array_type(shape: tuple[Any, ...], dtype: str) -> str:
    """Return `f32[4,3]`; dimensions of unknown size are shown as they print."""
    return f"{dtype}[{','.join(map(str, shape))}]"


def array_bytes(shape: tuple[Any, ...], dtype: str) -> int | None:
    """Return the bytes of an array of that shape and short dtype; None if unknown."""
    width = "".join(filter(str.isdigit, dtype[:4].partition("E")[0]))  # `f8E4M3FN` has 8 bits
    bits = {"bool": 8, "c64": 64, "c128": 128}.get(dtype) or int(width or 0)
    if not bits or not dtype.startswith(("f", "bf", "i", "u", "c", "bool")) or not all(type(n) is int for n in shape):
        return None
    return int(math.prod(shape)) * bits // 8


def sharding_text(sharding: Any) -> str:
    """Return `cpu:1` for one device, `P('data') over 4 devices` for several; empty if the sharding names no devices."""
    try:
        devices = sharding.device_set
    except (AttributeError, NotImplementedError, ValueError):
        return ""  # an abstract sharding, without devices
    memory = getattr(sharding, "memory_kind", None)
    kept_elsewhere = f" in {memory}" if memory and memory not in ("device", "unpinned_host") else ""
    if len(devices) == 1:
        (device,) = devices
        return f"{device.platform}:{device.id}{kept_elsewhere}"
    spec = getattr(sharding, "spec", None)
    words = type(sharding).__name__
    if spec is not None:
        axes = (repr(part) if part is None or isinstance(part, (str, tuple)) else str(part) for part in spec)
        words = f"P({', '.join(axes)})"
    return f"{words} over {len(devices)} devices{kept_elsewhere}"


def static_text(value: Any, name: str = "", depth: int = 0) -> str:
    """Return a static value of this name as text: plain values as Python writes them, containers and dataclasses by
    their parts, anything else by its type. What looks like a secret is `[redacted]`."""
    kind = type(value)
    if kind in (str, bytes):
        return _redact(name, repr(value[:_EXAMINED_AT_MOST]))
    if value is None or kind in (bool, int, float, complex, range, slice) or value is Ellipsis:
        return _redact(name, repr(value))
    if isinstance(value, enum.Enum):
        return f"{kind.__name__}.{value.name}"
    if isinstance(value, type):
        return value.__name__
    if depth < 3:
        parts = _parts(value, depth + 1)
        if parts is not None:
            return _redact(name, parts)
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(value, (numpy.dtype, numpy.generic)):
        return _redact(name, str(value[:_EXAMINED_AT_MOST] if isinstance(value, (numpy.str_, numpy.bytes_)) else value))
    qualified = getattr(value, "__qualname__", None) if callable(value) and kind.__module__ == "builtins" else None
    return qualified if isinstance(qualified, str) else kind.__name__


def _parts(value: Any, depth: int) -> str | None:
    """Return a container, a named tuple, a dataclass or an object with attributes of its own as text, part by part;
    None for anything else. Objects of JAX and of Python's library have no attributes that say something to the user,
    and an object within another one is its type alone."""
    kind = type(value)
    if kind in (tuple, list, set, frozenset):
        first = value[0] if kind is tuple and len(value) == 2 else None
        name = first if type(first) is str and first != "token" else ""  # ('token', 'embed') are names of axes
        inner = [static_text(part, "" if part is first else name, depth) for part in list(value)[:_PARTS_AT_MOST]]
        more = ["…"] if len(value) > _PARTS_AT_MOST else []
        opening, closing = "[]" if kind is list else "{}"
        if kind is tuple:
            opening, closing = "()"
        comma = "," if kind is tuple and len(value) == 1 else ""
        return f"{opening}{', '.join(inner + more)}{comma}{closing}"
    if kind is dict:
        items = list(value.items())[:_PARTS_AT_MOST]
        pairs = [f"{static_text(k, '', depth)}: {static_text(v, k if type(k) is str else '', depth)}" for k, v in items]
        return f"{{{', '.join(pairs)}}}"
    own = dict(object.__getattribute__(value, "__dict__")) if kind.__dictoffset__ else {}
    attributes: dict[str, Any] = {}
    if isinstance(value, tuple) and hasattr(kind, "_fields"):
        attributes = dict(zip(kind._fields, value, strict=False))
    elif dataclasses.is_dataclass(value):
        attributes = {item.name: own[item.name] for item in dataclasses.fields(value) if item.name in own}
    elif depth == 1 and kind.__module__.partition(".")[0] not in _OPAQUE:
        attributes = own
    if not attributes:
        return None
    shown = [f"{name}={static_text(held, name, depth)}" for name, held in islice(attributes.items(), _PARTS_AT_MOST)]
    return f"{kind.__name__}({', '.join(shown)})"


def _redact(name: str, text: str) -> str:
    from jaxprof.base.redaction import without_secret  # 5 ms, for which only a program with such a value waits

    text = without_secret(name, text)
    return text if len(text) <= _TEXT_AT_MOST else text[: _TEXT_AT_MOST - 1] + "…"
