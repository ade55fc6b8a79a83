"""mlp-train-step: one whole step of training, forward, backward and update."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

from jaxprof.workloads.model import Estimate, Parameter, Parameters, Variant, Workload

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy


def train_step_numpy(parameters: Parameters) -> Callable[..., Any]:
    import numpy as np

    rate = np.float32(parameters["learning_rate"])

    def train_step(layers: Any, x: Any, labels: Any) -> Any:
        activations = [x]
        for W, b in layers[:-1]:
            activations.append(np.maximum(activations[-1] @ W + b, 0))
        W, b = layers[-1]
        logits = activations[-1] @ W + b
        logits = logits - logits.max(axis=1, keepdims=True)
        log_probabilities = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
        chosen = np.arange(len(labels)), labels
        loss = -log_probabilities[chosen].mean()

        slope = np.exp(log_probabilities)
        slope[chosen] -= 1
        slope /= np.float32(len(labels))
        updated = list(layers)
        for index in reversed(range(len(layers))):
            (W, b), a = layers[index], activations[index]
            updated[index] = (W - rate * (a.T @ slope), b - rate * slope.sum(axis=0))
            if index:
                slope = (slope @ W.T) * (a > 0)
        return loss, updated

    return train_step


def train_step_jax(parameters: Parameters) -> Callable[..., Any]:
    import jax
    import jax.numpy as jnp

    rate = float(parameters["learning_rate"])

    def loss(layers: Any, x: Any, labels: Any) -> Any:
        for W, b in layers[:-1]:
            x = jax.nn.relu(x @ W + b)
        W, b = layers[-1]
        log_probabilities = jax.nn.log_softmax(x @ W + b)
        return -jnp.mean(jnp.take_along_axis(log_probabilities, labels[:, None], axis=1))

    def train_step(layers: Any, x: Any, labels: Any) -> Any:
        value, gradients = jax.value_and_grad(loss)(layers, x, labels)
        return value, jax.tree.map(lambda weight, gradient: weight - rate * gradient, layers, gradients)

    return train_step


def _widths(parameters: Parameters) -> list[int]:
    """The widths from the input to the classes."""
    hidden = [int(parameters["hidden"])] * int(parameters["hidden_layers"])
    return [int(parameters["features"]), *hidden, int(parameters["classes"])]


def inputs(parameters: Parameters, random: numpy.random.Generator) -> tuple[Any, ...]:
    """The layers as a list of (W, b), a batch, and its labels; the first layers' rectifiers are half open."""
    import numpy as np

    widths, batch = _widths(parameters), int(parameters["batch"])
    layers = [
        (
            random.standard_normal((rows, columns), dtype="float32") * np.float32((2 / rows) ** 0.5),
            np.zeros(columns, "f4"),
        )
        for rows, columns in pairwise(widths)
    ]
    x = random.standard_normal((batch, widths[0]), dtype="float32")
    return layers, x, random.integers(widths[-1], size=batch, dtype="int32")


def estimate(parameters: Parameters) -> Estimate:
    widths, batch = _widths(parameters), int(parameters["batch"])
    products = [rows * columns for rows, columns in pairwise(widths)]
    weights = sum(products) + sum(widths[1:])
    return Estimate(
        memory_bytes=4 * (3 * weights + 3 * batch * sum(widths)),
        flops=2 * batch * (3 * sum(products) - products[0]) + 2 * weights,  # nobody needs the slope of the batch itself
        traffic_bytes=4 * (2 * weights + batch * (widths[0] + 1)),
    )


WORKLOAD = Workload(
    name="mlp-train-step",
    title="weights - rate · grad(loss)",
    description=(
        "One step of training a multilayer perceptron: forward, softmax cross-entropy, backward, gradient descent; the "
        "loss and all new weights are the result. NumPy has the backward pass written out by hand. The step is what "
        "most people's own code looks like: a few products, with elementwise work around them that should be fused."
    ),
    parameters=(
        Parameter(name="batch", description="examples of a step", minimum=1),
        Parameter(name="features", description="length of an example", minimum=1),
        Parameter(name="hidden", description="width of a hidden layer", minimum=1),
        Parameter(name="hidden_layers", description="how many hidden layers", minimum=0),
        Parameter(name="classes", description="number of classes", minimum=2),
        Parameter(name="learning_rate", description="step of the descent", kind="float", minimum=0),
    ),
    presets={
        "quick": {
            "batch": 64,
            "features": 256,
            "hidden": 256,
            "hidden_layers": 2,
            "classes": 10,
            "learning_rate": 0.5,
        },
        "published": {
            "batch": 1024,
            "features": 784,
            "hidden": 4096,
            "hidden_layers": 3,
            "classes": 10,
            "learning_rate": 0.5,
        },
    },
    variants=(
        Variant(name="numpy", how="numpy", build=train_step_numpy, description="NumPy, backward pass by hand"),
        Variant(name="jax", how="eager", build=train_step_jax, description="value_and_grad, op by op"),
        Variant(name="jit", how="jit", build=train_step_jax, description="the whole step in one compiled program"),
        Variant(
            name="jit-highest",
            how="jit",
            build=train_step_jax,
            precision="highest",
            description="compiled, with full float32 products (no TF32, no bfloat16 passes)",
        ),
    ),
    inputs=inputs,
    estimate=estimate,
    has_dots=True,
)
