"""What the engine does with a workload, without its measuring: the calls of a variant, and what it is compared with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from jaxprof.engine.measure.pitfalls import traced_is_elementwise
from jaxprof.workloads.check import Comparison, compare, tolerance
from jaxprof.workloads.model import Parameters, Variant, Workload


def inputs_of(workload: Workload, parameters: Parameters) -> tuple[Any, ...]:
    return workload.inputs(parameters, np.random.default_rng(0))


def runner(variant: Variant, parameters: Parameters) -> Callable[[tuple[Any, ...]], Any]:
    """Makes the variant's result from the workload's inputs; compiled once, where it is compiled."""
    function = variant.build(parameters)
    function = jax.jit(function) if variant.how == "jit" else function

    def run(inputs: tuple[Any, ...]) -> Any:
        arguments = variant.arguments(inputs)
        if variant.how != "numpy" and variant.inputs == "device":
            arguments = jax.device_put(arguments)
        with jax.default_matmul_precision(variant.precision or None):
            return jax.block_until_ready(function(*arguments))

    return run


def output(variant: Variant, parameters: Parameters, inputs: tuple[Any, ...]) -> Any:
    """The variant's result for the workload's `inputs`."""
    return runner(variant, parameters)(inputs)


def expected(workload: Workload, parameters: Parameters, inputs: tuple[Any, ...]) -> Any:
    if workload.expected is not None:
        return workload.expected(parameters, inputs)
    return output(workload.variant(workload.baseline), parameters, inputs)


def compared(
    workload: Workload, variant: Variant, result: Any, parameters: Parameters, inputs: Any, right: Any
) -> Comparison:
    """`result` compared with `right` as a run on a CPU does it."""
    elementwise = variant.how != "numpy" and traced_is_elementwise(variant.build(parameters), variant.arguments(inputs))
    accepted = tolerance(workload, "float32", right, result)
    return compare(result, right, accepted, elementwise=elementwise and not workload.noisy_answer)


def relative_error(result: Any, right: Any) -> float:
    return compare(result, right, 0.0).max_relative_error


def errors(workload: Workload, parameters: Parameters, inputs: tuple[Any, ...]) -> dict[str, float]:
    """By variant, the error of its result."""
    right = expected(workload, parameters, inputs)
    return {variant.name: relative_error(output(variant, parameters, inputs), right) for variant in workload.variants}
