# about: the same without the last, smaller batch
# verdict: device-bound | compile-bound
# forbid: *
# allow: large_program
import sys

import jax
import jax.numpy as jnp
import numpy as np

ROWS, BATCH = 1000, 64


def predict(layers, x):
    for w in layers:
        x = jnp.tanh(x @ w)
    return x.sum(axis=1)


@jax.jit
def update(layers, x, y):
    gradient = jax.grad(lambda layers: jnp.mean((predict(layers, x) - y) ** 2))(layers)
    return [w - 1e-3 * g for w, g in zip(layers, gradient, strict=True)]


def batches(rng, count):
    while True:
        order = rng.permutation(ROWS)
        for start in range(0, ROWS - BATCH + 1, BATCH):
            yield order[start : start + BATCH]
            count -= 1
            if not count:
                return


rng = np.random.default_rng(0)
x, y = rng.normal(size=(ROWS, 128)).astype("f4"), rng.normal(size=ROWS).astype("f4")
layers = [jnp.asarray(rng.normal(size=(128, 128)).astype("f4")) / 12 for _ in range(40)]
for pick in batches(rng, int(150 * float(sys.argv[1] if len(sys.argv) > 1 else 1))):
    layers = update(layers, x[pick], y[pick])
print(layers[0].sum())
