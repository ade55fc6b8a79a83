# about: the same filter over many tracks as one scan; only the device works
# verdict: - | device-bound
# forbid: *
import sys

import jax
import jax.numpy as jnp

steps = int(2000 * float(sys.argv[1] if len(sys.argv) > 1 else 1))
F = jnp.array([[1.0, 0.1], [0.0, 1.0]])
H = jnp.array([[1.0, 0.0]])
Q = 0.01 * jnp.eye(2)
R = jnp.array([[0.5]])


def advance(state, z):
    mean, cov = state
    mean = F @ mean
    cov = F @ cov @ F.T + Q
    S = H @ cov @ H.T + R
    K = cov @ H.T / S
    mean = mean + K @ (z - H @ mean)
    cov = (jnp.eye(2) - K @ H) @ cov
    return (mean, cov), mean[0]


@jax.jit
def track(observations):
    return jax.lax.scan(advance, (jnp.zeros(2), jnp.eye(2)), observations)


observations = jax.random.normal(jax.random.key(0), (256, steps))
(mean, _), path = jax.jit(jax.vmap(track))(observations)
print(mean[0], path.shape)
