"""Ask an engine what only a process with the user's jax can answer: the devices, the user's workloads and their inputs,
the cost of an empty call."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, field
from typing import Any, TypeVar

import msgspec

from jaxprof.base.errors import UsageError, WorkerError
from jaxprof.base.values import frozen
from jaxprof.engine.protocol.request import (
    DescribeRequest,
    DevicesRequest,
    EmptyCallRequest,
    InputsRequest,
    KeptLeaf,
    Request,
)
from jaxprof.events import RunSpec
from jaxprof.runner.engine_process import EngineProcess
from jaxprof.runner.interpreter import Interpreter
from jaxprof.workloads.model import WorkloadInfo

DESCRIBE_SECONDS = 120.0
"""How long a child may take to import the user's code and describe it."""
T = TypeVar("T")


@frozen
class _Devices:
    """The data of the answer to a `DevicesRequest`."""

    devices: list[dict[str, Any]] = field(default_factory=list)
    errors: dict[str, str] = field(default_factory=dict)
    process_index: int | None = None
    default: str = ""


def ask(
    interpreter: Interpreter, request: Request, environment: Mapping[str, str], timeout_seconds: float, kind: type[T]
) -> T:
    """Send one request for data to a new engine and return the answer's data, as `kind`. Raises WorkerError, with the
    engine's message if it fails, ends, or does not answer in time, and if the answer cannot be read as `kind`."""
    process = EngineProcess(interpreter, environment)
    try:
        process.send(request)
        deadline = time.monotonic() + timeout_seconds
        while (left := deadline - time.monotonic()) > 0:
            process.read(min(left, 0.2))
            if process.answer is not None:
                if process.answer.error:
                    raise WorkerError(process.answer.error, process.answer.hint)
                return msgspec.convert(process.answer.data, kind, strict=False)
            if process.over:
                raise process.explain()
        hint = "Try again."
        if isinstance(request, DescribeRequest):
            hint = "A file is imported to find its functions: code at its top level must finish."
        raise WorkerError(f"no answer from {interpreter.path} within {timeout_seconds:g} s", hint)
    except msgspec.ValidationError as error:
        raise WorkerError(f"the answer of {interpreter.path} cannot be used: {error}") from error
    finally:
        process.close()


def host_devices(count: int) -> dict[str, str]:
    """Return variables that make JAX create `count` CPU devices, which stand for devices that are not here."""
    return {"JAX_NUM_CPU_DEVICES": str(count)} if count > 1 else {}


def jax_devices(interpreter: Interpreter, timeout_seconds: float = 60.0) -> dict[str, Any]:
    """Return what JAX sees there, as the engine answers it. Blocks while a child does the work, which takes no GPU
    memory, and numbers GPUs as `local_devices` does. Raises WorkerError."""
    from jaxprof.devices.inventory.placement import order_variables

    environment = {"XLA_PYTHON_CLIENT_PREALLOCATE": "false", "TF_CPP_MIN_LOG_LEVEL": "3", **order_variables(os.environ)}
    answer = ask(interpreter, DevicesRequest(), environment, timeout_seconds, _Devices)
    if not all(device.get("id") for device in answer.devices):
        raise WorkerError(f"the answer of {interpreter.path} cannot be used: a device has no id")
    return asdict(answer)


def empty_call_seconds(interpreter: Interpreter, request: EmptyCallRequest) -> float:
    """Return the CPU seconds of an empty call of a compiled function on a CPU, as the engine measures it. Blocks while
    a child does the work, which leaves nothing in the user's dump folder or compilation cache. Raises WorkerError."""
    environment = {"JAX_PLATFORMS": "cpu", "XLA_FLAGS": "", "JAX_ENABLE_COMPILATION_CACHE": "false"}
    return ask(interpreter, request, environment, 20.0, float)


def describe_inputs(interpreter: Interpreter, spec: RunSpec, variables: Mapping[str, str]) -> list[KeptLeaf]:
    """Return the inputs with which a run of `spec` would be called. A child makes them, with `variables` in its
    environment. Raises WorkerError."""
    environment = {"JAX_PLATFORMS": "cpu", **variables}
    return ask(interpreter, InputsRequest(spec=spec), environment, DESCRIBE_SECONDS, list[KeptLeaf])


def describe(
    interpreter: Interpreter,
    targets: Sequence[str],
    arguments: Sequence[str] = (),
    devices: int = 1,
    timeout_seconds: float = DESCRIBE_SECONDS,
    variables: Mapping[str, str] | None = None,
    inputs_from: str = "",
) -> list[WorkloadInfo]:
    """Return the workloads at `targets`. The user's code is imported in a child, never here; the child has `devices`
    CPU devices, and `variables` in its environment. Workloads that do not describe their inputs take those of
    `inputs_from`. Raises UsageError for a target that cannot be described."""
    request = DescribeRequest(targets=list(targets), arguments=list(arguments), inputs_from=inputs_from)
    environment = {"JAX_PLATFORMS": "cpu", **host_devices(devices), **(variables or {})}
    try:
        return ask(interpreter, request, environment, timeout_seconds, list[WorkloadInfo])
    except WorkerError as error:
        raise UsageError(error.what, error.hint) from error
