"""Compiles without running: for a device of this process, or for one that is not here (JAX's public topologies).

The arguments are shapes only, so a program that needs eight large devices can be compiled on a laptop. A program that
names meshes or shardings is traced on CPU devices that stand for the target's, and exported (`measure.portable`); any
other program gets the target's devices directly. `measure.sharding` decides how its inputs are spread.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any

from jaxprof.base.errors import JaxprofError, UsageError
from jaxprof.engine.measure.control import Reporter, RunControl
from jaxprof.engine.measure.failure import conclude, is_out_of_memory
from jaxprof.engine.measure.startup import start_jax
from jaxprof.engine.protocol.request import CompileRequest
from jaxprof.events import Event

if TYPE_CHECKING:
    from jax.sharding import Mesh, PartitionSpec, Sharding

    from jaxprof.engine.measure.portable import Program, Traced
    from jaxprof.engine.measure.sharding import ShardedLeaf
    from jaxprof.engine.measure.stages import StagedProgram
    from jaxprof.workloads.model import Workload


def compile_request(request: CompileRequest, emit: Callable[[Event], None], control: RunControl) -> None:
    """Emit the events of a compile: phases, texts, cost, memory, and `RunFinished`. Raises nothing."""
    reporter = Reporter(emit, control)
    conclude(reporter, lambda: _compile_variant(request, reporter), BaseException)


def _compile_variant(request: CompileRequest, reporter: Reporter) -> None:
    import jax
    import numpy as np

    from jaxprof.engine.measure.environment import read_environment
    from jaxprof.engine.measure.sharding import make_mesh
    from jaxprof.engine.measure.stages import compile_stages
    from jaxprof.workloads.find import find

    start_jax(reporter, request.spec.device)
    reporter.emit(read_environment())
    workload = find(request.spec.target, request.spec.arguments, request.spec.argv)
    variant = workload.variant(request.spec.variant)
    if variant.how == "numpy":
        raise UsageError(
            f"{workload.name} {variant.name} is NumPy: there is nothing to compile", "Choose a jit variant."
        )
    mesh = make_mesh(request.mesh, jax.devices()) if request.mesh else None
    precision = jax.default_matmul_precision(variant.precision) if variant.precision else nullcontext()
    with precision, jax.set_mesh(mesh) if mesh is not None else nullcontext():
        with reporter.phase("inputs"):
            inputs = variant.arguments(
                workload.inputs(request.spec.parameters, np.random.default_rng(request.spec.seed))
            )
            shapes = abstract(inputs)
        function = variant.build(request.spec.parameters)

        def compile_with(reporter: Reporter, function: Any, shapes: tuple[Any, ...]) -> StagedProgram:
            if request.platform:
                return _TargetCompile(request, reporter, workload, mesh).compile(function, shapes)
            on_gpu, keep = jax.default_backend() == "gpu", request.spec.keep_constants
            return compile_stages(reporter, function, shapes, keep_constants=keep, ask_reasons=on_gpu)

        try:
            compile_with(reporter, function, shapes)
        except Exception as error:
            if is_out_of_memory(error):
                from jaxprof.engine.measure.remedies import try_remedies

                try_remedies(reporter, function, shapes, compile_with)
            raise


def abstract(inputs: Sequence[Any]) -> tuple[Any, ...]:
    """Return arguments as shapes, with arrays' sharding over a mesh. Python scalars stay: they are weakly typed."""
    import jax
    import numpy as np

    from jaxprof.engine.measure.sharding import own_sharding

    def leaf(value: Any) -> Any:
        if isinstance(value, np.ndarray | np.generic):
            return jax.ShapeDtypeStruct(value.shape, jax.dtypes.canonicalize_dtype(value.dtype))
        if isinstance(value, jax.Array):
            weak = {"weak_type": True} if getattr(value, "weak_type", False) else {}
            return jax.ShapeDtypeStruct(value.shape, value.dtype, sharding=own_sharding(value), **weak)
        return value

    return tuple(jax.tree.map(leaf, value) for value in inputs)


@contextmanager
def _skip_debug_calls() -> Iterator[list[str]]:
    """Make `jax.debug.print` and `jax.debug.callback` do nothing inside the block; each use adds its name to the list.
    They have no result, and JAX cannot lower them for a GPU that is not there."""
    import jax

    calls: list[str] = []

    def nothing(name: str) -> Callable[..., None]:
        def call(*_: Any, **__: Any) -> None:
            calls.append(f"jax.debug.{name}")

        return call

    kept = jax.debug.print, jax.debug.callback
    jax.debug.print, jax.debug.callback = nothing("print"), nothing("callback")  # type: ignore[assignment]
    try:
        yield calls
    finally:
        jax.debug.print, jax.debug.callback = kept


