# about: arrays of ever other lengths go through operations outside any jit, each of which compiles for each length
# verdict: compile-bound
# expect: varying_shapes
# forbid: many_tiny_jits, host_sync, host_work, data_waits
# lines: varying_shapes@cause
# mended: trial_statistics_padded
import sys

import jax
import jax.numpy as jnp
import numpy as np


def statistics(trials, covariance):
    means, spreads = [], []
    for trial in trials:
        whitened = jnp.linalg.solve(covariance, trial.T)  # <- cause
        means.append(whitened.mean(axis=1))
        spreads.append(jnp.diag(trial @ covariance @ trial.T))
    return means, spreads


rng = np.random.default_rng(0)
repeats = int(4 * float(sys.argv[1] if len(sys.argv) > 1 else 1))
trials = [jax.device_put(rng.normal(size=(3 + number % 30, 6)).astype("f4")) for number in range(60)]
covariance = jnp.eye(6) * 2
for _ in range(repeats):
    means, spreads = statistics(trials, covariance)
print(jnp.stack(means).sum(), len(spreads))
