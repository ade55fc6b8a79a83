"""Traces a function on this host's CPU devices and lowers it for other devices, with its own meshes and shardings.

A program that shards itself names devices: a `Mesh` of `jax.devices()` at module level, a `NamedSharding` in
`in_shardings`, the arrays of its state. Devices that are not here cannot hold an array. So the program is imported,
given its arguments and traced on as many CPU devices as the target has; `jax.export` then lowers it for the target's
platform. An exported program knows its meshes only by their shape, and is called on the target's mesh.

The settings of the function's own `jit` (shardings, donation, compiler options) are read from the equation that the
`jit` leaves in a jaxpr. This works for every wrapper that ends in `jax.jit`: flax's `nnx.jit`, equinox's `filter_jit`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import jax
import jax.extend.core
import numpy as np
from jax.sharding import Mesh, NamedSharding, Sharding

from jaxprof.base.values import frozen
from jaxprof.engine.measure.jax_settings import override
from jaxprof.engine.measure.static_leaves import NUMBERS, as_jitted, is_array

_JITS = ("jit", "pjit")
"""Primitive of a nested `jit`: its current name, and its name up to jax 0.7."""
_INPUT = re.compile(r'(?P<before>op_name="|loc\(")args\[(?P<number>\d+)\]')
_CUSTOM_CALL = re.compile(r"custom_call @\"?([\w.$]+)")


@frozen(kw_only=True)
class Traced:
    """The program of a function for given arguments."""

    name: str
    jaxpr: Any
    """Closed jaxpr, with one input for each slot."""
    slots: tuple[int | None, ...]
    """Number of the leaf, among those of the arguments, that is each input of the jaxpr; None for a constant."""
    constants: tuple[Any, ...]
    """Value of each input that is not a leaf; None for leaves."""
    in_shardings: tuple[Sharding | None, ...]
    """Sharding of each input in the function's own `jit`; None if it sets none."""
    out_shardings: tuple[Sharding | None, ...]
    donated: tuple[bool, ...]
    """Whether each input is donated."""
    compiler_options: dict[str, Any]

    def meshes(self) -> Iterator[Mesh]:
        """Yield the meshes of devices that the program names, its `jit`'s own first."""
        for sharding in (*self.in_shardings, *self.out_shardings):
            yield from _meshes(sharding)
        yield from _meshes(self.jaxpr)


def trace(function: Callable[..., Any], arguments: tuple[Any, ...], device: Any = None) -> Traced:
    """Return the program of `function`. Arrays among the arguments may be shapes only. Raises what the function raises.

    Python numbers are inputs of the program, unless the function needs their values (`static_argnums`). A kernel of
    Pallas asks the mesh in which it is traced for the kind of a `device` that is not here.
    """
    leaves, tree = jax.tree.flatten(arguments)
    arrays = [number for number, leaf in enumerate(leaves) if is_array(leaf)]
    with_numbers = [number for number, leaf in enumerate(leaves) if is_array(leaf) or isinstance(leaf, NUMBERS)]
    if with_numbers != arrays:
        try:
            return _trace(function, leaves, tree, with_numbers, device)
        except Exception:  # noqa: BLE001 - a function that checks its numbers may refuse a tracer with any error of its own
            pass  # nothing is hidden: traced again with the numbers themselves, it raises what is wrong with it
    return _trace(function, leaves, tree, arrays, device)


