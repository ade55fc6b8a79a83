"""The signature of a call: everything that a compilation depends on, as far as it can be seen. That is the names and
leaves of the arguments, static arguments, options, configuration, and the function's identity.

Signatures outlive the call and are compared with later ones: they hold text and numbers, no arrays and no functions.
"""

from __future__ import annotations

import functools
import inspect
import itertools
import sys
from collections.abc import Iterator, Mapping
from types import MethodType
from typing import Any

from jaxprof.base.values import dataclass, field
from jaxprof.events import ProgramArray, SignatureLeaf
from jaxprof.recorder.compiles.arguments import (
    NUMPY,
    OTHER,
    TRACER,
    Leaf,
    LeafReader,
    Static,
    TreeReader,
    array_bytes,
    dtype_name,
    hash_of,
    is_narrowed,
    static_text,
)
from jaxprof.recorder.compiles.call_site import Made, ObservedCall
from jaxprof.recorder.compiles.functions import (
    Identities,
    code_of,
    is_called_through_its_type,
    primitive_parameters,
    wrapper_chain,
)
from jaxprof.recorder.frame_owner import JAX, file_kind
from jaxprof.recorder.samples.states import WORTH_COPYING_BYTES

LEAVES_SHOWN = 64
CONFIG_NAMES = (
    "jax_enable_x64",
    "jax_default_matmul_precision",
    "jax_numpy_dtype_promotion",
    "jax_numpy_rank_promotion",
    "jax_default_prng_impl",
    "jax_threefry_partitionable",
    "jax_default_device",
    "jax_debug_nans",
    "jax_debug_infs",
    "jax_disable_most_optimizations",
)
"""The options of `jax.config` that make JAX trace or compile again, by their public names."""


@dataclass(slots=True)
class Signature:
    """Everything by which compilations are compared: what `digest` covers never changes."""

    function: object = None
    """Identifies the function object; None if it was not seen."""
    written: object = field(default=None, compare=False)
    """Identifies a library's wrapper of the function, which may pass JAX several functions for one of the user's."""
    names: tuple[str, ...] = ()
    leaves: tuple[Leaf, ...] = ()
    keywords: tuple[str, ...] = ()
    """Names of the arguments passed by name: JAX compiles again if they are passed by position."""
    structure: int = 0
    """Hash of the arguments' containers, and of what they hold besides leaves."""
    statics: tuple[tuple[str, Static], ...] = field(default=(), compare=False)
    """The part of `structure` that can be written as text: the path of a node or field, and what it holds."""
    under: str = ""
    """Transformations through which the jit was called: `vmap`, `grad`."""
    options: tuple[tuple[str, str], ...] = ()
    config: tuple[tuple[str, str], ...] = ()
    numpy: Mapping[int, int] = field(default_factory=dict, compare=False)
    """Bytes that every call copies to the device, by the index of each NumPy leaf, which causes no new compilation."""
    narrowed: Mapping[int, str] = field(default_factory=dict, compare=False)
    """Dtype of each leaf of `numpy` that is converted at every call, because JAX has no 64-bit types enabled."""
    replaced: frozenset[int] = field(default=frozenset(), compare=False)
    """The leaves of `numpy` that the call's result replaces, so that only the first call has them."""
    aligned: frozenset[int] = field(default=frozenset(), compare=False)
    """The leaves of `numpy` whose memory a device on the host could use without a copy."""
    shared: frozenset[int] = field(default=frozenset(), compare=False)
    """The leaves of `numpy` that are used in place, without a copy."""
    numbers: int = field(default=0, compare=False)
    """Python's numbers among the leaves. A result that takes the place of one is an array, whose type is as weak only
    if it depends on nothing else."""
    donated: Mapping[str, int] = field(default_factory=dict, compare=False)
    """Index of each donated leaf, by JAX's own name for it."""
    made: Made | None = field(default=None, compare=False)
    """How the function was made, if another function makes it."""
    digest: int = field(default=0, compare=False, repr=False)

    def __post_init__(self) -> None:
        content = (self.function, self.names, self.leaves, self.keywords, self.structure, self.under)
        self.digest = hash((*content, self.options, self.config))

    def __hash__(self) -> int:
        return self.digest

    def rows(self) -> list[SignatureLeaf]:
        """Return the leaves as the ledger shows them, at most `LEAVES_SHOWN`."""
        return [
            SignatureLeaf(
                name=name,
                type=leaf.type,
                static=leaf.is_static,
                weak_type=leaf.weak_type,
                sharding=leaf.sharding,
                bytes=self.numpy.get(at),
                narrowed=self.narrowed.get(at, ""),
                replaced=at in self.replaced,
                zero_copy=at in self.shared,
            )
            for at, (name, leaf) in enumerate(zip(self.names[:LEAVES_SHOWN], self.leaves, strict=False))
        ]

    def same_function(self, other: Signature) -> bool:
        """Whether both belong to the same function object, as far as the user can tell."""
        return self.function == other.function or (self.written is not None and self.written == other.written)

    @property
    def numpy_bytes(self) -> int:
        """Bytes that every such call copies from NumPy to the device, over all leaves."""
        return sum(size for at, size in self.numpy.items() if at not in self.replaced | self.shared)

    def unused_donations(self, taken: Mapping[str, bool]) -> list[ProgramArray]:
        """Return the donated leaves that are `taken` (by JAX's name) but whose buffer no output can reuse."""
        unused = [at for name, at in self.donated.items() if taken.get(name) is False]
        return [
            ProgramArray(name=self.names[at], type=leaf.type, bytes=array_bytes(leaf.shape, leaf.dtype))
            for at in unused
            for leaf in (self.leaves[at],)
        ]

    @property
    def known(self) -> bool:
        return self.function is not None or bool(self.leaves)


