"""What the engine can be asked for: one JSON object on a line of the control pipe.

The client writes requests, the engine answers with events (and with one `Answer` where data is asked for). Closing
the pipe is the order to end. Standard library only: both sides import this.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import Any

from jaxprof.events import Scalar

DEFAULT_BUDGET_SECONDS = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRequest:
    """Run one variant of one workload in this process, and say everything about it as events."""

    run: str
    workload: str
    """A built-in name, `path/to/file.py:function` or `package.module:function`."""
    variant: str
    device: str = "cpu:0"
    parameters: dict[str, Scalar] = field(default_factory=dict)
    arguments: list[str] = field(default_factory=list)
    """For a user's function without declared inputs: one spec each, `f32[1024,1024]`."""
    budget_seconds: float = DEFAULT_BUDGET_SECONDS
    """How long the steady run may be sampled."""
    max_seconds: float | None = None
    """Hard cap for the whole run, from the end of start-up."""
    keep_constants: bool = False
    compilation_cache: bool = False
    """Whether the persistent compilation cache of the user's settings is left on."""
    check: bool = True
    capture: bool = True
    """Whether some calls, and one compile, are made once more under the profiler, after the timing."""
    keep_trace: str = ""
    """Where the raw profile of the calls is kept; empty: nowhere."""
    attribution: bool = False
    """Only a capture, of kind `attribution`, and no timing: for a process whose `XLA_FLAGS` make kernels tell names."""
    seed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class CompileRequest:
    """Lower and compile one variant without running it: for this process's device, or for devices that are not here."""

    run: str
    workload: str
    variant: str
    parameters: dict[str, Scalar] = field(default_factory=dict)
    arguments: list[str] = field(default_factory=list)
    keep_constants: bool = False
    seed: int = 0
    device: str = "cpu:0"
    """Used when `platform` is empty."""
    platform: str = ""
    """`cuda` or `tpu` for devices that are not here."""
    topology: str = ""
    """As `jax.experimental.topologies.get_topology_desc` wants it."""
    topology_name: str = ""
    target_config: str = ""
    """CUDA: XLA's text of a `GpuTargetConfigProto`."""
    devices: int = 1
    """How many devices of the topology the program is spread over."""
    shard: list[str] = field(default_factory=list)
    """`ARGUMENT=AXIS` (numbers): which arguments are split over the devices; empty: the batch is found by rule."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenTraceRequest:
    """Read a profile that was recorded elsewhere, and say what is in it as the events of several runs."""

    run: str
    """Of the whole profile; the runs of its programs are named by the engine as `program:N`."""
    path: str
    """A file, or a folder that a profiler wrote to."""
    profile_run: str = ""
    """Which recording of the folder; empty for the newest."""
    hosts: list[str] = field(default_factory=list)
    """Which of its hosts; empty for all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeRequest:
    """Describe workloads as cards: the given targets, without running anything."""

    targets: list[str]
    arguments: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class DevicesRequest:
    """List the devices that JAX sees in this process."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CancelRequest:
    """Stop the current run at the next occasion; the run then finishes as `cancelled`."""


Request = RunRequest | CompileRequest | OpenTraceRequest | DescribeRequest | DevicesRequest | CancelRequest

_KINDS: dict[str, type[Any]] = {
    "run": RunRequest,
    "compile": CompileRequest,
    "open_trace": OpenTraceRequest,
    "describe": DescribeRequest,
    "devices": DevicesRequest,
    "cancel": CancelRequest,
}


def encode_request(request: Request) -> bytes:
    """One line of JSON with its line break."""
    kind = next(name for name, cls in _KINDS.items() if isinstance(request, cls))
    return json.dumps({"request": kind, **asdict(request)}).encode() + b"\n"


def decode_request(line: bytes) -> Request:
    """The request on `line`. Raises ValueError for anything else."""
    payload = json.loads(line)
    if not isinstance(payload, dict) or payload.get("request") not in _KINDS:
        raise ValueError(f"not a request: {line[:80]!r}")
    cls = _KINDS[payload.pop("request")]
    try:
        request: Request = cls(**payload)
    except TypeError as error:
        raise ValueError(f"not a request: {error}") from error
    return request


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The engine's reply to a request for data, on the event pipe as `{"type": "answer", ...}`; never in a log."""

    data: Any = None
    error: str = ""
    advice: str = ""


def encode_answer(answer: Answer) -> bytes:
    """One line of JSON without its line break."""
    return json.dumps({"type": "answer", **asdict(answer)}, ensure_ascii=False).encode("utf-8", "backslashreplace")
