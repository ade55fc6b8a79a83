"""How a program's inputs are placed on a mesh: as the command line requests, as the code sets, or unspecified.

For each array the first of these that specifies it counts: `--shard`, the companion function `NAME_shardings`, the
array's own `NamedSharding`, the `in_shardings` of the function's `jit`, the declaration of a built-in workload. Nothing
is guessed from sizes, because a weight may be as long as the batch. An array that nothing specifies is left to XLA's
propagation, as `jax.jit` leaves an array that is not committed to devices, or is replicated if the program names no
mesh at all.

A spec has one entry for each dimension, separated by commas: the name of a mesh axis, several names joined by `+`, or
`-` for none. `data,-` is `PartitionSpec("data", None)`; `PartitionSpec`'s own form, `P('data', None)`, is read as well.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec, Sharding

from jaxprof.base.errors import UsageError, unknown_name
from jaxprof.base.values import frozen
from jaxprof.workloads.specs import split_shard

DEFAULT_AXIS = "data"
_NOTHING = ("-", "", "None", "none", "*")
_WRITTEN = re.compile(r"^(?:P|PartitionSpec)\((.*)\)$", re.DOTALL)


@frozen(kw_only=True)
class ShardedLeaf:
    """One array of the arguments (or a Python number, which has no dimensions)."""

    number: int
    """Number of the leaf among all leaves of all arguments."""
    argument: int
    name: str
    """The argument's name, and the path to the leaf: `params/layers/0/kernel`."""
    written: str
    """Name of the leaf as an input of a program, as JAX writes it: `params['layers'][0].kernel`."""
    value: Any

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(getattr(self.value, "shape", ()))

    @property
    def words(self) -> str:
        """Type and name: `float32[128,64] x`."""
        dtype = getattr(self.value, "dtype", type(self.value).__name__)
        return f"{dtype}[{','.join(map(str, self.shape))}] {self.name}"


def leaves_of(arguments: Sequence[Any], names: Sequence[str]) -> tuple[ShardedLeaf, ...]:
    """Return the leaves of the arguments; an argument without a name is named by its number."""
    sharded: list[ShardedLeaf] = []
    for number, argument in enumerate(arguments):
        named = number < len(names)
        name, written = (names[number], names[number]) if named else (str(number), f"args[{number}]")
        for path, value in jax.tree_util.tree_flatten_with_path(argument)[0]:
            way = jax.tree_util.keystr(path, simple=True, separator="/") if path else ""
            sharded.append(
                ShardedLeaf(
                    number=len(sharded),
                    argument=number,
                    name=f"{name}/{way}" if way else name,
                    written=written + jax.tree_util.keystr(path),
                    value=value,
                )
            )
    return tuple(sharded)


def make_mesh(axes: Mapping[str, int], devices: Sequence[Any]) -> Mesh:
    """Return a mesh with these axes over the first of `devices`. Raises UsageError if there are too few."""
    needed = math.prod(axes.values())
    if needed > len(devices):
        listed = ",".join(f"{name}={size}" for name, size in axes.items())
        raise UsageError(f"the mesh {listed} has {needed} devices, but the target has {len(devices)}")
    return Mesh(np.array(devices[:needed], dtype=object).reshape(tuple(axes.values())), tuple(axes))


def context_mesh() -> Mesh | None:
    """Return the mesh that the code set with `jax.set_mesh`; None if it set none."""
    if hasattr(jax.sharding, "get_mesh"):
        current = jax.sharding.get_mesh()
        return None if current.empty else current
    abstract = jax.sharding.get_abstract_mesh()  # up to jax 0.7, only the mesh's names and sizes are public
    return None if abstract.empty else make_mesh(abstract.shape, jax.devices())


