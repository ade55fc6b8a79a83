"""The requests to the engine, and the description of a run's arrays in the file that holds them.

The engine answers with events, and with one `EngineAnswer` to a request for data. Closing the control pipe is the order
to end.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, get_args

from jaxprof.base.values import field, frozen
from jaxprof.engine.protocol import read_request
from jaxprof.events import RunSpec, SourceLocation

SCRATCH = "JAXPROF_SCRATCH"
"""Environment variable with the folder in which an engine keeps profiles while it reads them. The client makes and
removes the folder, because an engine may be killed at any moment."""


@frozen(kw_only=True)
class RunRequest:
    """Run one variant of one workload in this process, and report everything about it as events."""

    run: str
    spec: RunSpec
    """Specification of the run, with `device` as this process names it."""
    attribution: bool = False
    """Whether only a capture of kind `attribution` is made, without timing: for a process whose `XLA_FLAGS` make
    kernels report their names."""
    launch: int = 1
    """Number of the launch, from 1. What does not depend on the process is measured only in the first one: captures,
    the check, the side series and the sampled transfers."""
    keep_output: str = ""
    """Path for the first call's result, for a client that compares it with another run's; empty if not kept."""
    in_turns: bool = False
    """Whether the steady run is sampled one turn at a time, when the client sends a `TurnRequest`."""

    @property
    def steady_seconds(self) -> float:
        """Seconds for which the steady run is sampled in this launch."""
        return self.spec.timing_seconds / max(1, self.spec.launches)


@frozen(kw_only=True)
class TurnRequest:
    """Take one block of samples of the steady run now."""

    block: int
    """Number of the block, for `SamplesTaken.block`."""
    seconds: float
    """Length of the block after its warm-in; at least one sample is taken."""
    most_samples: int
    warm_in_seconds: float = 0.0
    """How long calls at the block's beginning do not count, for not having settled; above 0, at least one call."""
    series: str = "run"
    """`run`; `alone` before any other run has worked; `settling` for a whole block that shows the warm-in."""


@frozen(kw_only=True)
class TurnsOverRequest:
    """Go on with the rest of the run: the steady run has all its blocks."""


@frozen(kw_only=True)
class CompileRequest:
    """Lower and compile one variant without running it: for this process's device, or for devices that are not here."""

    run: str
    spec: RunSpec
    """Specification of the run; its device is used if `platform` is empty."""
    platform: str = ""
    """`cuda` or `tpu` for devices that are not here; empty for this process's device."""
    topology: str = ""
    """Topology in the form that `jax.experimental.topologies.get_topology_desc` takes."""
    topology_name: str = ""
    chip_config: str = ""
    """TPU: how a chip's cores are combined into a device, if not in libtpu's default way."""
    target_config: str = ""
    """CUDA: XLA's text of a `GpuTargetConfigProto`."""
    devices: int = 1
    """Number of the topology's devices over which the program is spread."""
    mesh: dict[str, int] = field(default_factory=dict)
    """Names and sizes of the mesh's axes, which becomes the program's context; empty to let its code decide."""
    shard: list[str] = field(default_factory=list)
    """How inputs are split over the mesh, as `ARGUMENT=SPEC`; overrides the code."""


@frozen(kw_only=True)
class OpenTraceRequest:
    """Read a profile that was recorded elsewhere, and report its contents as the events of several runs."""

    run: str = ""
    """Id of the whole profile; the engine names the runs of its programs `program:N`."""
    path: str
    """A file, or a folder that a profiler wrote to."""
    profile_run: str = ""
    """Name of the recording in the folder; empty for the newest."""
    host: str = ""
    """Host to read; empty for the first."""
    views: list[str] = field(default_factory=list)
    """Parts to read, of `trace.summary.VIEWS`; empty for all."""


@frozen(kw_only=True)
class DescribeRequest:
    """Describe the workloads at the given targets, without running anything."""

    targets: list[str]
    arguments: list[str] = field(default_factory=list)
    inputs_from: str = ""
    """Target whose inputs are used by targets that declare none; empty if there is none."""


@frozen(kw_only=True)
class InputsRequest:
    """Make the inputs of a run, and describe them (`measure.kept_arrays.describe`); calls nothing."""

    spec: RunSpec


@frozen(kw_only=True)
class DevicesRequest:
    """List the devices that JAX sees in this process."""


@frozen(kw_only=True)
class EmptyCallRequest:
    """Time a call of a compiled function that computes next to nothing, with so many arrays and Python numbers as
    arguments; the answer is its CPU seconds."""

    arrays: int = 1
    numbers: int = 0


@frozen(kw_only=True)
class CancelRequest:
    """Stop the current run at the next opportunity; the run then finishes as `cancelled`."""


Request = (
    RunRequest
    | TurnRequest
    | TurnsOverRequest
    | CompileRequest
    | OpenTraceRequest
    | DescribeRequest
    | InputsRequest
    | DevicesRequest
    | EmptyCallRequest
    | CancelRequest
)


def decode_request(line: bytes) -> Request:
    """Return the request on `line`. Raises ValueError for anything else."""
    request: Any = read_request(line, get_args(Request))
    if hasattr(request, "spec"):
        try:
            trial_at = SourceLocation(**request.spec.get("trial_at", {}))
            spec = RunSpec(**{**request.spec, "trial_at": trial_at})  # JSON has lists for its tuples
            request = replace(request, spec=replace(spec, arguments=tuple(spec.arguments), argv=tuple(spec.argv)))
        except (TypeError, AttributeError) as error:
            raise ValueError(f"not a request: {error}") from error
    decoded: Request = request
    return decoded


@frozen(kw_only=True)
class EngineAnswer:
    """The engine's reply to a request for data, on the event pipe as `{"type": "answer", ...}`; never in a log."""

    data: Any = None
    error: str = ""
    hint: str = ""


LEAVES = "leaves"
"""Name of the array in the file that describes the other arrays."""


@frozen
class KeptLeaf:
    """Description of one array of a tree."""

    path: str
    """Path to the array: `[0]['w']`; empty for a tree that is one array."""
    dtype: str
    shape: tuple[int, ...]
    digest: str = ""
    """Hash of the array's numbers, if they are compared only for equality; else empty."""

    @property
    def spec(self) -> str:
        return f"{self.dtype}[{','.join(map(str, self.shape))}]"
