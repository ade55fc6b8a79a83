"""Parts of neural networks: layers, a recurrence, and one whole step of training."""

from __future__ import annotations

from itertools import pairwise

from jaxprof.workloads.catalogue import jax, jnp, np, sizes
from jaxprof.workloads.decorator import workload
from jaxprof.workloads.model import Estimate, Parameter, Variant


def conv_numpy(images, kernels):
    size = kernels.shape[0]
    before, after = (size - 1) // 2, size // 2
    padded = np.pad(images, ((0, 0), (before, after), (before, after), (0, 0)))
    # (batch, height, width, in, size, size)
    windows = np.lib.stride_tricks.sliding_window_view(padded, (size, size), axis=(1, 2))
    return np.tensordot(windows, kernels, axes=((4, 5, 3), (0, 1, 2)))


def conv_estimate(batch, size, channels_in, channels_out, kernel):
    pixels, taps = batch * size**2, kernel**2 * channels_in
    moved = 4 * (pixels * (channels_in + channels_out) + taps * channels_out)
    return Estimate(
        memory_bytes=moved + 4 * pixels * (taps + channels_in),  # NumPy unfolds every window
        flops=2 * pixels * taps * channels_out,
        traffic_bytes=moved,
    )


@workload(
    name="conv2d",
    title="conv(images, kernels)",
    description=(
        "A two-dimensional convolution with stride 1 and same padding: a layer of a convolutional network, channels "
        "last. NumPy unfolds the windows and makes one matrix product of it. On an NVIDIA GPU cuDNN does the work, and "
        "choosing among its algorithms is part of the compile time; `published` is a layer of ResNet-50."
    ),
    inputs=["f32[batch,size,size,channels_in]", "f32[kernel,kernel,channels_in,channels_out]"],
    parameters=sizes(
        batch="number of images",
        size="height and width of an image",
        channels_in="channels of an image",
        channels_out="channels of the result",
        kernel="height and width of a kernel",
    ),
    presets={
        "quick": {"batch": 4, "size": 32, "channels_in": 16, "channels_out": 32, "kernel": 3},
        "published": {"batch": 128, "size": 56, "channels_in": 64, "channels_out": 64, "kernel": 3},
    },
    numpy=conv_numpy,
    variants=["jax", "jit", "jit-highest"],
    estimate=conv_estimate,
    shardings=("0", None),
)
def conv(images, kernels):
    return jax.lax.conv_general_dilated(
        images, kernels, window_strides=(1, 1), padding="SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
    )


def layernorm_numpy(x, scale, bias):
    mean = x.mean(axis=-1, keepdims=True)
    variance = x.var(axis=-1, keepdims=True)
    return (x - mean) / np.sqrt(variance + np.float32(1e-6)) * scale + bias


def layernorm_estimate(rows, features):
    array = 4 * rows * features
    return Estimate(memory_bytes=4 * array, flops=8 * rows * features, traffic_bytes=2 * array + 2 * 4 * features)


@workload(
    name="layernorm",
    title="(x - mean) / sqrt(var + ε) · scale + bias",
    description=(
        "Layer normalisation of every row of a matrix. Op by op the matrix goes through memory some ten times; a good "
        "compiler makes one or two kernels of it, and the best time is that of reading x once and writing the result "
        "once. Look at the kernels: where the reductions end is where fusion stops."
    ),
    inputs=["f32[rows,features]", "f32[features]", "f32[features]"],
    parameters=sizes(
        rows="how many rows are normalised",
        features="length of a row",
    ),
    presets={"quick": {"rows": 2048, "features": 512}, "published": {"rows": 16_384, "features": 4096}},
    numpy=layernorm_numpy,
    tolerance={"float32": 1e-5},
    matrix_products=False,
    estimate=layernorm_estimate,
    shardings=("0", None, None),
)
def layernorm(x, scale, bias):
    mean = x.mean(axis=-1, keepdims=True)
    variance = x.var(axis=-1, keepdims=True)
    return (x - mean) * jax.lax.rsqrt(variance + 1e-6) * scale + bias


def attention_numpy(q, k, v):
    scores = q @ k.swapaxes(-1, -2) / np.sqrt(np.float32(q.shape[-1]))
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True) @ v


def attention_estimate(batch, heads, length, depth):
    tokens, scores = batch * heads * length * depth, batch * heads * length**2
    return Estimate(
        memory_bytes=4 * (4 * tokens + 3 * scores),
        flops=4 * batch * heads * length**2 * depth + 5 * scores,
        traffic_bytes=4 * 4 * tokens,
    )


@workload(
    name="attention",
    title="softmax(q kᵀ / √depth) v",
    description=(
        "Scaled dot-product attention with several heads, in float32, without a mask. The least traffic is q, k, v and "
        "the result; written like this, the (length, length) scores go through memory as well, several times. How far "
        "the measured bytes are above the estimate is what a fused attention kernel would save."
    ),
    inputs=["f32[batch,heads,length,depth]"] * 3,
    parameters=sizes(
        batch="sequences",
        heads="attention heads",
        length="tokens of a sequence",
        depth="features of a head",
    ),
    presets={
        "quick": {"batch": 1, "heads": 4, "length": 256, "depth": 64},
        "published": {"batch": 4, "heads": 16, "length": 2048, "depth": 64},
    },
    numpy=attention_numpy,
    variants=["jax", "jit", "jit-highest"],
    estimate=attention_estimate,
    shardings=("0", "0", "0"),
)
def attention(q, k, v):
    scores = q @ k.swapaxes(-1, -2) / jnp.sqrt(q.shape[-1])
    return jax.nn.softmax(scores, axis=-1) @ v


