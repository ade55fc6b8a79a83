"""What a compilation depends on, as far as it can be seen: the leaves of the arguments, static ones, options, config.

Signatures outlive the call and are compared with later ones: they hold words and numbers, no arrays and no functions.
"""

from __future__ import annotations

import functools
import itertools
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from types import FunctionType, MethodType
from typing import Any, Final

from jaxprof.program.call_site import Call
from jaxprof.program.functions import Identities, code_of, primitive_parameters, unwrapped
from jaxprof.program.values import array_type, dtype_name, sharding_text, static_text

LEAVES_SHOWN: Final = 64

CONFIG_NAMES: Final = (
    "jax_enable_x64",
    "jax_default_matmul_precision",
    "jax_numpy_dtype_promotion",
    "jax_numpy_rank_promotion",
    "jax_default_prng_impl",
    "jax_threefry_partitionable",
    "jax_default_device",
    "jax_debug_nans",
    "jax_debug_infs",
    "jax_enable_checks",
    "jax_softmax_custom_jvp",
    "jax_enable_custom_prng",
    "jax_custom_vjp_disable_shape_check",
    "jax_disable_most_optimizations",
    "jax_use_shardy_partitioner",
    "jax_random_seed_offset",
)
"""What of `jax.config` makes JAX trace or compile again, under its public names."""


_SCALARS: Final = {bool: "bool", int: "int64", float: "float64", complex: "complex128"}
"""What JAX makes of Python's numbers; bool first, because it is an int."""


@dataclass(frozen=True, slots=True)
class Leaf:
    """One leaf of the arguments, or one static argument."""

    shape: tuple[Any, ...] = ()
    dtype: str = ""
    """Short: `f32`; empty for a static argument."""
    weak: bool = False
    sharding: str = ""
    """Empty where the value is not committed to a device."""
    placed: int = 0
    """Tells shardings apart that read the same."""
    static: str = ""
    """The value of a static argument, in words."""
    static_hash: int = 0

    @property
    def is_static(self) -> bool:
        """Whether the program was made for its value."""
        return not self.dtype

    @property
    def type(self) -> str:
        """`f32[4]`, or the value of a static one."""
        return self.static if self.is_static else array_type(self.shape, self.dtype)


@dataclass(frozen=True, slots=True)
class Signature:
    """All that a compilation is compared by."""

    function: object = None
    """Which function object; None where it was not seen."""
    names: tuple[str, ...] = ()
    leaves: tuple[Leaf, ...] = ()
    keywords: tuple[str, ...] = ()
    """The arguments that were passed by name: JAX compiles again for the same ones by position."""
    structure: int = 0
    """Hash of the containers of the arguments, with what they hold besides leaves."""
    under: str = ""
    """The transformations outside of the jit that it was called through: `vmap`, `grad`."""
    options: tuple[tuple[str, str], ...] = ()
    """Those of `jax.jit`."""
    config: tuple[tuple[str, str], ...] = ()

    def rows(self) -> list[dict[str, Any]]:
        """The leaves as the ledger shows them, at most `LEAVES_SHOWN`."""
        return [_row(name, leaf) for name, leaf in zip(self.names[:LEAVES_SHOWN], self.leaves, strict=False)]

    @property
    def known(self) -> bool:
        """Whether anything of the call was seen."""
        return self.function is not None or bool(self.leaves)


def _row(name: str, leaf: Leaf) -> dict[str, Any]:
    row: dict[str, Any] = {"name": name, "type": leaf.type}
    if leaf.is_static:
        row["static"] = True
    if leaf.weak:
        row["weak_type"] = True
    if leaf.sharding:
        row["sharding"] = leaf.sharding
    return row


