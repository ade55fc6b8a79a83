# about: nothing; some functions are lowered and compiled ahead of time, and none is called in a loop
# verdict: -
# forbid: *
import sys

import jax
import jax.numpy as jnp


def attention(q, k, v):
    return jax.nn.softmax(q @ k.T / 8.0) @ v


def mixer(x):
    return jnp.sort(jnp.cumsum(x, axis=1), axis=0)


def spectrum(x):
    return jnp.abs(jnp.fft.fft(x)) ** 2


size = int(64 * float(sys.argv[1] if len(sys.argv) > 1 else 1))
spec = jax.ShapeDtypeStruct((size, 64), "float32")
for function, arguments in ((attention, (spec,) * 3), (mixer, (spec,)), (spectrum, (spec,))):
    compiled = jax.jit(function).lower(*arguments).compile()
    print(function.__name__, compiled.cost_analysis().get("flops") if compiled.cost_analysis() else None)