def _trace(function: Callable[..., Any], leaves: list[Any], tree: Any, dynamic: list[int], device: Any) -> Traced:
    """Return the program, with the leaves numbered `dynamic` as its inputs and the others as they are."""
    compiled = function if hasattr(function, "lower") else as_jitted(function)

    def call(*given: Any) -> list[Any]:
        filled = list(leaves)
        for number, value in zip(dynamic, given, strict=True):
            filled[number] = value
        with _mesh_of(device) if device is not None else nullcontext():
            results = compiled(*jax.tree.unflatten(tree, filled))
        return [leaf for leaf in jax.tree.leaves(results) if is_array(leaf)]

    closed = jax.jit(call).trace(*(leaves[number] for number in dynamic)).jaxpr
    name = getattr(function, "__name__", "") or type(function).__name__
    leaf_numbers = {id(variable): number for variable, number in zip(closed.jaxpr.invars, dynamic, strict=True)}
    constants = {id(variable): value for variable, value in zip(closed.jaxpr.constvars, closed.consts, strict=True)}
    jits = [equation for equation in closed.jaxpr.eqns if equation.primitive.name in _JITS]
    if len(jits) != 1 or not all(
        id(operand) in leaf_numbers or id(operand) in constants or _is_literal(operand) for operand in jits[0].invars
    ):
        return Traced(
            name=name,
            jaxpr=closed,
            slots=tuple(dynamic),
            constants=(None,) * len(dynamic),
            in_shardings=(None,) * len(dynamic),
            out_shardings=(None,) * len(closed.out_avals),
            donated=(False,) * len(dynamic),
            compiler_options={},
        )
    # The program is what the only jit contains, including results that the caller drops (an optimiser's state that is
    # assigned to an object). Python runs the code around the jit at each call.
    (jitted,) = jits
    params = jitted.params
    return Traced(
        name=str(params.get("name") or name),
        jaxpr=params["jaxpr"],
        slots=tuple(leaf_numbers.get(id(variable)) for variable in jitted.invars),
        constants=tuple(_constant(variable, constants) for variable in jitted.invars),
        in_shardings=tuple(map(_set_sharding, params["in_shardings"])),
        out_shardings=tuple(map(_set_sharding, params["out_shardings"])),
        donated=tuple(params["donated_invars"]),
        compiler_options=dict(params.get("compiler_options_kvs") or ()),
    )


def _mesh_of(device: Any) -> AbstractContextManager[object]:
    kind = getattr(jax.sharding, "AbstractDevice", None)
    if "platform" not in getattr(kind, "__dataclass_fields__", ()):  # an older jax, in which nothing asks
        return nullcontext()
    abstract = kind(device.device_kind, getattr(device, "core_count", None), device.platform)  # type: ignore[misc]
    mesh = jax.sharding.AbstractMesh((1,), ("device",), (jax.sharding.AxisType.Auto,), abstract_device=abstract)
    return jax.sharding.use_abstract_mesh(mesh)


def _is_literal(variable: Any) -> bool:
    return isinstance(variable, jax.extend.core.Literal)


def _constant(variable: Any, constants: dict[int, Any]) -> Any:
    """Return the value of an input that is not a leaf, on the host, so that it belongs to no device."""
    value = variable.val if _is_literal(variable) else constants.get(id(variable))
    if isinstance(value, jax.Array) and isinstance(value.dtype, np.dtype):  # keys have a JAX dtype
        return np.asarray(value)
    return value


def _set_sharding(sharding: Any) -> Sharding | None:
    """Return a sharding, or None for JAX's private value for an unset one."""
    return sharding if isinstance(sharding, Sharding) else None


def _meshes(value: Any) -> Iterator[Mesh]:
    """Yield the meshes of devices in a sharding, a jaxpr, or the parameters of its equations."""
    if isinstance(value, Mesh):
        if not value.empty:
            yield value
    elif isinstance(value, NamedSharding):
        yield from _meshes(value.mesh)
    elif isinstance(
        value,
        jax.extend.core.ClosedJaxpr  # type: ignore[attr-defined, unused-ignore] # one class from jax 0.12 on, untyped
        | jax.extend.core.Jaxpr,
    ):
        for equation in value.eqns:
            for parameter in equation.params.values():
                yield from _meshes(parameter)
    elif isinstance(value, tuple | list):
        for part in value:
            yield from _meshes(part)


@frozen(kw_only=True)
class Program:
    """A traced program as a separate function, with one argument for each leaf that it takes."""

    function: Callable[..., Any]
    shapes: tuple[Any, ...]
    """Arguments of the program's call: shapes with their shardings."""
    donated: tuple[int, ...]
    """Numbers of the donated arguments."""
    options: dict[str, Any]
    """Options of `jax.jit` other than the donation."""

    @property
    def jitted(self) -> Any:
        return jax.jit(self.function, donate_argnums=self.donated, **self.options)


