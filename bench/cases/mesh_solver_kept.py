# about: the caches stay as they are
# verdict: device-bound
# forbid: *
import sys

import jax
import jax.numpy as jnp


@jax.jit
def smooth(u, f):
    for _ in range(8):
        u = 0.25 * (jnp.roll(u, 1, 0) + jnp.roll(u, -1, 0) + jnp.roll(u, 1, 1) + jnp.roll(u, -1, 1) - f)
    return u - u.mean()


@jax.jit
def residual(u, f):
    laplacian = jnp.roll(u, 1, 0) + jnp.roll(u, -1, 0) + jnp.roll(u, 1, 1) + jnp.roll(u, -1, 1) - 4 * u
    return jnp.linalg.norm(laplacian - f)


def refine(u, f, rounds):
    for _ in range(rounds):
        for _ in range(5):
            u = smooth(u, f)
        error = residual(u, f)
    return u, error


rounds = int(12 * float(sys.argv[1] if len(sys.argv) > 1 else 1))
f = jnp.sin(jnp.linspace(0, 20, 1024 * 1024)).reshape(1024, 1024)
print(refine(jnp.zeros((1024, 1024)), f, rounds)[1])
