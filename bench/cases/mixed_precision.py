# about: a context manager sets the precision of matmul to another value in each pass, and JAX compiles for each
# verdict: compile-bound | -
# expect: arguments_vary
# forbid: op_by_op_loop, many_tiny_jits, varying_shapes, host_sync, data_waits, host_work
# mended: mixed_precision_once
import sys

import jax
import jax.numpy as jnp


@jax.jit
def attend(x):
    for _ in range(12):
        x = jax.nn.softmax(x @ x.T) @ jnp.cumsum(jnp.sort(x, axis=0), axis=0) / 64
    return x


repeats = int(4 * float(sys.argv[1] if len(sys.argv) > 1 else 1))
x = jnp.linspace(0.0, 1.0, 64 * 64).reshape(64, 64)
for _ in range(repeats):
    for precision in ("bfloat16", "tensorfloat32", "float32", "highest", "high"):
        with jax.default_matmul_precision(precision):
            x = attend(x)  # <- cause
print(x[0, :3])
