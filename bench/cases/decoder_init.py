# about: the layers are initialised by operations outside any jit, each of another shape, and each is compiled
# verdict: compile-bound | dispatch-bound | -
# expect: many_tiny_jits
# forbid: host_sync, data_waits, host_work, dispatch_bound, recompile_in_loop, slow_tracing
# lines: many_tiny_jits@cause
# mended: decoder_init_jitted
import sys

import jax
import jax.numpy as jnp


class Layer:
    def __init__(self, key, inputs, outputs):
        self.w = jax.random.uniform(key, (inputs, outputs)) * jnp.sqrt(2.0 / inputs)  # <- cause
        self.b = jnp.zeros(outputs)  # <- cause
        self.scale = jnp.linspace(0.5, 1.5, outputs) ** 2  # <- cause


def build(key, widths):
    layers = []
    for inputs, outputs in zip(widths[:-1], widths[1:]):
        key, own = jax.random.split(key)
        layers.append(Layer(own, inputs, outputs))
    return layers


count = int(5 * float(sys.argv[1] if len(sys.argv) > 1 else 1))
layers = build(jax.random.key(0), [16 + 3 * n for n in range(count + 1)])
print(len(layers), layers[-1].w.shape)