def read_spec(text: str, mesh: Mesh) -> PartitionSpec:
    """Return the spec for `mesh` that `text` describes. Raises UsageError naming the mesh's axes."""
    written = _WRITTEN.match(text.strip())
    body = written[1] if written else text.strip()
    if body.isdecimal() and len(body) < 4:
        return PartitionSpec(*[None] * int(body), mesh.axis_names[0])
    entries: list[Any] = []
    # The commas outside parentheses.
    parts = [part for part in re.split(r",(?![^(]*\))", body) if part.strip() or body.count(",")] if body else []
    for part in parts:
        axes = tuple(name.strip(" '\"") for name in re.split(r"[+,]", part.strip("() ")) if name.strip(" '\""))
        if len(axes) <= 1 and (axes[0] if axes else "") in _NOTHING:
            entries.append(None)
            continue
        for axis in axes:
            if axis not in mesh.axis_names:
                raise unknown_name("axis of the mesh", axis, map(str, mesh.axis_names))
        entries.append(axes if len(axes) > 1 else axes[0])
    return PartitionSpec(*entries)


def specs_of_options(leaves: Sequence[ShardedLeaf], shard: Sequence[str], mesh: Mesh) -> dict[int, PartitionSpec]:
    """Return the specs of `--shard`, by the leaf's number; if several fit a leaf, the last one.

    A spec of a whole argument applies to those of its arrays that have as many dimensions; one that names an array must
    fit it. Raises UsageError for a spec that fits nothing or cannot be read.
    """
    specs: dict[int, PartitionSpec] = {}
    for text in shard:
        selector, written = split_shard(text)
        spec = read_spec(written, mesh)
        selected = [leaf for leaf in leaves if _selects(selector, leaf)]
        fitting = [leaf for leaf in selected if len(spec) <= len(leaf.shape)]
        if not selected:
            names = [*(leaf.name.partition("/")[0] for leaf in leaves), *(leaf.name for leaf in leaves)]
            raise unknown_name("argument to shard", selector, list(dict.fromkeys(names)))
        if not fitting:
            raise UsageError(
                f"--shard {text}: no array of {selector} has {len(spec)} dimensions",
                f"Its arrays: {', '.join(leaf.words for leaf in selected[:4])}.",
            )
        for leaf in fitting:
            _check_fit(leaf, spec, mesh, f"--shard {text}")
            specs[leaf.number] = spec
    return specs


def _selects(selector: str, leaf: ShardedLeaf) -> bool:
    """Whether the selector is the argument's name or number, or the path to the leaf or to one of its containers."""
    numbered = "/".join((str(leaf.argument), *leaf.name.split("/")[1:]))
    return any(
        fnmatchcase(name, selector) or name.startswith(f"{selector}/") or fnmatchcase(name, f"{selector}/*")
        for name in (leaf.name, numbered)
    )


def companion_specs(
    leaves: Sequence[ShardedLeaf], made: Any, mesh: Mesh, origin: str, *, strict: bool = True
) -> dict[int, PartitionSpec]:
    """Return the specs in `made`, what `NAME_shardings` is or returns: a tuple or list with an entry for each argument,
    or the only argument's entry.

    An entry is a PartitionSpec, a NamedSharding, a spec as text, None (unspecified), or a tree of these that is a
    prefix of the argument. Raises UsageError if it does not fit; for a size that does not divide, only if `strict`.
    """
    count = 1 + max((leaf.argument for leaf in leaves), default=-1)
    several = type(made) is tuple or (type(made) is list and count != 1)  # a list can be the tree of the only argument
    entries = made if several else (made,)
    if len(entries) != count:
        raise UsageError(
            f"{origin} returned {len(entries)} shardings for {count} arguments",
            "Return one for each argument; None leaves it unspecified.",
        )
    specs: dict[int, PartitionSpec] = {}
    for number, entry in enumerate(entries):
        own = [leaf for leaf in leaves if leaf.argument == number]
        assignments = [entry] * len(own) if _is_one(entry) else jax.tree.leaves(entry, is_leaf=_is_one)
        if len(assignments) != len(own):
            raise UsageError(
                f"{origin}, argument {number}: {len(assignments)} shardings for {len(own)} arrays",
                "Return one for all of them, or a tree like the argument.",
            )
        for leaf, assigned in zip(own, assignments, strict=True):
            if assigned is None:
                continue
            spec = assigned
            if isinstance(assigned, str):
                spec = read_spec(assigned, mesh)
            elif isinstance(assigned, NamedSharding):
                spec = assigned.spec
            if not isinstance(spec, PartitionSpec):
                raise UsageError(
                    f"{origin}: {assigned!r} is not a sharding",
                    "It must be a PartitionSpec such as P('data'), or None.",
                )
            if len(spec) > len(leaf.shape) and _is_one(entry):
                continue
            if strict:
                _check_fit(leaf, spec, mesh, origin)
            if not _misfits(leaf, spec, mesh):
                specs[leaf.number] = spec
    return specs