class ConfigurationReader:
    """Reads the configuration as text. It rarely changes, so equal texts are the same object."""

    def __init__(self) -> None:
        self._values: tuple[Any, ...] = ()
        self._words: tuple[tuple[str, str], ...] = ()

    def read(self, jax: Any) -> tuple[tuple[str, str], ...]:
        """Return each option with its current value in this thread, and the mesh, if one is set."""
        config = jax.config
        mesh = jax.sharding.get_abstract_mesh()
        values = (*[getattr(config, name, None) for name in CONFIG_NAMES], mesh)
        if values != self._values:
            words = [(name, _words(value)) for name, value in zip(CONFIG_NAMES, values, strict=False)]
            if not mesh.empty:
                words.append(("mesh", ", ".join(f"{name}: {size}" for name, size in mesh.shape.items())))
            self._values, self._words = values, tuple(words)
        return self._words


def _words(value: Any) -> str:
    return str(value) if value is None or type(value) in (bool, int, float, str) else str(getattr(value, "name", value))


@dataclass(slots=True)
class _CallParts:
    """The parts of a call. Lives only while the call is handled."""

    names: list[str] = field(default_factory=list)
    leaves: list[Leaf] = field(default_factory=list)
    objects: list[Any] = field(default_factory=list)
    """The user's values behind the leaves."""
    structures: list[int] = field(default_factory=list)
    statics: dict[str, Static] = field(default_factory=dict)
    numpy: dict[int, int] = field(default_factory=dict)
    narrowed: dict[int, str] = field(default_factory=dict)
    aligned: set[int] = field(default_factory=set)
    numbers: int = 0
    donated: dict[str, int] = field(default_factory=dict)
    under: set[str] = field(default_factory=set)


@dataclass(slots=True)
class _UserLayout:
    """Order and names of a program's leaves in the user's call. Holds none of the user's objects."""

    names: list[str] = field(default_factory=list)
    leaves: list[int | Leaf] = field(default_factory=list)
    """Index of each leaf among the program's leaves, or the leaf itself if the wrapper kept it from the program."""
    structures: list[int] = field(default_factory=list)
    statics: dict[str, Static] = field(default_factory=dict)

    def add(self, name: str, leaf: int | Leaf) -> None:
        self.names.append(name)
        self.leaves.append(leaf)


