# about: the initialisation is one jitted function; the program is over soon
# verdict: -
# forbid: *
import sys

import jax
import jax.numpy as jnp


def layer(key, inputs, outputs):
    return {
        "w": jax.random.uniform(key, (inputs, outputs)) * jnp.sqrt(2.0 / inputs),
        "b": jnp.zeros(outputs),
        "scale": jnp.linspace(0.5, 1.5, outputs) ** 2,
    }


@jax.jit
def build(key):
    keys = jax.random.split(key, len(widths) - 1)
    return [layer(k, inputs, outputs) for k, inputs, outputs in zip(keys, widths[:-1], widths[1:])]


count = int(5 * float(sys.argv[1] if len(sys.argv) > 1 else 1))
widths = [16 + 3 * n for n in range(count + 1)]
layers = build(jax.random.key(0))
print(len(layers), layers[-1]["w"].shape)
