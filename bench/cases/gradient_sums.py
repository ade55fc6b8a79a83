# about: gradients of several batches are added leaf by leaf, outside any jit
# verdict: device-bound
# expect: large_operations
# forbid: *
# lines: large_operations@cause
# mended: gradient_sums_scan
import sys

import jax
import jax.numpy as jnp

PARTS = 4


@jax.jit
def gradient(params, x):
    return jax.grad(lambda params: jnp.mean((x @ params["a"] @ params["b"]) ** 2))(params)


@jax.jit
def apply(params, total):
    return jax.tree.map(lambda p, g: p - 1e-3 / PARTS * g, params, total)


params = {"a": jnp.ones((32, 4096)) / 64, "b": jnp.ones((4096, 512)) / 64}
x = jnp.ones((PARTS, 2, 32))
for _ in range(int(30 * float(sys.argv[1] if len(sys.argv) > 1 else 1))):
    total = gradient(params, x[0])
    for part in x[1:]:
        total = jax.tree.map(jnp.add, total, gradient(params, part))  # <- cause
    params = apply(params, total)
print(params["a"].sum())