def program_of(traced: Traced, shardings: Sequence[Sharding | None], *, annotated: bool) -> Program:
    """Return the program with these shardings of its inputs.

    `annotated` keeps the result shardings of the function's own `jit`; without it, the program is for devices that its
    shardings do not name.
    """
    taken = [number for number, slot in enumerate(traced.slots) if slot is not None]
    run = jax.extend.core.jaxpr_as_fun(traced.jaxpr)

    def program(*args: Any) -> list[Any]:
        inputs = list(traced.constants)
        for number, value in zip(taken, args, strict=True):
            inputs[number] = value
        return list(run(*inputs))

    options: dict[str, Any] = {}
    if traced.compiler_options:
        options["compiler_options"] = traced.compiler_options
    if annotated:
        options["out_shardings"] = list(traced.out_shardings)
    return Program(
        function=_with_name(program, traced.name),
        shapes=tuple(_shape(traced.jaxpr.in_avals[number], shardings[number]) for number in taken),
        donated=tuple(at for at, number in enumerate(taken) if traced.donated[number]),
        options=options,
    )


def _shape(like: Any, sharding: Sharding | None) -> Any:
    weak = {"weak_type": True} if getattr(like, "weak_type", False) else {}
    return jax.ShapeDtypeStruct(like.shape, like.dtype, sharding=sharding, **weak)


def _with_name(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    function.__name__ = function.__qualname__ = re.sub(r"\W+", "_", name, flags=re.ASCII) or "program"
    return function


@frozen
class Devices:
    """The target's devices, by the number of this host's device that stands for each of them."""

    there: tuple[Any, ...]

    def mesh(self, mesh: Mesh) -> Mesh:
        """Return a mesh of this host's devices as one of the target's."""
        placed = np.empty(mesh.devices.size, dtype=object)
        placed[:] = [self.there[device.id] for device in mesh.devices.flat]
        return Mesh(placed.reshape(mesh.devices.shape), mesh.axis_names, axis_types=mesh.axis_types)

    def sharding(self, sharding: Sharding | None) -> Sharding | None:
        """Return a sharding over a mesh of this host as one over the target's; None for any other sharding."""
        if not isinstance(sharding, NamedSharding) or not isinstance(sharding.mesh, Mesh) or sharding.mesh.empty:
            return None
        kind = {"memory_kind": "pinned_host"} if sharding.memory_kind == "pinned_host" else {}
        return NamedSharding(self.mesh(sharding.mesh), sharding.spec, **kind)


def lower_for_target(program: Program, mesh: Mesh, devices: Devices, platform: str) -> Any:
    """Return the program, sharded over `mesh` of this host, as `jax.stages.Lowered` for the target's devices."""
    from jax import export

    # JAX refuses custom calls whose form may change between versions, because an exported program is meant to be kept.
    # This one is compiled at once, by the same version, so they are allowed.
    allowed: set[str] = set()
    portable: Any = None
    while portable is None:
        checks = [export.DisabledSafetyCheck.custom_call(target) for target in sorted(allowed)]
        try:
            portable = export.export(program.jitted, platforms=[platform], disabled_checks=checks)(*program.shapes)
        except ValueError as error:
            refused = set(_CUSTOM_CALL.findall(str(error))) if "custom calls" in str(error) else set()
            if refused <= allowed:
                raise
            allowed |= refused

    def call(*args: Any) -> Any:
        return portable.call(*args)

    shapes = [_shape(shape, devices.sharding(shape.sharding)) for shape in program.shapes]
    options = {name: value for name, value in program.options.items() if name != "out_shardings"}
    # The code around the call is not part of the program, so it gets no location in the user's code.
    with jax.set_mesh(devices.mesh(mesh)), override("jax_traceback_in_locations_limit", 0):
        jitted = jax.jit(_with_name(call, program.function.__name__), donate_argnums=program.donated, **options)
        return jitted.lower(*shapes)


def with_own_names(text: str, program: Program, names: Sequence[str]) -> str:
    """Return a text of the program with its own names: `names` for its arguments, and none of ours.

    An exported program is called by another one, whose name precedes the names of all its operations.
    """

    def own_name(match: re.Match[str]) -> str:
        number = int(match["number"])
        name = names[number] if number < len(names) else f"args[{number}]"
        if match["before"].startswith("op_name"):
            name = name.replace("\\", r"\\").replace("'", r"\'").replace('"', r"\"")
        return match["before"] + name

    outer = f"jit({program.function.__name__})"
    plain = text.replace(f"{outer}/call_exported/", "").replace(f"{outer}/call_exported", outer)
    return _INPUT.sub(own_name, plain)
