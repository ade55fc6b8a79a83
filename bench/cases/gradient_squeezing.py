# about: NumPy squeezes the gradient of each step before the update: it can be neither left out nor prepared ahead
# verdict: host-bound
# expect: host_between
# forbid: data_waits, op_by_op_loop, varying_shapes, recompile_in_loop, dispatch_bound
# lines: host_between@cause
# advice-not: every N|[Pp]repare the next batch
# mended: gradient_squeezing_jitted
import sys

import jax
import jax.numpy as jnp
import numpy as np


@jax.jit
def gradient(w, x):
    return jax.grad(lambda w: jnp.mean((x @ w) ** 2))(w)


@jax.jit
def update(w, change):
    return w - 0.1 * change


def squeezed(values):
    small = np.sign(values) * np.log1p(np.abs(values)) + np.tanh(values) * np.exp(-np.square(values))
    return small / (1.0 + np.sqrt(np.mean(np.square(small))))


x = jnp.linspace(-1.0, 1.0, 32 * 512).reshape(32, 512)
w = jnp.full((512, 1024), 0.1, jnp.float32)
for step in range(int(60 * float(sys.argv[1] if len(sys.argv) > 1 else 1))):
    grads = gradient(w, x)
    change = squeezed(np.asarray(grads))  # <- cause
    w = update(w, change)
print(w[0, :2])