class SignatureReader:
    """Reads calls into signatures; remembers, as text, what many calls have in common."""

    def __init__(self) -> None:
        self._identities = Identities()
        self._leaves = LeafReader(self._identities)
        self._trees = TreeReader()
        self._configuration = ConfigurationReader()
        self._written: dict[tuple[Any, ...], _UserLayout] = {}

    def read(self, call: ObservedCall) -> Signature:
        jax = sys.modules["jax"]
        config = self._configuration.read(jax)
        wide = ("jax_enable_x64", "True") in config
        inner = [self._leaves.dynamic(value, wide, jax) for value in call.inner_args or ()]
        if not call.found:
            return Signature(
                names=tuple(f"#{index}" for index in range(len(inner))), leaves=tuple(inner), config=config
            )
        arguments = self._arguments(call, wide, jax)
        if arguments.under and len(inner) == sum(not leaf.is_static for leaf in arguments.leaves):
            concrete = iter(inner)  # the program's own arguments, in place of the tracers
            arguments.leaves = [leaf if leaf.is_static else next(concrete) for leaf in arguments.leaves]
        if call.written is not None and call.written.function is not call.function:
            # A library's wrapper passes the user's values on in containers of its own, so the arguments get the names
            # of the user's call. What the wrapper kept from JAX is static; what it added keeps its own name.
            key = (self._identities.of(call.written.function), tuple(arguments.structures), tuple(call.written.kwargs))
            layout = self._written.get(key)
            if layout is None:
                layout = self._layout(arguments, call.written)
                # the trees in a static leaf have no hash that distinguishes them
                if not any(leaf.is_static for leaf in arguments.leaves):
                    if len(self._written) >= 500:
                        self._written.clear()
                    self._written[key] = layout
            moved = {at: to for to, at in enumerate(layout.leaves) if isinstance(at, int)}
            name_at = {at: name for name, at in arguments.donated.items()}
            arguments = _CallParts(
                names=layout.names,
                leaves=[arguments.leaves[entry] if isinstance(entry, int) else entry for entry in layout.leaves],
                structures=layout.structures,
                statics=layout.statics,
                numpy={to: arguments.numpy[at] for at, to in moved.items() if at in arguments.numpy},
                narrowed={to: arguments.narrowed[at] for at, to in moved.items() if at in arguments.narrowed},
                aligned={to for at, to in moved.items() if at in arguments.aligned},
                numbers=arguments.numbers,
                donated={name_at[at]: to for at, to in moved.items() if at in name_at},
                under=arguments.under,
            )
        primitive = primitive_parameters(call.function) is not None
        return Signature(
            function="primitive" if primitive else self._identities.of(call.function),
            written=self._identities.of(call.written.function) if call.written is not None else None,
            names=tuple(arguments.names),
            leaves=tuple(arguments.leaves),
            keywords=tuple(call.kwargs),
            structure=hash_of(tuple(arguments.structures)),
            statics=tuple(arguments.statics.items()),
            under=", ".join(sorted(arguments.under)),
            options=tuple((name, static_text(value, name)) for name, value in call.options.items() if value),
            config=config,
            numpy=arguments.numpy,
            narrowed=arguments.narrowed,
            aligned=frozenset(arguments.aligned),
            numbers=arguments.numbers,
            donated=arguments.donated,
        )

    def _arguments(self, call: ObservedCall, wide: bool, jax: Any) -> _CallParts:
        arguments = _CallParts()
        donated: set[Any] = set(_integers(call.options.get("donate_argnums")))
        donated |= set(_strings(call.options.get("donate_argnames")))
        for position, (name, value, static) in enumerate(arguments_of(call)):
            if static:
                arguments.names.append(name)
                arguments.leaves.append(self._leaves.static(value, name))
                arguments.objects.append(value)
                continue
            tree = self._trees.read(value)
            arguments.structures.append(tree.digest)
            if name in donated or (position < len(call.args) and position in donated):
                arguments.donated |= {name + path: len(arguments.names) + at for at, path in enumerate(tree.paths)}
            arguments.names.extend([name + path for path in tree.paths])
            arguments.objects.extend(tree.leaves)
            arguments.statics.update((name + path, part) for path, part in tree.statics)
            for leaf in tree.leaves:
                kind = self._leaves.kind(type(leaf), jax)
                if kind == TRACER:
                    arguments.under.add(_transformation(leaf))
                elif kind == NUMPY and (size := self._leaves.device_bytes(leaf, wide)) is not None:
                    arguments.numpy[len(arguments.leaves)] = size
                    if is_narrowed(leaf.dtype) and not wide:
                        arguments.narrowed[len(arguments.leaves)] = dtype_name(leaf.dtype, wide=True)
                    if size >= WORTH_COPYING_BYTES and self._leaves.is_aligned(leaf, wide):
                        arguments.aligned.add(len(arguments.leaves))
                elif kind == OTHER and isinstance(leaf, int | float | complex) and not isinstance(leaf, bool):
                    arguments.numbers += 1
                arguments.leaves.append(self._leaves.dynamic(leaf, wide, jax))
        return arguments

    def _layout(self, passed: _CallParts, written: ObservedCall) -> _UserLayout:
        """Match the program's leaves with those of the user's call. This depends on both trees, not on the arrays."""
        arguments = [(name, self._trees.read(value)) for name, value, _ in arguments_of(written)]
        # the arrays of the objects that a library's wrapper calls are arguments, too
        modules = filter(is_called_through_its_type, wrapper_chain(written.function)[1:])
        arguments += [("self", self._trees.read(item)) for item in modules]
        indices = _indices(passed, [leaf for _, tree in arguments for leaf in tree.leaves])
        layout = _UserLayout(structures=list(passed.structures))
        for argument, tree in arguments:
            layout.structures.append(tree.digest)
            layout.statics.update((argument + path, part) for path, part in tree.statics)
            for path, leaf in zip(tree.paths, tree.leaves, strict=True):
                positions = indices.get(id(leaf))
                if positions:
                    layout.add(argument + path, positions.pop(0))
                elif not hasattr(leaf, "dtype") and argument != "self":
                    layout.add(argument + path, self._leaves.static(leaf, argument + path))
        left = {at for positions in indices.values() for at in positions}
        for at, leaf in enumerate(passed.leaves):
            if at in left:
                layout.add(passed.names[at], at)
            elif leaf.is_static:
                layout.structures.append(leaf.static_hash)
        return layout


