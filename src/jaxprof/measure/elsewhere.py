"""Compiling without running: for a device of this process, or for one that is not here (JAX's public topologies).

The arguments are shapes only, so a program that needs eight large devices can be compiled on a laptop. How arguments
are spread over several devices is said by the caller, or by one rule: arrays that share the leading size of the last
argument's first array (the batch, in `f(parameters, batch)`) are split along it, everything else is replicated.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any

from jaxprof.engine.request import CompileRequest
from jaxprof.errors import JaxprofError, UsageError
from jaxprof.events import Event, RunFinished
from jaxprof.measure.control import Cancelled, RunControl
from jaxprof.measure.failure import explain
from jaxprof.measure.recorder import Recorder
from jaxprof.measure.startup import start_jax


def compile_request(request: CompileRequest, emit: Callable[[Event], None], control: RunControl) -> None:
    """Emits the events of a compile: phases, texts, cost, memory, and `RunFinished`. Raises nothing."""
    recorder = Recorder(emit, control)
    try:
        _compile(request, recorder)
        emit(RunFinished(status="ok"))
    except Cancelled:
        emit(RunFinished(status="cancelled", error="cancelled"))
    except Exception as error:  # noqa: BLE001 - whatever the user's function or the compiler raises is the result
        failure = explain(error)
        emit(RunFinished(status="failed", error=failure.error, advice=failure.advice, traceback=failure.traceback))


def _compile(request: CompileRequest, recorder: Recorder) -> None:
    import jax
    import numpy as np

    from jaxprof.measure.stages import compile_stages
    from jaxprof.workloads.find import find

    start_jax(recorder, request.device)
    workload = find(request.workload, request.arguments)
    variant = workload.variant(request.variant)
    if variant.how == "numpy":
        raise UsageError(
            f"{workload.name} {variant.name} is NumPy: there is nothing to compile", "Choose a jit variant."
        )
    with recorder.phase("inputs"):
        inputs = variant.arguments(workload.inputs(request.parameters, np.random.default_rng(request.seed)))
        shapes = _abstract(inputs)
    if request.platform:
        shapes = _placed(shapes, request, recorder)
    function = variant.build(request.parameters)
    precision = jax.default_matmul_precision(variant.precision) if variant.precision else nullcontext()
    with precision:
        compile_stages(recorder, function, shapes, keep_constants=request.keep_constants)


def _abstract(inputs: Sequence[Any]) -> tuple[Any, ...]:
    """The inputs as shapes; Python scalars stay what they are (they are weakly typed)."""
    import jax
    import numpy as np

    def leaf(value: Any) -> Any:
        if isinstance(value, np.ndarray | np.generic):
            return jax.ShapeDtypeStruct(value.shape, jax.dtypes.canonicalize_dtype(value.dtype))
        return value

    return tuple(jax.tree.map(leaf, value) for value in inputs)


def _placed(shapes: tuple[Any, ...], request: CompileRequest, recorder: Recorder) -> tuple[Any, ...]:
    """The shapes on the devices of a topology, each with its sharding; says what was split."""
    import jax
    from jax.experimental import topologies
    from jax.sharding import NamedSharding, PartitionSpec, SingleDeviceSharding

    with recorder.phase("topology"):
        if request.platform == "tpu":
            topology = topologies.get_topology_desc(request.topology, platform="tpu")
        else:
            topology = topologies.get_topology_desc(
                platform=request.platform,
                topology_name=request.topology_name,
                target_config=request.target_config,
                topology=request.topology,
            )
    if len(topology.devices) < request.devices:
        raise JaxprofError(f"the topology {request.topology} has {len(topology.devices)} devices only")
    if request.devices == 1:
        alone = SingleDeviceSharding(topology.devices[0])
        return tuple(jax.tree.map(lambda leaf: _with_sharding(leaf, alone), argument) for argument in shapes)
    mesh = topologies.make_mesh(topology, (request.devices,), ("data",))
    axes = _chosen_axes(shapes, request.shard) if request.shard else _batch_axes(shapes, request.devices)
    split: list[str] = []

    def place(number: int, leaf: Any) -> Any:
        axis = axes.get(number)
        if not hasattr(leaf, "shape") or axis is None or not _is_batch(leaf, axis, shapes, number, request):
            return _with_sharding(leaf, NamedSharding(mesh, PartitionSpec()))
        split.append(f"{leaf.dtype}{list(leaf.shape)} of argument {number} along axis {axis}")
        return _with_sharding(leaf, NamedSharding(mesh, PartitionSpec(*([None] * axis), "data")))

    placed = tuple(
        jax.tree.map(lambda leaf, at=number: place(at, leaf), argument) for number, argument in enumerate(shapes)
    )
    recorder.warn(
        "sharding",
        f"over {request.devices} devices: "
        + ("; ".join(split) + "; the rest" if split else "everything")
        + " is replicated",
        "" if request.shard else "--shard ARGUMENT=AXIS says it otherwise.",
    )
    return placed


def _with_sharding(leaf: Any, sharding: Any) -> Any:
    import jax

    return jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=sharding) if hasattr(leaf, "shape") else leaf


def _chosen_axes(shapes: tuple[Any, ...], shard: Sequence[str]) -> dict[int, int]:
    axes: dict[int, int] = {}
    for text in shard:
        argument, equals, axis = text.partition("=")
        if not equals or not argument.isdecimal() or not axis.isdecimal() or int(argument) >= len(shapes):
            raise UsageError(
                f"cannot read --shard {text!r}", f"ARGUMENT=AXIS with an argument from 0 to {len(shapes) - 1}, as 1=0."
            )
        axes[int(argument)] = int(axis)
    return axes


def _leading(shapes: tuple[Any, ...]) -> int | None:
    """The leading size of the last argument's first array that has one."""
    import jax

    for leaf in jax.tree.leaves(shapes[-1:]):
        if getattr(leaf, "shape", ()):
            return int(leaf.shape[0])
    return None


def _batch_axes(shapes: tuple[Any, ...], devices: int) -> dict[int, int]:
    leading = _leading(shapes)
    return {} if leading is None or leading % devices else dict.fromkeys(range(len(shapes)), 0)


def _is_batch(leaf: Any, axis: int, shapes: tuple[Any, ...], number: int, request: CompileRequest) -> bool:
    """Whether this array is one to split. Raises UsageError where it was asked for and cannot be."""
    if len(leaf.shape) <= axis:
        return False
    if not request.shard:
        return bool(leaf.shape[axis] == _leading(shapes))
    if leaf.shape[axis] % request.devices:
        raise UsageError(
            f"argument {number}, {leaf.dtype}{list(leaf.shape)}, cannot be split along axis {axis} "
            f"over {request.devices} devices",
            "Its size there must be a multiple of the number of devices.",
        )
    return True
