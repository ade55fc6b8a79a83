# about: NumPy makes the table once before the function is traced; then the device works
# verdict: device-bound
# forbid: *
import sys

import jax
import jax.numpy as jnp
import numpy as np

POINTS = np.polynomial.legendre.leggauss(100)[0].astype(np.float32)


@jax.jit
def integrate(a):
    return jnp.mean(jnp.exp(-a[:, None] * POINTS**2) * jnp.cos(POINTS), axis=1)


repeats = int(600 * float(sys.argv[1] if len(sys.argv) > 1 else 1))
a = jnp.linspace(0.0, 1.0, 20_000)
for _ in range(repeats):
    a = integrate(a)
print(a[:3])
