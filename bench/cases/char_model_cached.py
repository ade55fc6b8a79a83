# about: the same batches, made once before the loop; the model is large enough for the device to be the limit
# verdict: device-bound
# forbid: *
import random
import sys

import jax
import jax.numpy as jnp
import numpy as np

TEXT = "the quick brown fox jumps over the lazy dog and runs away " * 200
VOCABULARY = {letter: index for index, letter in enumerate(sorted(set(TEXT)))}
steps = int(40 * float(sys.argv[1] if len(sys.argv) > 1 else 1))


def prepare(chooser, size=16, length=256):
    rows = []
    for _ in range(size):
        start = chooser.randrange(len(TEXT) - length)
        rows.append([VOCABULARY[letter] for letter in TEXT[start : start + length]])
    return np.array(rows, dtype=np.int32)


@jax.jit
def update(params, tokens):
    def loss(params):
        hidden = jnp.tanh(params["embed"][tokens[:, :-1]] @ params["hidden"])
        logits = hidden @ params["out"]
        return jnp.mean(jax.nn.logsumexp(logits, -1) - jnp.take_along_axis(logits, tokens[:, 1:, None], -1)[..., 0])

    value, gradient = jax.value_and_grad(loss)(params)
    return jax.tree.map(lambda p, g: p - 0.5 * g, params, gradient), value


chooser = random.Random(0)
batches = [jnp.asarray(prepare(chooser)) for _ in range(4)]
keys = jax.random.split(jax.random.key(0), 3)
params = {
    "embed": 0.1 * jax.random.normal(keys[0], (len(VOCABULARY), 256)),
    "hidden": 0.1 * jax.random.normal(keys[1], (256, 256)),
    "out": 0.1 * jax.random.normal(keys[2], (256, len(VOCABULARY))),
}
for step in range(steps):
    params, value = update(params, batches[step % len(batches)])
print("loss", float(value))
