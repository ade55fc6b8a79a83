# about: one jitted function, the coefficient is its argument
# verdict: device-bound
# forbid: *
# allow: iterated_array
import sys

import jax
import jax.numpy as jnp


@jax.jit
def update(c, x):
    f = lambda x: jnp.sum(jnp.sin(x) ** 2 + jnp.cos(c * x) * x + jnp.exp(-(x**2)) - c)
    return x - 0.1 * jax.grad(f)(x)


def solve(coefficients, x):
    for c in coefficients:
        x = update(c, x)
    return x


count = int(100 * float(sys.argv[1] if len(sys.argv) > 1 else 1))
print(solve(0.1 * jnp.arange(count), jnp.linspace(0.0, 1.0, 1_000_000))[:3])
