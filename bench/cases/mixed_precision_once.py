# about: one precision, set before the first call
# verdict: device-bound
# forbid: *
import sys

import jax
import jax.numpy as jnp

jax.config.update("jax_default_matmul_precision", "float32")


@jax.jit
def attend(x):
    return jax.nn.softmax(x @ x.T) @ jnp.cumsum(x, axis=0) / 512


repeats = int(200 * float(sys.argv[1] if len(sys.argv) > 1 else 1))
x = jnp.linspace(0.0, 1.0, 512 * 512).reshape(512, 512)
for _ in range(repeats):
    x = attend(x)
print(x[0, :3])