class SignatureReader:
    """Reads calls into signatures. Equal leaves are the same object, so that comparing many costs little."""

    _LEAVES_REMEMBERED = 50_000

    def __init__(self) -> None:
        self._identities = Identities()
        self._interned: dict[Leaf, Leaf] = {}

    def read(self, call: Call) -> Signature:
        """The signature of a call, with the configuration as it is now."""
        jax = sys.modules["jax"]
        config = read_config(jax)
        wide = ("jax_enable_x64", "True") in config
        if not call.found:
            inner = call.inner_args or ()
            leaves = tuple(self._array(value, wide, jax) for value in inner)
            return Signature(names=tuple(f"#{index}" for index in range(len(inner))), leaves=leaves, config=config)
        names: list[str] = []
        leaves_read: list[Leaf] = []
        structures: list[Any] = []
        under: set[str] = set()
        for name, value, static in _arguments(call):
            if static:
                names.append(name)
                leaves_read.append(self._static(value))
                continue
            for path, leaf_value in self._flat(value, structures, jax):
                names.append(name + path)
                leaves_read.append(self._array(leaf_value, wide, jax))
                if isinstance(leaf_value, jax.core.Tracer):
                    under.add(_transformation(leaf_value))
        if under and call.inner_args is not None:
            inner_leaves = [self._array(value, wide, jax) for value in call.inner_args]
            dynamic = [index for index, leaf in enumerate(leaves_read) if not leaf.is_static]
            if len(inner_leaves) == len(dynamic):
                for index, leaf in zip(dynamic, inner_leaves, strict=True):
                    leaves_read[index] = leaf
        return Signature(
            function="primitive" if primitive_parameters(call.function) else self._identities.of(call.function),
            names=tuple(names),
            leaves=tuple(leaves_read),
            keywords=tuple(call.kwargs),
            structure=_hash(tuple(structures)),
            under=", ".join(sorted(under)),
            options=tuple((name, static_text(value)) for name, value in call.options.items() if value),
            config=config,
        )

    def _flat(self, value: Any, structures: list[Any], jax: Any) -> list[tuple[str, Any]]:
        if isinstance(value, (bool, int, float, complex, jax.Array)):
            return [("", value)]
        paths, structure = jax.tree_util.tree_flatten_with_path(value)
        if not jax.tree_util.treedef_is_leaf(structure):
            structures.append(structure)
        return [(jax.tree_util.keystr(path), leaf) for path, leaf in paths]

    def _array(self, value: Any, wide: bool, jax: Any) -> Leaf:
        sharding, placed = "", 0
        scalar = next((kind for kind in _SCALARS if isinstance(value, kind)), None)
        if scalar is not None and not hasattr(value, "dtype"):
            leaf = Leaf((), dtype_name(_SCALARS[scalar], wide=wide), weak=scalar is not bool)
        elif scalar is not None:  # a number with a type, as NumPy and JAX have them
            leaf = Leaf((), dtype_name(value.dtype, wide=wide), bool(getattr(value, "weak_type", False)))
        elif hasattr(value, "dtype") and hasattr(value, "shape"):
            if isinstance(value, jax.Array) and not isinstance(value, jax.core.Tracer):
                if value.committed:
                    sharding, placed = sharding_text(value.sharding), _hash(value.sharding)
            elif getattr(value, "sharding", None) is not None and hasattr(value.sharding, "device_set"):
                sharding, placed = sharding_text(value.sharding), _hash(value.sharding)
            dtype = dtype_name(value.dtype, wide=wide)
            leaf = Leaf(tuple(value.shape), dtype, bool(getattr(value, "weak_type", False)), sharding, placed)
        else:
            leaf = self._static(value)
        return self._same(leaf)

    def _static(self, value: Any) -> Leaf:
        if callable(value) and not isinstance(value, type):
            return self._same(Leaf(static=_function_text(value), static_hash=_hash(self._identities.of(value))))
        return self._same(Leaf(static=static_text(value) or "''", static_hash=_hash(value)))

    def _same(self, leaf: Leaf) -> Leaf:
        if len(self._interned) >= self._LEAVES_REMEMBERED:
            self._interned.clear()
        return self._interned.setdefault(leaf, leaf)


def _transformation(tracer: Any) -> str:
    """The transformation that a tracer belongs to, by its kind."""
    kind = type(tracer).__name__.lower()
    if "batch" in kind:
        return "vmap"
    return "grad" if "jvp" in kind or "linear" in kind or kind == "jaxprtracer" else "another transformation"


def _hash(value: Any) -> int:
    """Its hash, as JAX's own cache has it; what cannot be hashed is told apart by address."""
    try:
        return hash(value)
    except Exception:  # noqa: BLE001 __hash__ is the user's; JAX asked it too and will tell them
        return id(value)


def _function_text(value: Any) -> str:
    return value.__name__ if isinstance(value, (FunctionType, MethodType)) else static_text(value)


def _arguments(call: Call) -> Iterator[tuple[str, Any, bool]]:
    """Each argument of a call: its name, its value, whether it is static."""
    static_positions = set(_integers(call.options.get("static_argnums")))
    static_names = set(_strings(call.options.get("static_argnames")))
    parameters = itertools.chain(parameter_names(call.function), itertools.repeat(None))
    for position, (value, parameter) in enumerate(zip(call.args, parameters, strict=False)):
        name = parameter or str(position)
        yield name, value, position in static_positions or name in static_names
    for name, value in call.kwargs.items():
        yield name, value, name in static_names
    for name, value in (primitive_parameters(call.function) or {}).items():
        yield name, value, True


def _integers(value: Any) -> tuple[int, ...]:
    return (value,) if isinstance(value, int) else tuple(value or ())


def _strings(value: Any) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else tuple(value or ())


def parameter_names(function: Any) -> list[str]:
    """Names of the positional parameters that a caller of `function` fills, as far as they are known."""
    skipped, keywords = 0, set()
    for item in unwrapped(function):
        if isinstance(item, functools.partial):
            skipped += len(item.args)
            keywords |= set(item.keywords)
        elif isinstance(item, MethodType) or _is_object(item):
            skipped += 1  # self
    code = code_of(function)
    if code is None:
        return []
    return [name for name in code.co_varnames[: code.co_argcount][skipped:] if name not in keywords]


def _is_object(item: Any) -> bool:
    """A callable object of the user's, called through the method of its type."""
    return not isinstance(item, FunctionType) and not type(item).__module__.startswith(("jax", "functools"))


def read_config(jax: Any) -> tuple[tuple[str, str], ...]:
    """What of the configuration matters to a compilation, as it holds in this thread now."""
    pairs = [(name, _config_text(getattr(jax.config, name, None))) for name in CONFIG_NAMES]
    get_mesh = getattr(jax.sharding, "get_abstract_mesh", None)
    mesh = get_mesh() if get_mesh is not None else None
    if mesh is not None and not mesh.empty:
        pairs.append(("mesh", ", ".join(f"{name}: {size}" for name, size in mesh.shape.items())))
    return tuple(pairs)


def _config_text(value: Any) -> str:
    return str(value) if value is None or type(value) in (bool, int, float, str) else str(getattr(value, "name", value))