def rnn_numpy(xs, W, U, b):
    h = np.zeros((xs.shape[1], U.shape[0]), xs.dtype)
    for x in xs:
        h = np.tanh(x @ W + h @ U + b)
    return h


def rnn_loop(xs, W, U, b):
    h = jnp.zeros((xs.shape[1], U.shape[0]), xs.dtype)
    for x in xs:
        h = jnp.tanh(x @ W + h @ U + b)
    return h


def rnn_inputs(random, length, batch, features, hidden):
    """Return weights small enough that a rounding error dies out over the steps, instead of growing."""
    xs = random.standard_normal((length, batch, features), dtype="float32")
    W = random.standard_normal((features, hidden), dtype="float32") / features**0.5
    U = random.standard_normal((hidden, hidden), dtype="float32") / (2 * hidden**0.5)
    return xs, W, U, random.standard_normal(hidden, dtype="float32")


def rnn_estimate(length, batch, features, hidden):
    weights = hidden * (features + hidden + 1)
    held = 4 * (length * batch * features + weights + batch * hidden)
    return Estimate(
        memory_bytes=held + 3 * 4 * batch * hidden,
        flops=length * batch * hidden * (2 * features + 2 * hidden + 3),
        traffic_bytes=held,
    )


@workload(
    name="scan-rnn",
    title="scan of h = tanh(x W + h U + b)",
    description=(
        "A recurrent network over a sequence: every step needs the one before, so there is no more parallel work than "
        "one step holds. `scan` compiles the step once and loops on the device; `jit-unrolled` compiles the Python "
        "loop, and its compile time grows with the length; op by op, every step pays for its dispatches."
    ),
    inputs=rnn_inputs,
    parameters=sizes(
        length="steps of the sequence",
        batch="sequences side by side",
        features="length of one input",
        hidden="length of the state",
    ),
    presets={
        "quick": {"length": 32, "batch": 16, "features": 64, "hidden": 128},
        "published": {"length": 256, "batch": 64, "features": 512, "hidden": 1024},
    },
    numpy=rnn_numpy,
    variants=[
        Variant(name="jax", how="eager", function=rnn_loop, description="op by op, a Python loop"),
        Variant(name="scan", how="jit", description="compiled, lax.scan: one step, looped on the device"),
        Variant(name="jit-unrolled", how="jit", function=rnn_loop, description="compiled, the Python loop unrolled"),
        Variant(
            name="scan-highest",
            how="jit",
            precision="highest",
            description="as scan, with full float32 products (no TF32, no bfloat16 passes)",
        ),
    ],
    estimate=rnn_estimate,
    shardings=("1", None, None, None),
)
def rnn(xs, W, U, b):
    def step(h, x):
        return jnp.tanh(x @ W + h @ U + b), None

    h, _ = jax.lax.scan(step, jnp.zeros((xs.shape[1], U.shape[0]), xs.dtype), xs)
    return h


def train_step_numpy(layers, x, labels, *, learning_rate):
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
    rate = np.float32(learning_rate)
    updated = list(layers)
    for index in reversed(range(len(layers))):
        (W, b), a = layers[index], activations[index]
        updated[index] = (W - rate * (a.T @ slope), b - rate * slope.sum(axis=0))
        if index:
            slope = (slope @ W.T) * (1 - a * a)
    return loss, updated


def layer_shapes(features, hidden, hidden_layers, classes):
    """Return rows and columns of each layer's weights, from the input to the classes."""
    return list(pairwise([features, *[hidden] * hidden_layers, classes]))


def train_step_inputs(random, batch, features, hidden, hidden_layers, classes):
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


def train_step_estimate(batch, features, hidden, hidden_layers, classes):
    products = [rows * columns for rows, columns in layer_shapes(features, hidden, hidden_layers, classes)]
    outputs = hidden * hidden_layers + classes
    weights = sum(products) + outputs
    return Estimate(
        memory_bytes=4 * (3 * weights + 3 * batch * (features + outputs)),
        flops=2 * batch * (3 * sum(products) - products[0])
        + 2 * weights,  # nothing needs the slope of the batch itself
        traffic_bytes=4 * (2 * weights + batch * (features + 1)),
    )


@workload(
    name="mlp-train-step",
    title="weights - rate · grad(loss)",
    description=(
        "One step of training a multilayer perceptron: forward, softmax cross-entropy, backward, gradient descent; the "
        "loss and all new weights are the result. NumPy has the backward pass written out by hand. The step is what "
        "most people's own code looks like: a few products, with elementwise work around them that should be fused. "
        "Between the layers is a tanh: a rectifier next to 0 opens in one precision and closes in another, and then "
        "its gradient is not the same one."
    ),
    inputs=train_step_inputs,
    parameters={
        **sizes(batch="examples of a step", features="length of an example", hidden="width of a hidden layer"),
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
    numpy=train_step_numpy,
    variants=["jax", "jit", "jit-highest"],
    estimate=train_step_estimate,
    shardings=(None, "0", "0"),
)
def train_step(layers, x, labels, *, learning_rate):
    def loss(layers, x, labels):
        for W, b in layers[:-1]:
            x = jnp.tanh(x @ W + b)
        W, b = layers[-1]
        log_probabilities = jax.nn.log_softmax(x @ W + b)
        return -jnp.mean(jnp.take_along_axis(log_probabilities, labels[:, None], axis=1))

    value, gradients = jax.value_and_grad(loss)(layers, x, labels)
    return value, jax.tree.map(lambda weight, gradient: weight - learning_rate * gradient, layers, gradients)
