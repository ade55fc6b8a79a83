"""What the engine does with a workload, without its measuring: the calls of a variant, and what it is compared with."""

import jax
import numpy as np

from jaxprof.engine.measure.pitfalls import traced_is_elementwise
from jaxprof.workloads.check import compare, tolerance


def inputs_of(workload, parameters):
    return workload.inputs(parameters, np.random.default_rng(0))


def runner(variant, parameters):
    """Makes the variant's result from the workload's inputs; compiled once, where it is compiled."""
    function = variant.build(parameters)
    function = jax.jit(function) if variant.how == "jit" else function

    def run(inputs):
        arguments = variant.arguments(inputs)
        if variant.how != "numpy" and variant.inputs == "device":
            arguments = jax.device_put(arguments)
        with jax.default_matmul_precision(variant.precision or None):
            return jax.block_until_ready(function(*arguments))

    return run


def output(variant, parameters, inputs):
    """The variant's result for the workload's `inputs`."""
    return runner(variant, parameters)(inputs)


def expected(workload, parameters, inputs):
    if workload.expected is not None:
        return workload.expected(parameters, inputs)
    return output(workload.variant(workload.baseline), parameters, inputs)


def compared(workload, variant, result, parameters, inputs, right):
    """`result` compared with `right` as a run on a CPU does it."""
    elementwise = variant.how != "numpy" and traced_is_elementwise(variant.build(parameters), variant.arguments(inputs))
    accepted = tolerance(workload, "float32", right, result)
    return compare(result, right, accepted, elementwise=elementwise and not workload.noisy_answer)


def relative_error(result, right):
    return compare(result, right, 0.0).max_relative_error


def errors(workload, parameters, inputs):
    """By variant, the error of its result."""
    right = expected(workload, parameters, inputs)
    return {variant.name: relative_error(output(variant, parameters, inputs), right) for variant in workload.variants}
