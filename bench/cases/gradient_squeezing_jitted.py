# about: the gradient is squeezed in the compiled function
# verdict: - | device-bound | dispatch-bound
# forbid: host_between, data_waits, op_by_op_loop, varying_shapes, recompile_in_loop
import sys

import jax
import jax.numpy as jnp


@jax.jit
def update(w, x):
    values = jax.grad(lambda w: jnp.mean((x @ w) ** 2))(w)
    small = jnp.sign(values) * jnp.log1p(jnp.abs(values)) + jnp.tanh(values) * jnp.exp(-jnp.square(values))
    return w - 0.1 * small / (1.0 + jnp.sqrt(jnp.mean(jnp.square(small))))


x = jnp.linspace(-1.0, 1.0, 32 * 512).reshape(32, 512)
w = jnp.full((512, 1024), 0.1, jnp.float32)
for step in range(int(60 * float(sys.argv[1] if len(sys.argv) > 1 else 1))):
    w = update(w, x)
print(w[0, :2])
