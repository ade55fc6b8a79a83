# about: float64 NumPy batches are passed to the step, which casts each to float32 on the way
# cause: float64
# expect: numpy_argument | float64_argument
"""Ridge regression on a table in memory."""

import sys
import time

import jax
import jax.numpy as jnp
import numpy as np


@jax.jit
def step(w, x, y):
    return w - 0.1 * (x.T @ (x @ w - y) / len(y) + 1e-3 * w)


def main(mended):
    random = np.random.default_rng(0)
    x = random.standard_normal((20_000, 256))
    y = x @ random.standard_normal(256)
    if mended:
        x, y = jnp.asarray(x), jnp.asarray(y)
    w = step(jnp.zeros(256), x, y)
    began = time.perf_counter()
    for _ in range(60):
        w = step(w, x, y)  # <- cause
    print(float(w.sum()))
    print(f"{(time.perf_counter() - began) / 60 * 1e3:.3f} ms a step")


main("mended" in sys.argv)
