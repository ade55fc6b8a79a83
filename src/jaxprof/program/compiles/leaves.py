"""One value of a call as a leaf of its signature: what JAX makes of it, and where it lies."""

from __future__ import annotations

from types import FunctionType, MethodType
from typing import Any, Final

from jaxprof.program.compiles.functions import Identities
from jaxprof.program.compiles.signature import Leaf
from jaxprof.program.compiles.values import dtype_name, sharding_text, static_text

_SCALARS: Final = {bool: "bool", int: "int64", float: "float64", complex: "complex128"}
"""What JAX makes of Python's numbers; bool first, because it is an int."""


ARRAY, TRACER, NUMPY, OTHER = "array", "tracer", "numpy", "other"


class LeafReader:
    """Reads values into leaves. Equal leaves are the same object, so that comparing many costs little."""

    _LEAVES_REMEMBERED = 50_000

    def __init__(self, identities: Identities) -> None:
        self._identities = identities
        self._interned: dict[tuple[Any, ...], Leaf] = {}
        self._kinds: dict[type, str] = {}
        self._dtypes: dict[tuple[Any, bool], str] = {}

    def dynamic(self, value: Any, wide: bool, jax: Any) -> Leaf:
        """The leaf of an array, a tracer, a number or anything with a shape and a dtype."""
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
        known = self.kind(kind, jax)
        if known == ARRAY:
            if value.committed:
                sharding, placed = sharding_text(value.sharding), hash_of(value.sharding)
        elif known == OTHER:
            abstract = getattr(value, "sharding", None)  # of a ShapeDtypeStruct, as `lower` takes them
            if abstract is not None:
                sharding, placed = sharding_text(abstract), hash_of(abstract)
        if known != NUMPY:
            weak = bool(getattr(value, "weak_type", False))
        shape = getattr(value, "shape", ())
        return self._leaf(tuple(shape), self._dtype(value.dtype, wide), weak, sharding, placed)

    def static(self, value: Any) -> Leaf:
        """The leaf of a static argument: its value in words, and its hash."""
        if isinstance(value, (FunctionType, MethodType)):
            return self._leaf((), "", False, "", 0, value.__name__, hash_of(self._identities.of(value)))
        identity = self._identities.of(value) if callable(value) and not isinstance(value, type) else value
        return self._leaf((), "", False, "", 0, static_text(value), hash_of(identity))

    def _leaf(self, *parts: Any) -> Leaf:
        leaf = self._interned.get(parts)
        if leaf is None:
            if len(self._interned) >= self._LEAVES_REMEMBERED:
                self._interned.clear()
            leaf = self._interned[parts] = Leaf(*parts)
        return leaf

    def kind(self, kind: type, jax: Any) -> str:
        """Whose values are of this type: `ARRAY`, `TRACER`, `NUMPY`, `OTHER`; asked once for a type of a library."""
        known = self._kinds.get(kind)
        if known is None:
            known = NUMPY if kind.__module__ == "numpy" else OTHER
            if issubclass(kind, jax.core.Tracer):
                known = TRACER
            elif issubclass(kind, jax.Array):
                known = ARRAY
            if kind.__module__.startswith(("jax", "numpy", "builtins")):
                self._kinds[kind] = known
        return known

    def _dtype(self, dtype: Any, wide: bool) -> str:
        name = self._dtypes.get((dtype, wide))
        if name is None:
            if len(self._dtypes) >= self._LEAVES_REMEMBERED:
                self._dtypes.clear()
            name = self._dtypes[dtype, wide] = dtype_name(dtype, wide=wide)
        return name


def hash_of(value: Any) -> int:
    """Its hash, as JAX's own cache has it; what cannot be hashed is told apart by address."""
    try:
        return hash(value)
    except Exception:  # noqa: BLE001 __hash__ is the user's; JAX asked it too and will tell them
        return id(value)