def _is_one(entry: Any) -> bool:
    return entry is None or isinstance(entry, PartitionSpec | Sharding | str)


def with_specs(arguments: tuple[Any, ...], specs: Mapping[int, PartitionSpec], mesh: Mesh) -> tuple[Any, ...]:
    """Return the arguments, with the leaves of these numbers replaced by shapes with that spec over `mesh`."""
    leaves, tree = jax.tree.flatten(arguments)
    for number, spec in specs.items():
        leaf = leaves[number]
        leaves[number] = jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=NamedSharding(mesh, spec))
    placed: tuple[Any, ...] = jax.tree.unflatten(tree, leaves)
    return placed


def own_sharding(value: Any) -> NamedSharding | None:
    """Return the sharding over a mesh of an array or a shape; None if it has none, or one device."""
    sharding = getattr(value, "sharding", None)
    return sharding if isinstance(sharding, NamedSharding) and not sharding.mesh.empty else None


def _misfits(leaf: ShardedLeaf, spec: PartitionSpec, mesh: Mesh) -> tuple[int, int] | None:
    """Return the first dimension that cannot be split evenly, and the number of parts; None if all can."""
    for dimension, entry in enumerate(spec):
        axes = entry if isinstance(entry, tuple) else (entry,)  # None splits nothing
        parts = math.prod(mesh.shape.get(axis, 1) for axis in axes)
        if dimension < len(leaf.shape) and leaf.shape[dimension] % parts:
            return dimension, parts
    return None


def _check_fit(leaf: ShardedLeaf, spec: PartitionSpec, mesh: Mesh, origin: str) -> None:
    if misfit := _misfits(leaf, spec, mesh):
        dimension, parts = misfit
        raise UsageError(
            f"{origin}: {leaf.words} cannot be split along dimension {dimension} into {parts}",
            f"Its size there must be a multiple of {parts}.",
        )


def split_text(leaves: Sequence[ShardedLeaf], specs: Mapping[int, PartitionSpec]) -> list[str]:
    """Return the split arrays as text, grouping an argument's arrays of the same spec: `float32[512,784] x as data`."""
    groups: dict[tuple[int, str], list[ShardedLeaf]] = {}
    for leaf in leaves:
        spec = specs.get(leaf.number)
        if spec is not None and any(entry is not None for entry in spec):
            entries = (entry if isinstance(entry, tuple) else (entry or "-",) for entry in spec)
            groups.setdefault((leaf.argument, ",".join("+".join(map(str, axes)) for axes in entries)), []).append(leaf)
    return [
        f"{group[0].words}{f' and {len(group) - 1} more' if len(group) > 1 else ''} as {words}"
        for (_, words), group in groups.items()
    ]


def call_companion(companion: Callable[..., Any], mesh: Mesh) -> Any:
    """Return what `NAME_shardings` returns; it is called with the mesh if it takes an argument."""
    from jaxprof.workloads.callables import signature_of

    signature = signature_of(companion)
    return companion(mesh) if signature is not None and signature.parameters else companion()
