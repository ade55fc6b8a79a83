# about: the degree is an array, and masks the columns
# verdict: device-bound
# forbid: *
import sys

import jax
import jax.numpy as jnp

MOST = 12


@jax.jit
def fit(x, y, degree):
    design = x[:, None] ** jnp.arange(MOST) * (jnp.arange(MOST) <= degree)
    normal = design.T @ design + 1e-4 * jnp.eye(MOST)
    coefficients = jnp.linalg.solve(normal, design.T @ y)
    return jnp.mean((design @ coefficients - y) ** 2)


def choose(x, y, passes):
    errors = []
    for number in range(passes):
        errors.append(fit(x, y, degrees[number % MOST]))
    return int(jnp.argmin(jnp.array(errors[:MOST])))


x = jnp.linspace(-1.0, 1.0, 400_000)
y = jnp.sin(3 * x) + 0.1 * jnp.cos(40 * x)
degrees = [jnp.int32(degree) for degree in range(MOST)]
print(choose(x, y, 12 + int(24 * float(sys.argv[1] if len(sys.argv) > 1 else 1))))