class _TargetCompile:
    """One program, and the devices of a topology for which it is compiled."""

    def __init__(self, request: CompileRequest, reporter: Reporter, workload: Workload, mesh: Mesh | None) -> None:
        self.request = request
        self.reporter = reporter
        self.workload = workload
        self.context = mesh
        """Mesh of `--mesh`, over this host's devices; None without one."""

    def compile(self, function: Callable[..., Any], arguments: tuple[Any, ...]) -> StagedProgram:
        """Compile the function for the topology, on shapes. Raises JaxprofError if that yields no HLO."""
        from jaxprof.engine.measure.portable import trace
        from jaxprof.engine.measure.sharding import leaves_of, with_specs
        from jaxprof.workloads.callables import arguments_by_name

        with self.reporter.phase("topology"):
            topology = self._topology()
        leaves = leaves_of(arguments, list(arguments_by_name(function)))
        left_out: AbstractContextManager[list[str]]
        left_out = _skip_debug_calls() if self.request.platform == "cuda" else nullcontext([])
        with self.reporter.phase("trace"), left_out as calls:
            traced = trace(function, arguments)
            mesh = self._mesh(leaves, traced)
            specs = self._specs(leaves, mesh) if mesh is not None else {}
            if mesh is not None and specs:  # what a program does may depend on the sharding of its inputs
                traced = trace(function, with_specs(arguments, specs, mesh))
            elif mesh is None and self.request.platform == "cuda" and "pallas_call[" in str(traced.jaxpr):
                traced = trace(function, arguments, topology.devices[0])
        if calls:
            self.reporter.warn("debug_calls_left_out", calls=" and ".join(sorted(set(calls))))
        if mesh is not None:
            program = self._compile_with_its_mesh(traced, leaves, specs, mesh, topology)
        else:
            program = self._compile_plain(traced, leaves, topology)
        if not program.hlo:
            raise JaxprofError(
                "this jaxlib can compile for absent devices, but does not return the HLO",
                "Use jax 0.10 or newer: --python names another interpreter.",
            )
        return program

    def _topology(self) -> Any:
        """Return JAX's description of the requested devices. Raises JaxprofError if it has another number of them."""
        from jax.experimental import topologies

        request = self.request
        if request.platform == "tpu":
            options = {"chip_config_name": request.chip_config} if request.chip_config else {}
            topology = topologies.get_topology_desc(request.topology, platform="tpu", **options)
        else:
            topology = topologies.get_topology_desc(
                platform=request.platform,
                topology_name=request.topology_name,
                target_config=request.target_config,
                topology=request.topology,
            )
        if request.devices not in (1, len(topology.devices)):
            raise JaxprofError(
                f"the topology {request.topology} has {len(topology.devices)} devices, not {request.devices}"
            )
        return topology

    def _mesh(self, leaves: Sequence[ShardedLeaf], traced: Traced) -> Mesh | None:
        """Return the program's mesh, over this host's devices: from `--mesh`, the context that its code set, the
        placement of its arrays, or its shardings. None if nothing names one."""
        from jax.sharding import Mesh

        from jaxprof.engine.measure.sharding import context_mesh, own_sharding

        if self.context is not None:
            return self.context
        current = context_mesh()
        if current is not None:
            return current
        owned = (own_sharding(leaf.value) for leaf in leaves)
        meshes = [*(sharding.mesh for sharding in owned if sharding is not None), *traced.meshes()]
        named = [mesh for mesh in meshes if isinstance(mesh, Mesh)]
        return max(named, key=lambda mesh: mesh.devices.size, default=None)

    def _specs(self, leaves: Sequence[ShardedLeaf], mesh: Mesh) -> dict[int, PartitionSpec]:
        """Return the specs by the leaf's number: from the command line, else the companion or a built-in workload."""
        from jaxprof.engine.measure.sharding import call_companion, companion_specs, specs_of_options

        declared = self.workload.shardings
        shardings = call_companion(declared, mesh) if callable(declared) else declared
        specs: dict[int, PartitionSpec] = {}
        if shardings:
            own = self.workload.origin != "built in"  # a built-in workload's sizes are chosen for one device
            specs = companion_specs(leaves, shardings, mesh, f"the shardings of {self.workload.name}", strict=own)
        return {**specs, **specs_of_options(leaves, self.request.shard, mesh)}

    def _compile_with_its_mesh(
        self,
        traced: Traced,
        leaves: Sequence[ShardedLeaf],
        specs: Mapping[int, PartitionSpec],
        mesh: Mesh,
        topology: Any,
    ) -> StagedProgram:
        """Export the program from this host's devices, and compile it for the same positions of the target's mesh."""
        from jax.sharding import NamedSharding

        from jaxprof.engine.measure.portable import Devices, lower_for_target, program_of
        from jaxprof.engine.measure.sharding import own_sharding

        shardings: list[Sharding | None] = []
        given: dict[int, PartitionSpec] = {}
        for slot, own in zip(traced.slots, traced.in_shardings, strict=True):
            sharding: Sharding | None = own
            if slot is not None:
                sharding = (
                    NamedSharding(mesh, specs[slot]) if slot in specs else own_sharding(leaves[slot].value) or own
                )
                if isinstance(sharding, NamedSharding):
                    given[slot] = sharding.spec
            shardings.append(sharding)
        self._report_sharding(leaves, given, mesh)
        program = program_of(traced, shardings, annotated=True)
        devices = Devices(self._order(mesh, topology))
        lower = partial(lower_for_target, program, mesh, devices, self.request.platform)
        return self._compile_program(program, traced, leaves, lower)

    def _compile_program(
        self, program: Program, traced: Traced, leaves: Sequence[ShardedLeaf], lower: Callable[[], Any] | None = None
    ) -> StagedProgram:
        """Compile the program and report its texts with the user's names; `lower`: lowers it for other devices."""
        from jaxprof.engine.measure.portable import with_own_names
        from jaxprof.engine.measure.stages import compile_traced

        jitted = program.jitted
        names = [leaves[slot].written for slot in traced.slots if slot is not None]
        return compile_traced(
            self.reporter,
            jitted,
            jitted.trace(*program.shapes),
            lower=lower,
            cleaned=lambda text: with_own_names(text, program, names),
            keep_constants=self.request.spec.keep_constants,
            ask_reasons=self.request.platform == "cuda",
        )

    def _order(self, mesh: Mesh, topology: Any) -> tuple[Any, ...]:
        """Return the target's device for each of this host's, by number. A mesh over a whole TPU slice is laid out as
        JAX does it, so that neighbours in the mesh are neighbours in the torus."""
        from jax.experimental import topologies

        there = list(topology.devices)
        if self.request.platform == "tpu" and mesh.devices.size == len(there):
            laid = topologies.make_mesh(topology, mesh.devices.shape, mesh.axis_names)
            for here, device in zip(mesh.devices.flat, laid.devices.flat, strict=True):
                there[here.id] = device
        return tuple(there)

    def _compile_plain(self, traced: Traced, leaves: Sequence[ShardedLeaf], topology: Any) -> StagedProgram:
        """Compile a program that names no devices: its inputs go on the target's devices, split as the command line or
        the workload requests, otherwise whole on each."""
        from jax.experimental import topologies
        from jax.sharding import NamedSharding, PartitionSpec, SingleDeviceSharding

        from jaxprof.engine.measure.portable import program_of
        from jaxprof.engine.measure.sharding import DEFAULT_AXIS

        count = self.request.devices
        shardings: list[Sharding | None]
        if count == 1:
            shardings = [SingleDeviceSharding(topology.devices[0])] * len(traced.slots)
        else:
            mesh = topologies.make_mesh(topology, (count,), (DEFAULT_AXIS,))
            specs = self._specs(leaves, mesh)
            self._report_sharding(leaves, specs, mesh)
            shardings = [
                NamedSharding(mesh, PartitionSpec() if slot is None else specs.get(slot, PartitionSpec()))
                for slot in traced.slots
            ]
        return self._compile_program(program_of(traced, shardings, annotated=False), traced, leaves)

    def _report_sharding(self, leaves: Sequence[ShardedLeaf], specs: Mapping[int, PartitionSpec], mesh: Mesh) -> None:
        from jaxprof.engine.measure.sharding import split_text

        argument = leaves[-1].name.partition("/")[0] if leaves else "0"
        self.reporter.warn(
            "sharding",
            used=mesh.devices.size,
            devices=self.request.devices,
            mesh=", ".join(f"{name}={size}" for name, size in mesh.shape.items()),
            split="; ".join(split_text(leaves, specs)),
            others=sum(leaf.number not in specs and bool(leaf.shape) for leaf in leaves),
            example="" if self.request.shard else f"{argument}={mesh.axis_names[0]}",
        )
