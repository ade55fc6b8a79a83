"""Many small functions, each compiled once: compilation is nearly all there is."""

import jax
import jax.numpy as jnp


def polynomial(degree):
    def evaluate(x):
        total = jnp.zeros_like(x)
        for power in range(degree):
            total = total * x + power
        return total

    return jax.jit(evaluate)


x = jnp.linspace(0.0, 1.0, 100)
print(sum(float(polynomial(1 + number % 12)(x)[-1]) for number in range(60)))
