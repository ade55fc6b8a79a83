# about: the same with all arrays padded to the longest one, in one compiled function
# verdict: -
# forbid: varying_shapes, op_by_op_loop
import sys

import jax
import jax.numpy as jnp
import numpy as np

MOST = 32


@jax.jit
def statistics(padded, counts, covariance):
    def of_trial(trial, count):
        whitened = jnp.linalg.solve(covariance, trial.T)
        return whitened.sum(axis=1) / count, jnp.diag(trial @ covariance @ trial.T)

    return jax.vmap(of_trial)(padded, counts)


rng = np.random.default_rng(0)
repeats = int(4 * float(sys.argv[1] if len(sys.argv) > 1 else 1))
padded, counts = np.zeros((60, MOST, 6), "f4"), np.arange(60) % 30 + 3
for number, count in enumerate(counts):
    padded[number, :count] = rng.normal(size=(count, 6))
padded, counts, covariance = jnp.asarray(padded), jnp.asarray(counts), jnp.eye(6) * 2
for _ in range(repeats):
    means, spreads = statistics(padded, counts, covariance)
print(means.sum(), len(spreads))
