"""A call read into its signature: names and leaves of its arguments, options, configuration, and which function."""

from __future__ import annotations

import functools
import itertools
import sys
from collections.abc import Iterator
from types import FunctionType, MethodType
from typing import Any, Final

from jaxprof.program.compiles.call_site import Call
from jaxprof.program.compiles.configuration import ConfigurationReader
from jaxprof.program.compiles.functions import Identities, code_of, primitive_parameters, unwrapped
from jaxprof.program.compiles.leaves import TRACER, LeafReader, hash_of
from jaxprof.program.compiles.signature import Leaf, Signature
from jaxprof.program.compiles.values import static_text

STRUCTURES_REMEMBERED: Final = 1_000
_LEAF: Final = ("",)


class SignatureReader:
    """Reads calls into signatures; remembers, in words, what many calls have in common."""

    def __init__(self) -> None:
        self._identities = Identities()
        self._leaves = LeafReader(self._identities)
        self._configuration = ConfigurationReader()
        self._paths: dict[tuple[int, int], tuple[str, ...]] = {}
        """Names of the leaves of a container, by the hash of its structure and their number."""

    def read(self, call: Call) -> Signature:
        """The signature of a call, with the configuration as it is now."""
        jax = sys.modules["jax"]
        config = self._configuration.read(jax)
        wide = ("jax_enable_x64", "True") in config
        inner = [self._leaves.dynamic(value, wide, jax) for value in call.inner_args or ()]
        if not call.found:
            return Signature(
                names=tuple(f"#{index}" for index in range(len(inner))), leaves=tuple(inner), config=config
            )
        names: list[str] = []
        leaves: list[Leaf] = []
        structures: list[int] = []
        under: set[str] = set()
        for name, value, static in _arguments(call):
            if static:
                names.append(name)
                leaves.append(self._leaves.static(value))
                continue
            paths, values, structure = self._flat(value, jax)
            structures.append(structure)
            names.extend([name + path for path in paths])
            for leaf in values:
                leaves.append(self._leaves.dynamic(leaf, wide, jax))
                if self._leaves.kind(type(leaf), jax) == TRACER:
                    under.add(_transformation(leaf))
        if under:
            leaves = _as_called(leaves, inner)
        primitive = primitive_parameters(call.function) is not None
        return Signature(
            function="primitive" if primitive else self._identities.of(call.function),
            names=tuple(names),
            leaves=tuple(leaves),
            keywords=tuple(call.kwargs),
            structure=hash_of(tuple(structures)),
            under=", ".join(sorted(under)),
            options=tuple((name, static_text(value)) for name, value in call.options.items() if value),
            config=config,
        )

    def _flat(self, value: Any, jax: Any) -> tuple[tuple[str, ...], list[Any], int]:
        """Names (empty for what is a leaf itself), leaves and structure of one argument."""
        if isinstance(value, (bool, int, float, complex)) or type(value).__module__ == "numpy":
            return _LEAF, [value], 0
        leaves, structure = jax.tree_util.tree_flatten(value)
        if len(leaves) == 1 and jax.tree_util.treedef_is_leaf(structure):  # None has one node, too
            return _LEAF, leaves, 0
        digest = hash_of(structure)
        paths = self._paths.get((digest, len(leaves)))
        if paths is None:
            if len(self._paths) >= STRUCTURES_REMEMBERED:
                self._paths.clear()
            with_paths, _ = jax.tree_util.tree_flatten_with_path(value)
            paths = self._paths[digest, len(leaves)] = tuple(jax.tree_util.keystr(path) for path, _ in with_paths)
        return paths, leaves, digest


def _as_called(leaves: list[Leaf], inner: list[Leaf]) -> list[Leaf]:
    """The leaves with what the program itself is called with in the place of tracers, where it was seen."""
    if len(inner) != sum(not leaf.is_static for leaf in leaves):
        return leaves
    concrete = iter(inner)
    return [leaf if leaf.is_static else next(concrete) for leaf in leaves]


def _transformation(tracer: Any) -> str:
    """The transformation that a tracer belongs to, by its kind."""
    kind = type(tracer).__name__.lower()
    if "batch" in kind:
        return "vmap"
    return "grad" if "jvp" in kind or "linear" in kind or kind == "jaxprtracer" else "another transformation"


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
