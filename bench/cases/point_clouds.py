# about: each batch has another number of points, and each number is compiled
# verdict: compile-bound
# expect: varying_shapes
# forbid: op_by_op_loop, host_sync, many_tiny_jits, recompile_in_loop, data_waits, dispatch_bound, host_work
# lines: varying_shapes@cause
# mended: point_clouds_padded
import sys

import jax
import jax.numpy as jnp
import numpy as np


@jax.jit
def fit(weights, points):
    def energy(weights):
        hidden = points
        for w in weights:
            hidden = jnp.tanh(hidden @ w)
        return jnp.mean(jnp.linalg.norm(hidden - points, axis=1) ** 2)

    value, gradient = jax.value_and_grad(energy)(weights)
    return [w - 0.1 * g for w, g in zip(weights, gradient)], value


def clouds(count):
    rng = np.random.default_rng(0)
    for number in range(count):
        yield jax.device_put(rng.standard_normal((500 + 3 * number, 3), dtype=np.float32))


count = int(8 * float(sys.argv[1] if len(sys.argv) > 1 else 1))
weights = [jnp.eye(3) for _ in range(6)]
for cloud in clouds(count):
    weights, value = fit(weights, cloud)  # <- cause
print(value)
