"""Whether a run computed the right thing: its result against a known answer, or against the baseline's.

The cost of the twin is told: it may take longer than the run itself.
"""

from __future__ import annotations

import math
from typing import Any

from jaxprof.events import CheckReported, finite
from jaxprof.measure.host_arrays import map_arrays
from jaxprof.measure.recorder import Recorder
from jaxprof.workloads.check import relative_error, tolerance
from jaxprof.workloads.model import Parameters, Variant, Workload


def check_result(
    recorder: Recorder,
    workload: Workload,
    variant: Variant,
    parameters: Parameters,
    inputs: tuple[Any, ...],
    output: Any,
    *,
    precision: str = "float32",
    precision_in_words: str = "",
    twin_seconds: float | None = None,
) -> None:
    """Reports whether `output` is right for the workload's `inputs`.

    `twin_seconds`: at least what the baseline takes on the host, where that is known.
    """
    if workload.expected is None:
        reason = _why_not(recorder, workload, variant, twin_seconds)
        if reason:
            recorder.emit(CheckReported(passed=None, note=reason))
            return
    with recorder.phase("check"):
        recorder.progress(note=f"computing the {workload.against} to hold the result against")
        expected = _expected(workload, parameters, inputs)
        recorder.control.check()
        error = relative_error(output, expected)
        allowed = tolerance(workload, precision, expected)
    recorder.emit(
        CheckReported(
            passed=error <= allowed,
            max_relative_error=finite(error),
            tolerance=allowed,
            against=workload.against,
            precision=precision_in_words or precision,
            note="" if math.isfinite(error) else "the shapes differ, or a value is not a number",
        )
    )


def _why_not(recorder: Recorder, workload: Workload, variant: Variant, twin_seconds: float | None) -> str:
    """Why nothing can be held against the result; empty where something can."""
    if variant.name == workload.baseline:
        return "the baseline: the others are held against it"
    if variant.how == "numpy" and workload.variant(workload.baseline).how != "numpy":
        return f"{workload.baseline} needs JAX, which a NumPy run does not import"
    remaining = recorder.control.remaining_seconds()
    if remaining is not None and twin_seconds is not None and twin_seconds > remaining:
        return f"the {workload.against} would take at least {twin_seconds:.1f} s, longer than the run may"
    return ""


def _expected(workload: Workload, parameters: Parameters, inputs: tuple[Any, ...]) -> Any:
    if workload.expected is not None:
        return workload.expected(parameters, inputs)
    twin = workload.variant(workload.baseline)
    arguments = twin.arguments(inputs)
    if twin.how != "numpy":
        import jax.numpy as jnp

        arguments = map_arrays(jnp.asarray, arguments)
    return twin.build(parameters)(*arguments)
