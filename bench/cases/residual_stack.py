# about: nothing but one large program: a Python loop over many layers is unrolled by tracing
# verdict: - | compile-bound | device-bound
# expect: large_program | slow_tracing
# lines: large_program@unrolled, slow_tracing@unrolled
# forbid: op_by_op_loop, host_sync, data_waits, many_tiny_jits, host_work, recompile_in_loop, varying_shapes
# mended: residual_stack_scan
import sys

import jax
import jax.numpy as jnp


@jax.jit
def gradient(weights, x):
    def loss(weights):
        y = x
        for layer in range(len(weights)):  # <- unrolled
            y = y + jnp.tanh(y @ weights[layer]) / len(weights)
        return jnp.mean(y**2)

    return jax.grad(loss)(weights)


layers = int(90 * float(sys.argv[1] if len(sys.argv) > 1 else 1))
weights = jnp.ones((layers, 16, 16))
print(gradient(weights, jnp.ones((4, 16)))[0, 0, :3])
