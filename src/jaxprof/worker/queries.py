"""Questions that only a process with the user's jax can answer: which devices, and what the user's workloads are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from jaxprof.engine.request import DescribeRequest, DevicesRequest
from jaxprof.errors import WorkerError
from jaxprof.worker.interpreter import Interpreter
from jaxprof.worker.process import ask
from jaxprof.workloads.model import WorkloadCard

PROBE_ENVIRONMENT = {"XLA_PYTHON_CLIENT_PREALLOCATE": "false", "TF_CPP_MIN_LOG_LEVEL": "3"}
"""Listing devices must not take a GPU's memory."""


def jax_devices(
    interpreter: Interpreter, environment: Mapping[str, str] | None = None, timeout_seconds: float = 60.0
) -> dict[str, Any]:
    """What JAX sees there, as the engine answers it. Raises WorkerError. Blocks; a child does the work."""
    answer = ask(interpreter, DevicesRequest(), {**PROBE_ENVIRONMENT, **(environment or {})}, timeout_seconds)
    return dict(answer)


def describe(
    interpreter: Interpreter, targets: Sequence[str], arguments: Sequence[str] = (), timeout_seconds: float = 120.0
) -> list[WorkloadCard]:
    """The workloads at `targets`, as cards. The user's code is imported in a child, never here. Raises WorkerError."""
    request = DescribeRequest(targets=list(targets), arguments=list(arguments))
    answer = ask(interpreter, request, {"JAX_PLATFORMS": "cpu"}, timeout_seconds)
    try:
        return msgspec.convert(answer, type=list[WorkloadCard], strict=False)
    except msgspec.ValidationError as error:
        raise WorkerError(f"the workload's description cannot be used: {error}") from error
