"""A small transformer that learns to predict the next character of its own source, with three slips to find.

    jaxprof script examples/transformer.py           # what it compiles, why again, where its time goes
    jaxprof run examples/transformer.py:train_step   # one step by itself: phases, kernels, memory
    jaxprof hlo examples/transformer.py:train_step --memory

The slips: the last batch of an epoch is shorter, so the step is compiled again; the loss is read at every step, so the
host waits for it; and each report compiles its function anew.
"""

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

HEADS = 4
CHARACTERS = 128


def norm(x, scale):
    return scale * (x - x.mean(-1, keepdims=True)) * jax.lax.rsqrt(x.var(-1, keepdims=True) + 1e-5)


def attention(block, x):
    batch, length, width = x.shape
    q, k, v = (jnp.reshape(x @ block[name], (batch, length, HEADS, -1)) for name in ("query", "key", "value"))
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / np.sqrt(width // HEADS)
    seen = jnp.tril(jnp.ones((length, length), bool))
    weights = jax.nn.softmax(jnp.where(seen, scores, -1e9))
    return jnp.einsum("bhqk,bkhd->bqhd", weights, v).reshape(x.shape) @ block["out"]


def mlp(block, x):
    return jax.nn.gelu(x @ block["up"]) @ block["down"]


def logits(params, text):
    x = params["embedding"][text] + params["position"][: text.shape[1]]
    for number, block in enumerate(params["blocks"]):
        with jax.named_scope(f"block_{number}"):
            with jax.named_scope("attention"):
                x = x + attention(block, norm(x, block["norm_1"]))
            with jax.named_scope("mlp"):
                x = x + mlp(block, norm(x, block["norm_2"]))
    with jax.named_scope("head"):
        return norm(x, params["norm"]) @ params["embedding"].T


def loss(params, text):
    chances = jax.nn.log_softmax(logits(params, text[:, :-1]))
    return -jnp.take_along_axis(chances, text[:, 1:, None], axis=-1).mean()


@jax.jit
def train_step(params, momentum, text):
    value, gradient = jax.value_and_grad(loss)(params, text)
    with jax.named_scope("update"):
        momentum = jax.tree.map(lambda m, g: 0.9 * m + g, momentum, gradient)
        params = jax.tree.map(lambda p, m: p - 0.05 * m, params, momentum)
    return params, momentum, value


def new_params(random, width, layers, length):
    def weights(*shape):
        return random.standard_normal(shape, dtype=np.float32) / np.float32(np.sqrt(shape[0]))

    def block():
        square = {name: weights(width, width) for name in ("query", "key", "value", "out")}
        wide = {"up": weights(width, 4 * width), "down": weights(4 * width, width)}
        return square | wide | {"norm_1": np.ones(width, np.float32), "norm_2": np.ones(width, np.float32)}

    return {
        "embedding": weights(CHARACTERS, width),
        "position": weights(length, width),
        "blocks": [block() for _ in range(layers)],
        "norm": np.ones(width, np.float32),
    }


def train_step_inputs(random, batch=16, length=64, width=128, layers=2):
    """What `jaxprof run` gives to `train_step`; the numbers become parameters, as in `--set batch=32`."""
    params = new_params(random, width, layers, length)
    text = random.integers(0, CHARACTERS, (batch, length + 1), dtype=np.int32)
    return params, jax.tree.map(np.zeros_like, params), text


def batches(text, batch, length):
    """The text once, in its order; the last batch has what is left."""
    rows = len(text) // (length + 1)
    rows = text[: rows * (length + 1)].reshape(rows, length + 1)
    for start in range(0, len(rows), batch):
        yield rows[start : start + batch]


def main(epochs=24, batch=16, length=64):
    text = np.frombuffer(Path(__file__).read_bytes(), np.uint8).astype(np.int32) % CHARACTERS
    params = new_params(np.random.default_rng(0), 128, 2, length)
    momentum = jax.tree.map(np.zeros_like, params)
    history = []
    for epoch in range(epochs):
        for rows in batches(text, batch, length):
            params, momentum, value = train_step(params, momentum, rows)
            history.append(float(value))
        if epoch % 6 == 0:
            right = jax.jit(lambda p, t: (logits(p, t[:, :-1]).argmax(-1) == t[:, 1:]).mean())(params, rows)
            print(f"epoch {epoch:2}  loss {history[-1]:.3f}  right {right:.0%}")


if __name__ == "__main__":
    main()