def _indices(inner: _CallParts, written: list[Any]) -> dict[int, list[int]]:
    """Return the indices of the user's values among the program's leaves, by their addresses. If none is found (`pmap`
    has split them over its devices), they are matched by order, unless the shapes differ."""
    passed = {id(value) for value in written}
    indices: dict[int, list[int]] = {}
    dynamic = [at for at, leaf in enumerate(inner.leaves) if not leaf.is_static]
    for at in dynamic:
        indices.setdefault(id(inner.objects[at]), []).append(at)
    arrays = [value for value in written if hasattr(value, "dtype")]
    if not passed.isdisjoint(indices) or len(arrays) > len(dynamic):
        return indices
    ordered: dict[int, list[int]] = {}
    for at, value in zip(dynamic, arrays, strict=False):
        if getattr(value, "shape", None) != getattr(inner.objects[at], "shape", None):
            return indices
        ordered.setdefault(id(value), []).append(at)
    return ordered | {index: [at] for index, at in enumerate(dynamic[len(arrays) :])}


def _transformation(tracer: Any) -> str:
    kind = type(tracer).__name__.lower()
    if "batch" in kind:
        return "vmap"
    return "grad" if "jvp" in kind or "linear" in kind or kind == "jaxprtracer" else "another transformation"


def arguments_of(call: ObservedCall) -> Iterator[tuple[str, Any, bool]]:
    """Yield each argument of a call: its name, its value, whether it is static."""
    static_positions = set(_integers(call.options.get("static_argnums")))
    static_names = set(_strings(call.options.get("static_argnames")))
    names = itertools.chain(parameter_names(call.function), further_names(call.function))
    for position, (value, name) in enumerate(zip(call.args, names, strict=False)):
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
    """Return the names of the positional parameters that a caller of `function` fills, as far as they are known."""
    skipped, keywords = 0, set()
    for item in wrapper_chain(function):
        if isinstance(item, functools.partial):
            skipped += len(item.args)
            keywords |= set(item.keywords)
        elif isinstance(item, MethodType) or is_called_through_its_type(item):
            skipped += 1  # self
    code = code_of(function)
    if code is None:
        return []
    return [name for name in code.co_varnames[: code.co_argcount][skipped:] if name not in keywords]


def further_names(function: Any) -> Iterator[str]:
    """Yield names for arguments beyond the named parameters: `args[0]`, or a number if there is no such parameter."""
    code, named = code_of(function), len(parameter_names(function))
    if code is None or not code.co_flags & inspect.CO_VARARGS or file_kind(code.co_filename) == JAX:
        return map(str, itertools.count(named))
    written = code.co_varnames[code.co_argcount + code.co_kwonlyargcount]
    return (f"{written}[{index}]" for index in itertools.count())
