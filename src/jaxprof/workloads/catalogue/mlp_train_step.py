"""mlp-train-step: one whole step of training, forward, backward and update."""

from __future__ import annotations

from itertools import pairwise

from jaxprof.workloads.catalogue import jax, jnp, np
from jaxprof.workloads.decorator import workload
from jaxprof.workloads.model import Estimate, Parameter, Variant


def train_step_numpy(learning_rate):
    rate = np.float32(learning_rate)

    def train_step(layers, x, labels):
        activations = [x]
        for W, b in layers[:-1]:
            activations.append(np.tanh(activations[-1] @ W + b))
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
                slope = (slope @ W.T) * (1 - a * a)
        return loss, updated

    return train_step


def layer_shapes(features, hidden, hidden_layers, classes):
    """Return rows and columns of each layer's weights, from the input to the classes."""
    return list(pairwise([features, *[hidden] * hidden_layers, classes]))


def inputs(random, batch, features, hidden, hidden_layers, classes):
    """Return the layers as a list of (W, b), a batch and its labels; the sums that enter a tanh are in its range."""
    layers = [
        (
            random.standard_normal((rows, columns), dtype="float32") * np.float32((1 / rows) ** 0.5),
            np.zeros(columns, "f4"),
        )
        for rows, columns in layer_shapes(features, hidden, hidden_layers, classes)
    ]
    x = random.standard_normal((batch, features), dtype="float32")
    return layers, x, random.integers(classes, size=batch, dtype="int32")


def estimate(batch, features, hidden, hidden_layers, classes):
    products = [rows * columns for rows, columns in layer_shapes(features, hidden, hidden_layers, classes)]
    outputs = hidden * hidden_layers + classes
    weights = sum(products) + outputs
    return Estimate(
        memory_bytes=4 * (3 * weights + 3 * batch * (features + outputs)),
        flops=2 * batch * (3 * sum(products) - products[0]) + 2 * weights,  # nobody needs the slope of the batch itself
        traffic_bytes=4 * (2 * weights + batch * (features + 1)),
    )


@workload(
    title="weights - rate · grad(loss)",
    description=(
        "One step of training a multilayer perceptron: forward, softmax cross-entropy, backward, gradient descent; the "
        "loss and all new weights are the result. NumPy has the backward pass written out by hand. The step is what "
        "most people's own code looks like: a few products, with elementwise work around them that should be fused. "
        "Between the layers is a tanh: a rectifier next to 0 opens in one precision and closes in another, and then "
        "its gradient is not the same one."
    ),
    factory=True,
    inputs=inputs,
    parameters={
        "batch": Parameter(description="examples of a step", minimum=1),
        "features": Parameter(description="length of an example", minimum=1),
        "hidden": Parameter(description="width of a hidden layer", minimum=1),
        "hidden_layers": Parameter(description="how many hidden layers", minimum=0),
        "classes": Parameter(description="number of classes", minimum=2),
        "learning_rate": Parameter(description="step of the descent", kind="float", minimum=0),
    },
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
    variants=[
        Variant(
            name="numpy",
            how="numpy",
            function=train_step_numpy,
            factory=True,
            description="NumPy, backward pass by hand",
        ),
        "jax",
        "jit",
        "jit-highest",
    ],
    estimate=estimate,
    shardings=(None, "0", "0"),
)
def train_step_jax(learning_rate):
    def loss(layers, x, labels):
        for W, b in layers[:-1]:
            x = jnp.tanh(x @ W + b)
        W, b = layers[-1]
        log_probabilities = jax.nn.log_softmax(x @ W + b)
        return -jnp.mean(jnp.take_along_axis(log_probabilities, labels[:, None], axis=1))

    def train_step(layers, x, labels):
        value, gradients = jax.value_and_grad(loss)(layers, x, labels)
        return value, jax.tree.map(lambda weight, gradient: weight - learning_rate * gradient, layers, gradients)

    return train_step
