# about: the values stay arrays, are kept, and are fetched together after the loop
# verdict: device-bound
# forbid: *
import sys

import jax
import jax.numpy as jnp


@jax.jit
def flow(x):
    value, gradient = jax.value_and_grad(lambda x: jnp.sum(jnp.cos(x) + 0.1 * x**2))(x)
    return x - 0.1 * gradient, value


def descend(x, steps):
    values = []
    for step in range(steps):
        x, value = flow(x)
        values.append(value)
    for step, value in enumerate(jax.device_get(values)):
        if step % 50 == 0:
            print(f"step {step:5d}  value {value:.6f}")
    return x


descend(jnp.linspace(-3.0, 3.0, 500_000), int(300 * float(sys.argv[1] if len(sys.argv) > 1 else 1)))
